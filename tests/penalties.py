"""The package's penalties with a prox, of the strengths that a test takes."""

from dataclasses import replace

from skacv.optim.penalties import PENALTIES


def with_prox(strength, gamma):
    """Every penalty with a prox, by the name of its class.

    Parameters
    ----------
    gamma : float
        Where a concave penalty levels off, in multiples of its strength: a longer step
        has no prox.
    """
    found = {}
    for penalty in PENALTIES:
        if not penalty.is_linear:
            own = {"gamma": gamma} if hasattr(penalty, "gamma") else {}
            found[type(penalty).__name__] = replace(penalty, strength=strength, **own)
    return found
