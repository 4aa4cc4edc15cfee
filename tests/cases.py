"""Which cases of a product run in ``make test``, and which in ``make test-slow``."""

from collections import Counter
from itertools import combinations, product

import pytest


def covering(**values):
    """Parametrise a test over a product of which ``make test`` runs a few cases.

    The few have every value once; the others are marked slow.

    Parameters
    ----------
    **values : iterable
        The values of each argument of the test.

    Returns
    -------
    pytest.MarkDecorator
    """
    values = {name: list(each) for name, each in values.items()}
    few = covering_places([len(each) for each in values.values()])
    cases = product(*(enumerate(each) for each in values.values()))
    params = []
    for case in cases:
        places, chosen = zip(*case)
        marks = () if places in few else pytest.mark.slow
        params.append(pytest.param(*chosen, marks=marks))
    return pytest.mark.parametrize(list(values), params)


def first(number, values):
    """The values, of which ``make test`` runs so many: the others are marked slow."""
    values = list(values)
    others = [pytest.param(value, marks=pytest.mark.slow) for value in values[number:]]
    return values[:number] + others


def covering_places(sizes):
    """Few places in a table of these sizes, with every row and column of it.

    The next is always the one that adds most values; of these, most pairs of values;
    of these, the one whose values were there the least often.

    Parameters
    ----------
    sizes : list of int

    Returns
    -------
    list of tuple of int
    """
    places = list(product(*map(range, sizes)))
    values = {place: set(enumerate(place)) for place in places}
    pairs = {place: set(combinations(enumerate(place), 2)) for place in places}
    times, met, few = Counter(), set(), []

    def gain(place):
        new_values = sum(not times[value] for value in values[place])
        seen = sum(times[value] for value in values[place])
        return new_values, len(pairs[place] - met), -seen

    while len(times) < sum(sizes):
        few.append(max(places, key=gain))
        times.update(values[few[-1]])
        met |= pairs[few[-1]]
    return few
