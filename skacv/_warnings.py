"""Warnings that name the user's line, not one of ours."""

import os
import sys
import warnings
from pathlib import Path

import joblib
import sklearn

# Packages whose frames lie between a user's line and a warning; how many there are
# depends on their versions.
PACKAGES = tuple(
    str(Path(file).parent) + os.sep
    for file in (__file__, sklearn.__file__, joblib.__file__)
)


def warn(message, category):
    """Warn of the line, outside of these packages, that has called one of them."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_code.co_filename.startswith(PACKAGES):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
