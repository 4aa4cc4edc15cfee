"""Which limits should a number keep, and does it?"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bar:
    """A number, and the bounds that it should keep.

    Parameters
    ----------
    case, what : str
    value : float
    most, least : float, optional
    """

    case: str
    what: str
    value: float
    most: float = float("inf")
    least: float = 0.0

    @property
    def is_met(self):
        return self.least <= self.value <= self.most

    @property
    def limits(self):
        """The limits as text."""
        if self.least > 0:
            return f"{self.least:g} to {self.most:g}"
        return f"<= {self.most:g}"


def over(case, results, opponent, **most):
    """Bars of ratios of ours over an opponent; none where one of them has no number.

    Parameters
    ----------
    case : str
    results : dict of str to dict
        By method; the first is ours.
    opponent : str
    **most : float
        What the ratio of a number of that name is at most.
    """
    ours = next(iter(results.values()))
    theirs = results.get(opponent, {})
    for number, bound in most.items():
        if number in ours and number in theirs:
            what = f"{number}, over {opponent}'s"
            yield Bar(case, what, ours[number] / theirs[number], bound)


def at_most(case, results, **most):
    """Bars of ours alone."""
    ours = next(iter(results.values()))
    for number, bound in most.items():
        if number in ours:
            yield Bar(case, number, ours[number], bound)
