"""Estimators of other packages that are fitted in stages: boosting, forests, networks.

:class:`Staged` makes one of them an estimator that records its trajectory.
"""

from .estimator import Staged

__all__ = ["Staged"]
