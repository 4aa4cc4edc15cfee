"""Speed and memory beside an opponent: rows of ``python -m benchmarks``."""
