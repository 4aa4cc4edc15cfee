"""What the page of a class lists: the methods that it has, and every text once."""

import re
from functools import cached_property
from inspect import getattr_static, getdoc, isclass
from itertools import chain, dropwhile, takewhile
from pathlib import Path

from numpydoc.docscrape import ClassDoc
from numpydoc.docscrape_sphinx import SphinxDocString
from sphinx.ext.autosummary import import_by_name

from skacv import TrajectoryEarlyStoppingCV

# Methods of scikit-learn's base classes that users call.
OF_SCIKIT_LEARN = set(
    "fit predict predict_log_proba predict_proba decision_function transform "
    "fit_transform score get_params set_params".split()
)
PLUMBING = re.compile(r"get_metadata_routing|set_\w+_request")
LAST = ("get_params", "set_params")

process_param = SphinxDocString._process_param
# Methods and properties whose text is on the page of another class: from the full name
# to the one there.
ELSEWHERE = {}


def list_members(app, config):
    """Tell the template what to list, by the full names of the classes."""
    page = (Path(app.srcdir) / "api.rst").read_text()
    names = [f"skacv.{name}" for name in re.findall(r"^   ([\w.]+)$", page, re.M)]
    public = {name: import_by_name(name)[1] for name in names}
    classes = {name: each for name, each in public.items() if isclass(each)}
    config.autosummary_context = {
        "methods_of": {name: methods_of(cls) for name, cls in classes.items()},
        "properties_of": {name: properties_of(cls) for name, cls in classes.items()},
    }
    listed = [*config.autosummary_context.values()]
    ELSEWHERE.update(written_elsewhere(classes, listed))


def written_elsewhere(classes, listed):
    """Members whose text several pages have, and where it stays.

    That is the page of a base class, or the first in the reference. ``listed`` has
    dicts from the full names of classes to the names of their members.
    """
    pages = {}  # from a member's name and text to the classes that list it
    for page, cls in classes.items():
        for name in chain.from_iterable(names[page] for names in listed):
            text = getdoc(getattr_static(cls, name))
            pages.setdefault((name, text), []).append(page)
    for (name, _), there in pages.items():
        first = classes[there[0]]
        bases = [page for page in there if issubclass(first, classes[page])]
        home = min(bases, key=lambda page: len(classes[page].__mro__))
        for page in there:
            if page != home:
                yield f"{page}.{name}", f"{home}.{name}"


def say_once(app, what, name, obj, options, lines):
    """Cut a text that another page has to its first paragraph and a link."""
    if name in ELSEWHERE:
        home = ELSEWHERE[name]
        summary = takewhile(str.strip, dropwhile(lambda line: not line.strip(), lines))
        link = f"See :obj:`{home.removeprefix('skacv.')} <{home}>`."
        lines[:] = [*summary, "", link, ""]


def methods_of(cls):
    """Methods of a class: ``fit`` first, then by name, and the parameters last."""
    names = [
        name
        for name in members_of(cls)
        if callable(getattr(cls, name)) and is_there(cls, name)
    ]
    return sorted(names, key=lambda name: (name in LAST, name != "fit", name))


def properties_of(cls):
    """Properties that are not among the attributes of the docstring of a class."""
    described = ClassDoc(cls, config={"show_class_members": False})["Attributes"]
    # A regressor may inherit classes_, and does not describe it.
    left_out = {each.name for each in described} | {"classes_"}
    return [
        name
        for name in members_of(cls)
        if name not in left_out
        and isinstance(getattr_static(cls, name), property | cached_property)
    ]


def members_of(cls):
    """Names of documented members of a class that are meant for its users."""
    for name in dir(cls):
        member = getattr_static(cls, name)
        owner = next(each for each in cls.__mro__ if name in vars(each))
        is_ours = owner.__module__.startswith("skacv") or name in OF_SCIKIT_LEARN
        is_public = not name.startswith("_")
        if is_ours and is_public and not PLUMBING.fullmatch(name) and getdoc(member):
            yield name


def is_there(cls, name):
    """Whether an instance with default parameters has a method."""
    if cls is TrajectoryEarlyStoppingCV:
        return True  # that depends on the estimator: the page lists all methods
    try:
        return hasattr(cls(), name)
    except TypeError:
        return True  # some parameters have no default: all methods are listed


def describe(docstring, param, desc, fake_autosummary):
    """An attribute in the words of its class, also where it is a property."""
    if param.endswith("."):
        return param, desc  # a sentence that refers to another class, with a link
    # numpydoc would put the first sentence of the property in their place.
    return process_param(docstring, param, desc, fake_autosummary and not desc)


def setup(app):
    SphinxDocString._process_param = describe
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("config-inited", list_members)
    # After numpydoc, and before the underscores are escaped.
    app.connect("autodoc-process-docstring", say_once, priority=800)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
