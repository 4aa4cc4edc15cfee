"""The linearised run without a row errs as the theory page derives."""

import numpy as np
import pytest

from benchmarks.studies.loo_rates import BASE, mean_errors


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "of_change", "of_error"),
    # p^(3/2) and alpha^-3 are bounds: rows rarely conspire, and the loss is curved.
    [("n", (-1.2, -0.8), (-2.3, -1.7)), ("p", (0.7, 1.3), (0.7, 1.5))],
)
def test_powers_of_change_and_error(name, of_change, of_error):
    first = mean_errors(**BASE, seeds=range(3))
    larger = mean_errors(**BASE | {name: 4 * BASE[name]}, seeds=range(3))
    powers = np.log(larger / first) / np.log(4)
    for power, (least, most) in zip(powers, (of_change, of_error)):
        assert least < power < most
