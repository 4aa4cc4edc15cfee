"""From validated data to a problem, and back."""
