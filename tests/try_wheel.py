"""Whether a wheel has what it should and works: run by ``make dist``.

``python -I tests/try_wheel.py WHEEL``, from outside the repository, in an environment
with that wheel alone.
"""

import sys
from importlib.metadata import metadata, version
from pathlib import Path
from zipfile import ZipFile

from sklearn.datasets import load_diabetes
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skacv


def check_files(wheel):
    """The package and what says of it, nothing else."""
    names = ZipFile(wheel).namelist()
    packages = {name.split("/")[0] for name in names}
    assert packages == {"skacv", f"skacv-{skacv.__version__}.dist-info"}, packages
    strange = [name for name in names if "test" in name or "benchmark" in name]
    assert not strange, strange
    # Nothing is bundled that would have a licence of its own.
    others = [n for n in names if n.startswith("skacv/") and not n.endswith(".py")]
    assert others == ["skacv/py.typed"], others
    assert any(name.endswith("licenses/LICENSE") for name in names)
    print(f"{Path(wheel).name}: {len(names)} files")


def check_installed():
    """What is imported is the wheel, of the version that it says."""
    assert Path(skacv.__file__).is_relative_to(sys.prefix), skacv.__file__
    assert version("skacv") == skacv.__version__
    assert metadata("skacv")["License-Expression"] == "BSD-3-Clause"


def fit():
    """A model that stops itself, and an interval."""
    X, y = load_diabetes(return_X_y=True)
    ridge = skacv.IterativeRidge(keep_data=True)
    model = make_pipeline(StandardScaler(), skacv.TrajectoryEarlyStoppingCV(ridge))
    scaler, stopped = model.fit(X, y)
    print(f"iterate {stopped.best_iter_}, expected {stopped.best_score_:.0f}")
    lower, upper = stopped.predict_interval(scaler.transform(X[:1]))[0]
    assert lower < model.predict(X[:1])[0] < upper
    print(f"interval of the first row: {lower:.0f} to {upper:.0f}")


if __name__ == "__main__":
    check_files(sys.argv[1])
    check_installed()
    fit()
