"""skops stores boosters at the stage that is kept."""

import numpy as np
import pytest

from skacv import TrajectoryEarlyStoppingCV

from .cases import PLAIN, answer, booster, table

io = pytest.importorskip("skops.io")


@pytest.mark.parametrize("name", [*PLAIN, "LGBMClassifier"])
def test_boosters(name):
    X, y = table("three words" if "Classifier" in name else "values")
    model = TrajectoryEarlyStoppingCV(booster(name), cv=3).fit(X, y)
    stored = io.dumps(model)
    types = io.get_untrusted_types(data=stored)
    named = ("skacv.", "numpy.dtype", "collections.OrderedDict")
    libraries = ("xgboost.", "lightgbm.", "catboost.")
    assert all(each.startswith(named + libraries) for each in types), types
    other = io.loads(stored, trusted=types)
    np.testing.assert_array_equal(answer(other, X), answer(model, X))
    found, expected = (answer(each.at_iteration(3), X) for each in (other, model))
    np.testing.assert_array_equal(found, expected)
    if "Regressor" in name:
        found = other.predict_interval(X)
        np.testing.assert_allclose(found, model.predict_interval(X), rtol=1e-10)
