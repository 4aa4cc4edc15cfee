"""Criteria by which an iteration is chosen, and where an estimator keeps them.

Add a criterion here, list it in ``CRITERIA``.
"""

from typing import NamedTuple


class Criterion(NamedTuple):
    """A path that a fitted estimator may have.

    Attributes
    ----------
    parameter : str
        The estimator's parameter that switches the computation on or off. Left
        at "auto", it is switched off for every other criterion.
    path, se_path : str
        Fitted attributes: the estimate of every iterate and its standard error.
    """

    parameter: str
    path: str
    se_path: str


CRITERIA = {"risk": Criterion("risk", "risk_path_", "risk_se_path_")}

# What "auto" means.
DEFAULT_CRITERION = "risk"
