"""What public docstrings say of parameters and attributes is what there is."""

import re
import subprocess
import sys
from ast import literal_eval
from inspect import Parameter, getdoc, isclass, signature

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)

import skacv
from skacv._estimator.docstrings import NAMES, VALUE, documented, entries

CLASSES = [
    found
    for found in (getattr(skacv, name) for name in skacv.__all__)
    if isclass(found)
]
# With these a fit records everything that it can, where it has such parameters.
SETTINGS = {"loo": True, "cv": 2, "risk": True, "max_iter": 5, "patience": 2}
# What has to be made of another estimator.
MADE_OF = {"Staged": [HistGradientBoostingClassifier()]}
# What is there of some models only.
OTHER_MODELS = {
    "TrajectoryEarlyStoppingCV": [
        skacv.TrajectoryEarlyStoppingCV(skacv.TrajectoryLasso()),
        skacv.TrajectoryEarlyStoppingCV(skacv.TrajectoryLogisticRegression()),
        skacv.TrajectoryEarlyStoppingCV(RandomForestClassifier(random_state=0)),
    ],
    "SelfStoppingRegressor": [
        skacv.SelfStoppingRegressor(skacv.TrajectoryLasso()),
        skacv.SelfStoppingRegressor(RandomForestRegressor(random_state=0)),
    ],
    "SelfStoppingClassifier": [
        skacv.SelfStoppingClassifier(skacv.TrajectoryLogisticRegression()),
        skacv.SelfStoppingClassifier(RandomForestClassifier(random_state=0)),
    ],
    "KernelEigenProRegressor": [skacv.KernelEigenProRegressor(n_centers=10)],
    "KernelEigenProClassifier": [skacv.KernelEigenProClassifier(n_centers=10)],
}
REFERENCE = re.compile(r"All other attributes are those of :class:`(\w+)`")


def section(cls, title):
    """Names, and what is said of their types and defaults, in a section."""
    doc = getdoc(cls).replace("\\\n", "")
    found = re.search(rf"^{title}\n-+\n(.*?)(?=^\S[^\n]*\n-+\n|\Z)", doc, re.M | re.S)
    # What is not indented and ends in no full stop is an entry.
    entries = [line for line in found[1].splitlines() if re.match(r"\w", line)]
    entries = [line for line in entries if not REFERENCE.match(line)]
    pairs = [line.partition(" : ")[::2] for line in entries]
    return {name: kind for names, kind in pairs for name in names.split(", ")}


def attributes_of(cls):
    """Those of the section, and those of the class that it refers to."""
    own = section(cls, "Attributes")
    reference = REFERENCE.search(getdoc(cls))
    more = attributes_of(getattr(skacv, reference[1])) if reference else {}
    return more | own


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_parameters_are_those_of_init_with_types_and_defaults(cls):
    written = section(cls, "Parameters")
    parameters = signature(cls).parameters
    assert list(written) == list(parameters)
    for name, parameter in parameters.items():
        assert written[name], f"{name} has no type"
        if parameter.default is not Parameter.empty:
            defaults = written[name].partition("default=")[2]
            assert parameter.default in literal_eval(f"({defaults},)")


def fitted_attributes(model):
    """Names of those that a fitted model has."""
    names = [name for name in dir(model) if re.fullmatch(r"[a-zA-Z]\w*[^_]_", name)]
    return {name for name in names if hasattr(model, name)}


