"""The layers import one way, and private imports stay in one file."""

import ast
import re
import subprocess
import sys
from inspect import getattr_static, signature
from pathlib import Path
from textwrap import indent

import pytest
from sklearn.base import BaseEstimator

import skacv
from skacv._compat import CallbackSupportMixin

ROOT = Path(skacv.__file__).parent
DESIGN = ROOT.parent / "docs" / "design.md"
# Every layer may import those before it: the list at the head of the design.
LAYERS = re.findall(r"^skacv/(\w+(?:/\w+)?)", DESIGN.read_text(), re.MULTILINE)
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
    """The place of a module in the list, of a room of a package if it has rooms."""
    for depth in (2, 1):
        name = "/".join(parts[:depth]).removesuffix(".py")
        if name in LAYERS:
            return LAYERS.index(name)
    return None


def test_every_module_is_in_the_design():
    listed = DESIGN.read_text().split("```")[1]
    for path in MODULES:
        assert path.name.startswith("__init__") or path.name in listed, path


def test_imports_go_one_way():
    for path in MODULES:
        own = layer(path.parts)
        for name in imported(path):
            parts = name.split(".")
            if parts[0] != "skacv" or own is None:
                continue
            other = layer(parts[1:])
            assert other is None or other <= own, f"{path} imports {name}"


def test_lower_layers_do_without_scikit_learn():
    for path in MODULES:
        is_of_models = path.name in ("approximate_loo.py", "fitted_models.py")
        if path.parts[0] in ("optim", "risk", "converged") and not is_of_models:
            roots = {name.split(".")[0] for name in imported(path)}
            assert "sklearn" not in roots, path


def test_private_imports_stay_in_compat():
    for path in MODULES:
        if path.name == "_compat.py":
            continue
        for name in imported(path):
            private = any(part.startswith("_") for part in name.split("."))
            assert not (name.startswith("sklearn") and private), f"{path}: {name}"


# Layers that an extra brings, and what nothing else may import.
EXTRAS = {
    "jax": {"jax", "optax"},
    "torch": {"torch", "lightning", "pytorch_lightning", "transformers"},
    "dask": {"dask", "distributed"},
    "staged": {"xgboost", "lightgbm", "catboost"},
}


def test_libraries_of_extras_are_imported_by_their_layer_alone():
    for path in MODULES:
        roots = {name.split(".")[0] for name in imported(path)}
        for extra, libraries in EXTRAS.items():
            is_theirs = path.parts[0] == extra
            if extra == "torch":  # skorch is made of it
                is_theirs |= path.name == "skorch_nets.py"
            assert is_theirs or not roots & libraries, path


def test_the_package_does_without_the_libraries_of_extras():
    libraries = sorted(set().union(*EXTRAS.values()))
    code = f"import sys, skacv; assert not set({libraries}) & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT.parent)


OWN = {"self", "cls"}
# What estimators inherit from scikit-learn and have no business to use.
INHERITED = {
    name
    for base in (BaseEstimator, CallbackSupportMixin)
    for name in dir(base)
    if name.startswith("_") and not name.startswith("__")
}


def test_private_attributes_stay_in_compat():
    for path in MODULES:
        if path.name == "_compat.py":
            continue
        nodes = ast.walk(ast.parse((ROOT / path).read_text()))
        used = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        assert not used & INHERITED, path


def test_public_names_are_documented():
    for name in skacv.__all__:
        doc = getattr(skacv, name).__doc__
        assert doc, name
        assert "Examples" in doc, name


def methods_of(public):
    """Public methods of a class, inherited ones too."""
    named = [method for method in dir(public) if not method.startswith("_")]
    return [method for method in named if callable(getattr(public, method))]


def test_methods_are_documented_with_their_parameters():
    for name in skacv.__all__:
        public = getattr(skacv, name)
        for method in methods_of(public):
            function = getattr(public, method)
            assert function.__doc__, f"{name}.{method}"
            taken = [p for p in signature(function).parameters if p not in OWN]
            # scikit-learn writes those of metadata routing itself.
            if taken and not method.endswith("_request"):
                section = function.__doc__.split("Parameters\n")[1]
                missing = [parameter for parameter in taken if parameter not in section]
                assert not missing, f"{name}.{method}"


def test_properties_are_documented():
    for name in skacv.__all__:
        public = getattr(skacv, name)
        for attribute in dir(public):
            is_property = isinstance(getattr_static(public, attribute), property)
            if is_property and not attribute.startswith("_"):
                assert getattr(public, attribute).__doc__, f"{name}.{attribute}"


# ------------------------------------------------------------------ one loop

# What moves coefficients, tangents or followers on by an update.
MOVES = {"take", "advance", "apply", "tangent"}
ENGINE = [path for path in MODULES if path.parts[0] in ("optim", "risk")]


def functions_of(source):
    """Every function of a source with its own name, methods after their class."""

    def within(node, names):
        for child in ast.iter_child_nodes(node):
            own = names
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                own = [*names, child.name]
                if isinstance(child, ast.FunctionDef):
                    yield ".".join(own), child
            yield from within(child, own)

    return within(ast.parse(source), [])


def repeated(function):
    """What a function does again and again: bodies of loops, and comprehensions."""
    for node in ast.walk(function):
        if isinstance(node, (ast.For, ast.While)):
            yield from node.body
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            yield node.elt
        elif isinstance(node, ast.DictComp):
            yield from (node.key, node.value)


def called_methods(node):
    """Names of the methods that are called in a node, those of NumPy left out."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            owner = call.func.value
            if not (isinstance(owner, ast.Name) and owner.id == "np"):
                yield call.func.attr


def loops_that_move(source):
    """Functions in which a loop moves something on by updates."""
    return {
        name
        for name, function in functions_of(source)
        if any(MOVES & set(called_methods(node)) for node in repeated(function))
    }


def in_engine(find):
    """What is found in skacv/optim and skacv/risk, by file."""
    return {
        (path.as_posix(), name)
        for path in ENGINE
        for name in find((ROOT / path).read_text())
    }


def test_one_loop_takes_updates():
    """No other loop calls a method that moves coefficients on by an update.

    The steps of a pass on its batches are the inside of one update.
    """
    assert in_engine(loops_that_move) == {
        ("optim/trajectory.py", "iterate"),
        ("optim/updates.py", "Pass.parts"),
    }


@pytest.mark.parametrize(
    "body",
    [
        "for taken in trajectory.updates():\n    state = taken.update.advance(state)",
        "for t in range(9):\n    follower.take(updates[t])",
        "while t < 9:\n    coef = update.apply(coef, coef, gradient, penalty)",
        "states = [follower.take(taken) for taken in updates]",
    ],
)
def test_a_second_loop_is_found(body):
    source = "class Own:\n  def loop(self):\n" + indent(body, "    ")
    assert loops_that_move(source) == {"Own.loop"}
