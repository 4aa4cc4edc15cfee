"""Users' scripts pass ``mypy --strict``, and everything public says its types."""

import re
import subprocess
import sys
from inspect import Parameter, isclass, signature, unwrap
from os import devnull
from pathlib import Path

import pytest

import skacv

from .test_public_api import FROZEN, PUBLIC, imported
from .typed_use import main

SCRIPT = Path(__file__).with_name("typed_use.py")
ROOT = Path(skacv.__file__).parents[1]
# Parameters that have no type.
OWN = {"self", "cls"}


def strict(script):
    """What mypy says of a script, with the settings of pyproject.toml."""
    pytest.importorskip("mypy", reason="mypy is not installed")
    settings = "--config-file", "pyproject.toml", "--cache-dir", devnull
    found = subprocess.run(
        [sys.executable, "-m", "mypy", *settings, script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout + found.stderr


def test_a_script_of_the_whole_package_is_strictly_typed():
    assert "no issues found" in (said := strict(SCRIPT)), said


MISTAKES = """
from skacv import Staged, TrajectoryEarlyStoppingCV, TrajectoryLasso
X, y = [[0.0], [1.0]], [0.0, 1.0]
TrajectoryLasso(solver="newton")
TrajectoryLasso(max_iter="many")
TrajectoryLasso().fit(X, y).predict(X).no_such_method()
TrajectoryEarlyStoppingCV(rule="best")
fitted: int = Staged(TrajectoryLasso()).fit(X, y).predict(X)
"""


@pytest.mark.slow
def test_mistakes_are_found(tmp_path):
    script = tmp_path / "mistakes.py"
    script.write_text(MISTAKES)
    lines = re.findall(r"mistakes.py:(\d+): error", said := strict(script))
    assert lines == ["4", "5", "6", "7", "8"], said


def test_the_script_has_every_public_name():
    names = re.findall(r"^ {4}(\w+)$", FROZEN.read_text(), re.MULTILINE)
    used = set(re.findall(r"\w+", SCRIPT.read_text()))
    assert names
    missing = set(names) - used
    assert not missing, f"tests/typed_use.py has no use of {sorted(missing)}"


# Of whatever category: those of our own modules.
@pytest.mark.filterwarnings("error:::skacv")
def test_the_script_runs(capsys):
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    main()
    assert capsys.readouterr().out


def functions_of(public):
    """A function, or ``__init__``, methods and properties of a class, by name."""
    if not isclass(public):
        return {"": public} if callable(public) else {}
    found = {}
    for name in dir(public):
        owner = next(each for each in public.__mro__ if name in vars(each))
        # A protocol has no parameters of its own.
        is_ours = owner.__module__.startswith("skacv")
        is_called = name == "__init__" and not getattr(public, "_is_protocol", False)
        if is_ours and (is_called or not name.startswith("_")):
            found[name] = plain(vars(owner)[name])
    return {name: each for name, each in found.items() if callable(each)}


def plain(member):
    """The function in a method or a property, however it is decorated."""
    for name in ("__func__", "fget", "fn", "func"):
        member = getattr(member, name, None) or member
    return unwrap(member) if callable(member) else member


def unannotated(function):
    """Parameters of a function without a type, and whether the result has none."""
    if not hasattr(function, "__code__"):
        return []
    found = signature(function)
    named = [each for each in found.parameters.values() if each.name not in OWN]
    return [
        *[each.name for each in named if each.annotation is Parameter.empty],
        *(["return"] if found.return_annotation is found.empty else []),
    ]


@pytest.mark.parametrize("module", PUBLIC)
def test_all_that_is_public_is_annotated(module):
    if imported(module) is None:
        pytest.skip(f"{module} needs a library that is not installed")
    for name in imported(module).__all__:
        public = getattr(imported(module), name)
        lacking = {
            part: names
            for part, function in functions_of(public).items()
            if (names := unannotated(function))
        }
        assert not lacking, name