@pytest.mark.parametrize(
    "cls",
    [cls for cls in CLASSES if issubclass(cls, BaseEstimator)],
    ids=lambda cls: cls.__name__,
)
def test_fitted_attributes_are_those_of_fits(cls, rng):
    X = pd.DataFrame(rng.standard_normal((60, 3)), columns=["a", "b", "c"])
    y = 1 + rng.poisson(np.exp(X["a"] / 2))
    there = set()
    made = cls(*MADE_OF.get(cls.__name__, []))
    for model in [made, *OTHER_MODELS.get(cls.__name__, [])]:
        names = SETTINGS.keys() & model.get_params(deep=False).keys()
        model.set_params(**{name: SETTINGS[name] for name in names})
        of_survival = isinstance(model, skacv.TrajectoryCoxRegressor)
        target = (y > 1, y) if of_survival else y > 1 if is_classifier(model) else y
        there |= fitted_attributes(model.fit(X, target))
        is_stopping = isinstance(model, skacv.TrajectoryEarlyStoppingCV)
        if is_stopping and is_regressor(model):
            lacking = np.stack([y, np.where(X["b"] > 0, y, np.nan)], axis=1)
            there |= fitted_attributes(model.fit(X, lacking))
    written = attributes_of(cls)
    if cls is skacv.SelfStoppingClassifier:
        # Of the attributes of TrajectoryEarlyStoppingCV, these are for regressors.
        del written["estimators_"], written["target_names_"]
    if is_regressor(model):
        # Of the attributes of TrajectoryEarlyStoppingCV, these are for classifiers.
        written.pop("classes_", None)
    assert all(written.values())
    assert set(written) == there


# Parameters that mean the same in all classes of a family, and those classes.
LINEAR = "cv n_jobs verbose risk_row_scales tol max_iter fit_intercept warm_start"
SAME = [
    (skacv.TrajectoryLasso, "IterativeRidge TrajectoryElasticNet TrajectoryGroupLasso"),
    (
        skacv.TrajectoryPoissonRegressor,
        "TrajectoryHuberRegressor TrajectoryGammaRegressor TrajectoryTweedieRegressor "
        "TrajectoryQuantileRegressor",
    ),
    (skacv.TrajectoryLogisticRegression, "TrajectoryLinearSVC"),
]


def said_of(cls, parameter):
    """What the docstring says of a parameter."""
    doc = getdoc(cls).replace("\\\n", "")
    return re.search(rf"^{parameter} : (.*?)(?=^\S)", doc, re.M | re.S)[1].split()


@pytest.mark.parametrize("parameter", LINEAR.split())
@pytest.mark.parametrize(("cls", "others"), SAME, ids=lambda value: str(value)[-20:])
def test_what_means_the_same_is_said_in_the_same_words(cls, others, parameter):
    for other in others.split():
        assert said_of(getattr(skacv, other), parameter) == said_of(cls, parameter)


# ------------------------------------------------------------------ shared texts


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_name_in_braces_is_filled_in(cls):
    doc = getdoc(cls)
    assert not NAMES.search(doc)
    assert not VALUE.search(doc)
    methods = [getattr(cls, name, None) for name in dir(cls) if name[0] != "_"]
    assert not any(NAMES.search(getdoc(method) or "") for method in methods)


SOME = entries("""
alpha : float, default={alpha}
    Strength of the penalty.
cv : int, default=None
    Folds.
.. [1] Luo, Ren and Barber (2023).
""")
FILLED = """A model [1]_.

Parameters
----------
alpha : float, default=0.1
    Strength of the penalty.
cv : int, default=None
    Folds.
    None: no folds.
solver : {"gd"}

References
----------
.. [1] Luo, Ren and Barber (2023)."""


def test_entries_are_filled_in_where_they_are_named():
    @documented(SOME, alpha="0.1")
    class Model:
        """A model [1]_.

        Parameters
        ----------
        {alpha, cv}
            None: no folds.
        solver : {"gd"}

        References
        ----------
        {Luo}
        """

    assert getdoc(Model) == FILLED


def test_a_name_that_is_in_no_table_raises():
    class Model:
        """{alpha}"""

    with pytest.raises(KeyError, match="alpha"):
        documented({})(Model)


@pytest.mark.slow
def test_classes_are_made_without_docstrings():
    code = "import skacv; assert skacv.TrajectoryLasso.__doc__ is None"
    subprocess.run([sys.executable, "-OO", "-c", code], check=True)
