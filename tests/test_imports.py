"""What ``import skacv`` brings along: nothing heavy that scikit-learn does without."""

import subprocess
import sys
from pathlib import Path

import pytest

import skacv

# What the package takes of scikit-learn, which imports NumPy, SciPy and joblib.
SCIKIT_LEARN = (
    "from sklearn import compose, decomposition, ensemble, feature_extraction, "
    "feature_selection, impute, isotonic, kernel_ridge, linear_model, metrics, "
    "model_selection, multioutput, pipeline, preprocessing, svm"
)
HEAVY = {
    "IPython",
    "catboost",
    "dask",
    "distributed",
    "jax",
    "lightning",
    "lightgbm",
    "matplotlib",
    "optax",
    "pandas",
    "rich",
    "sklearn.datasets",
    "sklearn.inspection",
    "sksurv",
    "torch",
    "transformers",
    "xgboost",
}


@pytest.fixture(scope="module")
def imported():
    """Modules that come with skacv, in a process in which warnings are errors."""
    code = f"""
import sys, warnings
{SCIKIT_LEARN}
before = set(sys.modules)
warnings.simplefilter("error")
import skacv
print(*set(sys.modules) - before)
"""
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(skacv.__file__).parents[1],
        check=True,
        capture_output=True,
        text=True,
    )
    return set(found.stdout.split())


def test_nothing_heavy_is_imported(imported):
    assert "skacv" in imported
    assert not imported & HEAVY


def test_checks_of_parts_are_imported_where_they_are_used(imported):
    assert "skacv.testing" not in imported
    code = "import sys, skacv.testing; assert 'pytest' not in sys.modules"
    root = Path(skacv.__file__).parents[1]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)


def test_no_other_package_is_imported(imported):
    """NumPy before 1.26 imports its types where they are first needed.

    Scikit-learn before 1.9 does not import narwhals.
    """
    packages = {name.split(".")[0] for name in imported}
    assert packages <= {"skacv", "numpy", "narwhals", *sys.stdlib_module_names}
