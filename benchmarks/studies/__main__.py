"""How accurate are estimates over repeats, beside the truth? ``make studies``.

Each study prints a table; ``--output`` puts it in its section of a file, which is kept
under ``benchmarks/results``. Without names all are run whose packages, and tables
(``benchmarks/tables.py``, ``benchmarks/small.py``), are there.
"""

import warnings
from importlib.util import find_spec

from ..framework import STUDIES, arguments, write_sections
from ..small import CLONE
from ..tables import FOLDER
from . import (  # noqa: F401
    averages,
    coefficients,
    default_models,
    estimates,
    intervals,
    iterates,
    kernels,
    leave_one_out,
    scores,
    steps,
)

# Needs that are folders, not packages.
FOLDERS = {"tables": FOLDER, "small": CLONE}


def is_there(need):
    if need in FOLDERS:
        return FOLDERS[need].exists()
    return find_spec(need) is not None


def printed(name):
    """Print a study as it goes on."""
    title, *paragraphs = STUDIES[name].__doc__.split("\n\n")
    lines = [*(" ".join(paragraph.split()) for paragraph in paragraphs), ""]
    print(f"## {title}\n", *lines, sep="\n", flush=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tables show what runs warn of
        for line in STUDIES[name]():
            lines.append(line)
            print(line, flush=True)
    print()
    return title, "\n".join(lines)


if __name__ == "__main__":
    args = arguments(__doc__, STUDIES)
    possible = [name for name in STUDIES if all(map(is_there, STUDIES[name].needs))]
    command, names = "python -m benchmarks.studies", args.names or possible
    results = {f"{command} {name}": printed(name) for name in names}
    if args.output:
        write_sections(args.output, "Accuracy over repeats", results)
