"""Numbers that statsmodels found, in a table written by the script of its name."""

from pathlib import Path

FOLDER = Path(__file__).parent
