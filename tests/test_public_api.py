"""Public names, parameters, methods and properties are those of ``public_api.txt``.

After a change that is meant, ``python -m tests.test_public_api`` writes the file anew.
"""

import re
from difflib import unified_diff
from importlib import import_module
from inspect import Parameter, isclass, signature
from pathlib import Path
from textwrap import indent

import pytest

import skacv

ROOT = Path(skacv.__file__).parent
EXTENDING = ROOT.parent / "docs" / "extending.md"
FROZEN = Path(__file__).with_name("public_api.txt")
UPDATE = "python -m tests.test_public_api"
INDENT = "    "


def module_name(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def has_public_names(path):
    return re.search(r"^__all__ = ", path.read_text(), re.MULTILINE)


# A module is public if it says what of it is, and no part of its name is private.
PUBLIC = sorted(
    name
    for path in ROOT.rglob("*.py")
    for name in [module_name(path)]
    if "._" not in name and has_public_names(path)
)


def imported(name):
    """A module; None where it needs a library that is not installed."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name.startswith("skacv"):
            raise
        return None


def parameters_of(public):
    """What a class or function is called with, in order, as in its signature."""
    is_called = callable(public) and not getattr(public, "_is_protocol", False)
    if not is_called or (isclass(public) and issubclass(public, Exception)):
        return
    parameters = [
        parameter
        for parameter in signature(public).parameters.values()
        if not parameter.name.startswith("_")
    ]
    marks = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}
    by_keyword = [p for p in parameters if p.kind is Parameter.KEYWORD_ONLY]
    has_mark = any(p.kind is Parameter.VAR_POSITIONAL for p in parameters)
    for parameter in parameters:
        if by_keyword and parameter is by_keyword[0] and not has_mark:
            yield "*"
        yield marks.get(parameter.kind, "") + parameter.name


def members_of(public):
    """Methods and properties of a class, but those that scikit-learn gives it."""
    if not isclass(public):
        return
    parameters = [name.strip("*") for name in parameters_of(public)]
    for name in dir(public):
        owner = next(each for each in public.__mro__ if name in vars(each))
        is_ours = owner.__module__.startswith("skacv")
        is_generated = re.fullmatch(r"_.*|set_\w+_request", name)
        if is_ours and not is_generated and name not in parameters:
            yield "." + name


def section_of(module):
    """The lines of a module: its name, public names, and what each of them has.

    The package has most of its names from its modules, where the rest stands.
    """
    listed_there = names_of_modules() if module is skacv else ()
    lines = [module.__name__]
    for name in sorted(module.__all__):
        lines.append(INDENT + name)
        if name not in listed_there:
            public = getattr(module, name)
            lines += [2 * INDENT + each for each in parameters_of(public)]
            lines += [2 * INDENT + each for each in members_of(public)]
    return "\n".join(lines) + "\n"


def names_of_modules():
    """The public names of all modules but the package itself, of those there are."""
    modules = [imported(name) for name in PUBLIC if name != "skacv"]
    return set().union(*(module.__all__ for module in modules if module))


def frozen_sections():
    """The committed sections, by module."""
    if not FROZEN.exists():
        return {}
    sections = re.split(r"^(?=\S)", FROZEN.read_text(), flags=re.MULTILINE)
    return {section.split()[0]: section for section in sections if section}


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_those_committed(name):
    module = imported(name)
    if module is None:
        pytest.skip(f"{name} needs a library that is not installed")
    found, committed = section_of(module), frozen_sections().get(name, "")
    difference = unified_diff(
        committed.splitlines(), found.splitlines(), "committed", "found", lineterm=""
    )
    assert found == committed, (
        f"The public names of {name} have changed:\n\n"
        + indent("\n".join(difference), INDENT)
        + f"\n\nIf that is meant, `{UPDATE}` writes {FROZEN.name} anew; what goes "
        "away needs a deprecation first, and every change a line in CHANGELOG.md."
    )


def test_committed_modules_are_those_there_are():
    assert list(frozen_sections()) == PUBLIC, f"`{UPDATE}` writes {FROZEN.name} anew."


def imports_of_users():
    """Modules and names that users are told to import to extend the package."""
    found = re.findall(r"from (skacv[\w.]*) import (.*)", EXTENDING.read_text())
    return [(module, name) for module, names in found for name in names.split(", ")]


@pytest.mark.parametrize(("module", "name"), imports_of_users())
def test_what_users_are_told_to_import_is_public(module, name):
    assert module in PUBLIC
    assert name in import_module(module).__all__


def test_parameters_are_read_in_order():
    def called(first, *, second, **others):
        pass

    class Called:
        def __init__(self, first, _second=0, *rest, third=1):
            pass

    assert list(parameters_of(called)) == ["first", "*", "second", "**others"]
    assert list(parameters_of(Called)) == ["first", "*rest", "third"]
    assert list(parameters_of(UserWarning)) == list(parameters_of(3)) == []


def main():
    """Write the file; modules that cannot be imported here keep their sections."""
    committed, sections = frozen_sections(), []
    for name in PUBLIC:
        module = imported(name)
        if module is None and name not in committed:
            print(f"{name} is left out: it needs a library that is not installed.")
        sections.append(section_of(module) if module else committed.get(name, ""))
    FROZEN.write_text("".join(sections))
    print(f"Wrote {FROZEN}.")


if __name__ == "__main__":
    main()
