"""Is the default as good with a million rows as with 500? ``make bench-sizes``."""
