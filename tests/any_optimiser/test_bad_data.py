"""Estimators of any library refuse bad data, and stay as they are."""

import pytest

from skacv import TrajectoryEarlyStoppingCV

from ..bad_data import cases, check_refused, good
from ..cases import covering
from .test_estimators import Classifier, Regressor, library  # noqa: F401


def check(model, fitted, case, rng, of_classes=False):
    X, y = good(rng, of_classes)
    if fitted:
        model.fit(X, y)
    check_refused(model, "fit", X, y, case, of_classes)


@covering(case=cases(), fitted=[False, True])
def test_regressors(Regressor, case, fitted, rng):  # noqa: F811
    check(Regressor(max_iter=3, cv=3), fitted, case, rng)


@covering(case=cases(True), fitted=[False, True])
def test_classifiers(Classifier, case, fitted, rng):  # noqa: F811
    check(Classifier(max_iter=3, cv=3), fitted, case, rng, of_classes=True)


@covering(case=cases(), fitted=[False, True])
def test_stopped(Regressor, case, fitted, rng):  # noqa: F811
    check(TrajectoryEarlyStoppingCV(Regressor(max_iter=3)), fitted, case, rng)


@pytest.mark.parametrize("value", [None, "1"])
def test_runs_of_arrays(library, value, rng):  # noqa: F811
    module, _ = library
    X, y = good(rng)
    spoilt = y.astype(object)
    spoilt[3] = value
    model = getattr(module, f"{library[1]}Regressor")(max_iter=2)
    with pytest.raises(ValueError, match=r"y (contains NaN or None|must be numbers)"):
        model.fit(X, spoilt)
