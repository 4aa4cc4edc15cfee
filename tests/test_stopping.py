"""Patience: one definition of an improvement, update by update and along a path."""

import numpy as np
import pytest

from tests.internals import Patience, later_gain


def ends_by_definition(values, patience, tol, growth, uncertainties):
    """After how many values the run ends, None if it does not."""
    improved = None
    for t, (value, uncertainty) in enumerate(zip(values, uncertainties)):
        last = None if improved is None else values[improved]
        if last is None or last - value > tol * abs(last) + uncertainty:
            improved = t
        if t - improved >= patience + np.floor(growth * improved):
            return t + 1
    return None


@pytest.mark.parametrize("growth", [0.0, 0.5])
@pytest.mark.parametrize("tol", [0.0, 0.05])
@pytest.mark.parametrize("shift", [0.0, -3.0])
def test_update_by_update(shift, tol, growth, rng):
    t = np.arange(60)
    values = shift + np.exp(-t / 8) + 0.01 * t + 0.02 * rng.standard_normal(60)
    uncertainties = 0.01 * rng.uniform(size=60)
    patience = Patience(5, tol, growth)
    ended = []
    for value, uncertainty in zip(values, uncertainties):
        patience.update(value, uncertainty)
        ended.append(patience.has_ended)
    expected = ends_by_definition(values, 5, tol, growth, uncertainties)
    assert expected is not None
    assert ended.index(True) + 1 == expected
    assert patience.best == values.argmin()
    assert patience.n_values == 60


def test_along_a_path_the_least_value_counts(rng):
    """A value that is less after a pause makes up for the pause."""
    for path in rng.standard_normal((50, 30)):
        age = len(path) - 1 - path.argmin()
        for patience in (age, age + 1):
            assert Patience(patience).follow(path).has_ended == (patience == age)


def test_smaller_steps_down_add_up_to_an_improvement():
    values = 1 - 0.001 * np.arange(100)
    patience = Patience(60, tol=0.01).follow(values)
    assert patience.best == 99
    assert 90 <= patience.improved < 99
    assert not patience.has_ended


def test_nothing_ends_before_a_value_is_defined():
    undefined = np.full(20, np.nan)
    assert not Patience(3).follow(undefined).has_ended
    assert not Patience(3).follow([*undefined, 1.0]).has_ended
    followed = Patience(3).follow([*undefined, 1.0, np.nan, 2.0, np.nan])
    assert followed.best == followed.improved == 20
    assert followed.has_ended


def test_no_patience_never_ends():
    assert not Patience(None).follow(np.arange(100.0)).has_ended


@pytest.mark.parametrize("ratio", [0.2, 0.5, 0.7, 0.9])
def test_later_gain_continues_the_last_doublings(ratio):
    """Their gains fall by the same ratio, or as those of 1 / t, if that is slower."""
    values = 3 - np.cumsum(0.1 * ratio ** np.arange(3))
    gains = [values[1] - values[2]]
    for _ in range(8):
        gains.append(gains[-1] * max(ratio, 0.5))
    assert later_gain(*values) == pytest.approx(sum(gains[1:]), rel=1e-9)
    t = np.array([1.0, 2.0, 4.0, 1024.0])
    *first, last = 1 / t
    assert later_gain(*first) == pytest.approx(first[-1] - last, rel=1e-9)


def test_later_gain_of_a_run_that_begins_or_has_ended_to_improve():
    """Growing gains double at most, so that a rounding error is no reason to go on."""
    doubled = sum(2.0**k for k in range(1, 9))
    assert later_gain(1.0, 1.0, 0.9) == pytest.approx(0.1 * doubled)
    assert later_gain(1.0, 0.9, 0.7) == pytest.approx(0.2 * doubled)
    assert later_gain(1.0, 1.0, 1.0 - 2.0**-53) < 1e-13
    assert later_gain(1.0, 0.9, 0.9) == 0
