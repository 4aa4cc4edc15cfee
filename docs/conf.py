"""How the manual is built: ``make docs``, warnings are errors."""

import re
import sys
import warnings
from pathlib import Path
from textwrap import fill

from docutils.nodes import reference
from sphinx_gallery.sorting import ExplicitOrder

import skacv

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

project = "skacv"
author = "The skacv developers"
project_copyright = "The skacv developers"
version = release = skacv.__version__

extensions = [
    "mathml",
    "members",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "inherited_source",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
nitpicky = True
toc_object_entries_show_parents = "hide"

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
# Docstrings say what parameters are.
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# As the page of the gallery has them.
EXAMPLES = HERE.parent / "examples"
IN_ORDER = re.findall(r"plot_\w+\.py", (EXAMPLES / "index.rst").read_text())
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "examples",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("skacv",),
    "filename_pattern": r"plot_",
    "copyfile_regex": r"index\.rst",
    "within_subsection_order": ExplicitOrder(IN_ORDER),
    "minigallery_sort_order": ExplicitOrder(
        [str(EXAMPLES / name) for name in IN_ORDER]
    ),
    "image_scrapers": ("thumbnails.one_panel",),
    "thumbnail_size": (680, 476),
    "image_srcset": ["2x"],
    # Scripts read options; what a notebook was started with is not theirs.
    "first_notebook_cell": "import sys\n\nsys.argv = sys.argv[:1]\n%matplotlib inline",
    "download_all_examples": False,
    "show_memory": False,
    "remove_config_comments": True,
    "only_warn_on_example_error": False,
    "abort_on_example_error": True,
}


def format_warning(message, category, *place):
    """A warning of an example, without the path where the manual is built."""
    return fill(f"{category.__name__}: {message}", 88) + "\n"


warnings.formatwarning = format_warning

html_theme = "pydata_sphinx_theme"
html_title = f"skacv {release}"
html_static_path = ["_static"]
html_css_files = ["skacv.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_toc_level": 2,
    # Quickstart, user guide, examples and API; the others are in a menu.
    "header_links_before_dropdown": 4,
    "navigation_with_keys": False,
    "secondary_sidebar_items": {
        "**": ["page-toc", "sg_download_links"],
        "index": [],
        "examples/index": [],
    },
    "footer_start": ["copyright"],
    "footer_end": [],
}
# Pages that are no section: their width goes to the text.
ALONE = (
    "index api quickstart coming_from estimates questions theory comparison results "
    "references changelog extending design contributing"
)
html_sidebars = {page: [] for page in [*ALONE.split(), "_modules/**"]}

# Pages of others, by the name of what they document.
ELSEWHERE = {
    "sklearn.": "https://scikit-learn.org/stable/modules/generated/{}.html",
    "joblib.": "https://joblib.readthedocs.io/en/stable/generated/{}.html",
    "numpy.": "https://numpy.org/doc/stable/reference/generated/{}.html",
    "pandas.": "https://pandas.pydata.org/docs/reference/api/{}.html",
}
# Sections that docstrings inherited from scikit-learn refer to.
SECTIONS = {
    name: f"https://scikit-learn.org/stable/modules/model_evaluation.html#{anchor}"
    for name, anchor in {
        "r2_score": "r2-score",
        "accuracy_score": "accuracy-score",
    }.items()
}
SECTIONS["metadata_routing"] = "https://scikit-learn.org/stable/metadata_routing.html"
# A name that ends in an underscore, outside of literals, roles and prompts.
FITTED_NAME = re.compile(r"``.*?``|`[^`]*`|\b([A-Za-z]\w*)_(?![\w`])")


def link_elsewhere(app, env, node, contnode):
    """A link to the documentation of another package."""
    target = node.get("reftarget", "")
    address = SECTIONS.get(target)
    for prefix, pattern in ELSEWHERE.items():
        if target.startswith(prefix):
            address = pattern.format(target)
    return address and reference("", "", contnode, refuri=address)


def link_within(app, env, node, contnode):
    """A link to a name of the package, from where Sphinx does not look for it."""
    if node.get("refdomain") != "py":
        return
    page, role, target = node["refdoc"], node["reftype"], node["reftarget"]
    domain = env.get_domain("py")
    # Docstrings of a subpackage name classes of the package, and docstrings that
    # SelfStoppingRegressor inherits name methods that only its base class has.
    for owner in ("skacv", "skacv.TrajectoryEarlyStoppingCV"):
        name = f"{owner}.{target}"
        if link := domain.resolve_xref(
            env, page, app.builder, role, name, node, contnode
        ):
            return link


def keep_underscores(app, what, name, obj, options, lines):
    """To reStructuredText, n_iter_ is a link to n_iter; here it is a name."""

    def escaped(match):
        return match[0] if match[1] is None else f"{match[1]}\\_"

    for number, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[number] = FITTED_NAME.sub(escaped, line)


def link_to_pages(app, path, docname, content):
    """Included files link to files of the repository that are pages of the manual."""
    for file, page in INCLUDED.items():
        content[0] = content[0].replace(f"({file}", f"({page}")


# Files of the repository that have pages in the manual: as files that are included
# link to them, and as pages do.
INCLUDED = {
    "benchmarks/results/": "docs/results/",
    "CHANGELOG.md": "docs/changelog.md",
    "CONTRIBUTING.md": "docs/contributing.md",
}
FILES = {
    re.compile(r"\(((?:\.\./)*)\.\./benchmarks/results/"): r"(\1results/",
    re.compile(r"\(((?:\.\./)*)\.\./examples/(\w+)\.py\)"): r"(\1examples/\2.rst)",
    re.compile(r"\(((?:\.\./)*)\.\./README\.md"): r"(\1index.md",
}


def link_pages_to_pages(app, docname, content):
    """Pages link to files, so that they can be read where the repository is."""
    for pattern, page in FILES.items():
        content[0] = pattern.sub(page, content[0])


def setup(app):
    app.connect("include-read", link_to_pages)
    app.connect("source-read", link_pages_to_pages)
    app.connect("missing-reference", link_within)
    app.connect("missing-reference", link_elsewhere)
    # After numpydoc.
    app.connect("autodoc-process-docstring", keep_underscores, priority=900)
