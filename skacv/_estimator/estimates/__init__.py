"""The table of estimates, and what each reads from a run."""
