"""Cases of a product: a few have every value, all of them every pair of values."""

from itertools import combinations, product

import pytest

from .cases import covering_places, meeting_places


def met(places, n):
    """The values, or pairs of them and so on, that are in a place, with arguments."""
    return {each for place in places for each in combinations(enumerate(place), n)}


@pytest.mark.parametrize("sizes", [[4], [3, 5], [2, 7, 3], [4, 3, 2, 5]])
def test_values_and_their_pairs_meet(sizes):
    table = [*product(*map(range, sizes))]
    few = covering_places(sizes)
    others = meeting_places(sizes, few)
    assert len({*few, *others}) == len(few) + len(others)
    assert met(few, 1) == met(table, 1)
    assert met([*few, *others], 2) == met(table, 2)
    if len(sizes) > 2:
        assert len(few) + len(others) < len(table)


def test_the_cases_of_a_table_are_the_same_in_every_process():
    sizes = [5, 4, 3]
    few = covering_places(sizes)
    assert meeting_places(sizes, few) == meeting_places(sizes, few)
