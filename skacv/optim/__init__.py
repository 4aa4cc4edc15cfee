"""How a trajectory is run."""
