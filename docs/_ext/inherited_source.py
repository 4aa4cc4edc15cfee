"""Links from methods to their source also where a base class has it.

``sphinx.ext.viewcode`` looks for the name of the page, as in ``TrajectoryLasso.fit``.
"""

from functools import cached_property

from sphinx.addnodes import desc_signature
from sphinx.ext.autosummary import import_by_name

# By the module and the name of a page: where the source is.
MODULES = {}


def name_owners(app, doctree):
    """Give every method and property the name that it has in the source."""
    for signature in doctree.findall(desc_signature):
        module, name = signature.get("module"), signature.get("fullname", "")
        if module and "." in name:
            member = import_by_name(f"{module}.{name}")[1]
            if isinstance(member, property):
                member = member.fget
            elif isinstance(member, cached_property):
                member = member.func
            if member.__module__.startswith("skacv"):
                signature["fullname"] = member.__qualname__
                MODULES[module, member.__qualname__] = member.__module__


def module_of(app, module, name):
    return MODULES.get((module, name))


def setup(app):
    # Before viewcode reads the names.
    app.connect("doctree-read", name_owners, priority=400)
    app.connect("viewcode-follow-imported", module_of)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
