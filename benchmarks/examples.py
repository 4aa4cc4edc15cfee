"""What does every example print? ``python -m benchmarks.examples``.

Kept under ``benchmarks/results``, since the manual quotes it.
"""

import ast
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from .framework import arguments, write_sections

EXAMPLES = Path(__file__).parents[1] / "examples"
EXTRA = re.compile(
    r"^(?:from skacv\.|from |import )(jax|torch|skorch|lightning|transformers|keras)\b",
    re.MULTILINE,
)


def missing_extras(path):
    """Libraries of extras that an example imports, and that are not installed."""
    needed = sorted(set(EXTRA.findall(path.read_text())))
    return [extra for extra in needed if find_spec(extra) is None]


def printed(path):
    """Run an example as a user would."""
    command = f"python examples/{path.name}"
    print(f"{command}\n", flush=True)
    finished = subprocess.run(
        [sys.executable, str(path)],
        env={**os.environ, "MPLBACKEND": "Agg"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    print(finished.stdout, flush=True)
    title = ast.get_docstring(ast.parse(path.read_text())).splitlines()[0]
    return title, f"```text\n{finished.stdout.strip()}\n```"


if __name__ == "__main__":
    paths = {path.stem: path for path in sorted(EXAMPLES.glob("plot_*.py"))}
    args = arguments(__doc__, paths)
    results = {}
    for path in map(paths.get, args.names or paths):
        if missing := missing_extras(path):
            print(f"{path.stem} is skipped: it needs {', '.join(missing)}\n")
        else:
            results[f"python examples/{path.name}"] = printed(path)
    if args.output:
        write_sections(args.output, "What the examples print", results)
