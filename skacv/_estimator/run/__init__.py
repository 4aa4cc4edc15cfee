"""What a run is of, and the one fit."""
