import ast
import re
from doctest import DocTestParser
from importlib import import_module
from pathlib import Path

import pytest

import skacv

EXTENDING = Path(skacv.__file__).parents[1] / "docs" / "extending.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
DEFINITIONS = ast.Import | ast.ImportFrom | ast.ClassDef


@pytest.fixture
def class_of_page(tmp_path, monkeypatch):
    """A function that returns a class of docs/extending.md, which can be pickled."""

    def found(name):
        (block,) = (
            block
            for block in BLOCK.findall(EXTENDING.read_text())
            if f"class {name}(" in block
        )
        examples = DocTestParser().get_examples(block)
        code = "".join(example.source for example in examples) or block
        tree = ast.parse(code)
        tree.body = [node for node in tree.body if isinstance(node, DEFINITIONS)]
        source = "import numpy as np\n" + ast.unparse(tree)
        (tmp_path / f"{name.lower()}_of_page.py").write_text(source)
        monkeypatch.syspath_prepend(tmp_path)
        return getattr(import_module(f"{name.lower()}_of_page"), name)

    return found
