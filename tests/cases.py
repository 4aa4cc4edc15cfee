"""Which cases of a product run in ``make test``, and which in ``make test-slow``."""

import random
from collections import Counter
from itertools import combinations, product

import pytest


def covering(**values):
    """Parametrise a test over cases of a product, of which ``make test`` runs a few.

    The few have every value once; with others, marked slow, any two values of two
    arguments have a case in which they meet.

    Parameters
    ----------
    **values : iterable
        The values of each argument of the test.

    Returns
    -------
    pytest.MarkDecorator
    """
    values = {name: list(each) for name, each in values.items()}
    sizes = [len(each) for each in values.values()]
    few, params = covering_places(sizes), []
    for place in sorted([*few, *meeting_places(sizes, few)]):
        chosen = [each[i] for each, i in zip(values.values(), place)]
        marks = () if place in few else pytest.mark.slow
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


def meeting_places(sizes, first):
    """Others of the table so that, with the first, any two values have met.

    In turn those in which most pairs of values meet for the first time, then fewer.
    """
    pairs = {
        place: set(combinations(enumerate(place), 2))
        for place in product(*map(range, sizes))
    }
    met = set().union(*(pairs[place] for place in first))
    order, others = list(pairs), []
    random.Random(0).shuffle(order)  # nothing that a table is ordered by matters
    for n_new in range(len(sizes) * (len(sizes) - 1) // 2, 0, -1):
        for place in order:
            if len(pairs[place] - met) >= n_new:
                met |= pairs[place]
                others.append(place)
    return others
