"""The layers import one way, and private imports stay in one file."""

import ast
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import skacv
from skacv._compat import CallbackSupportMixin

ROOT = Path(skacv.__file__).parent
# Every layer may import those to its left.
LAYERS = [
    "exceptions",
    "optim",
    "risk",
    "_training_data",
    "_held_out",
    "_fitting",
    "_reading",
    "_recorded",
    "_recorded_classifier",
    "base",
    "linear_model",
    "kernel",
    "model_selection",
    "inspection",
]
MODULES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))


def imported(path):
    """Absolute names of the modules that a file imports."""
    package = ("skacv", *path.parent.parts)
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *filter(None, [node.module])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def layer(parts):
    name = parts[0].removesuffix(".py") if parts else ""
    return LAYERS.index(name) if name in LAYERS else None


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_imports_go_one_way(path):
    own = layer(path.parts)
    for name in imported(path):
        parts = name.split(".")
        if parts[0] != "skacv" or own is None:
            continue
        other = layer(parts[1:])
        assert other is None or other <= own, f"{path} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_lower_layers_do_without_scikit_learn(path):
    if path.parts[0] in ("optim", "risk"):
        assert not [n for n in imported(path) if n.split(".")[0] == "sklearn"]


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_private_imports_stay_in_compat(path):
    if path.name == "_compat.py":
        return
    for name in imported(path):
        private = any(part.startswith("_") for part in name.split("."))
        assert not (name.startswith("sklearn") and private), f"{path} imports {name}"


# What estimators inherit from scikit-learn and have no business to use.
INHERITED = {
    name
    for base in (BaseEstimator, CallbackSupportMixin)
    for name in dir(base)
    if name.startswith("_") and not name.startswith("__")
}


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_private_attributes_stay_in_compat(path):
    if path.name == "_compat.py":
        return
    nodes = ast.walk(ast.parse((ROOT / path).read_text()))
    used = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    assert not used & INHERITED


def test_public_names_are_documented():
    for name in skacv.__all__:
        public = getattr(skacv, name)
        assert public.__doc__
        assert "Examples" in public.__doc__
        for method in vars(public):
            if not method.startswith("_"):
                assert getattr(public, method).__doc__, f"{name}.{method}"
