"""Formulas as MathML, which browsers draw themselves: nothing is fetched."""

import re

from docutils.nodes import SkipNode
from docutils.utils.math import pick_math_environment
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util.math import get_node_equation_number

# docutils knows all dots of LaTeX but these.
DOTS = re.compile(r"\\dots\b")


def latex_of(node):
    return DOTS.sub(r"\\ldots", node.astext())


def mathml_of(text, **options):
    """MathML whose bars of a norm are all of one height."""
    math = tex2mathml(text, **options)
    return math.replace("<mo>‖</mo>", '<mo stretchy="false">‖</mo>')


def visit_math(translator, node):
    translator.body.append(mathml_of(latex_of(node)))
    raise SkipNode


def visit_displaymath(translator, node):
    if node["number"]:
        number = get_node_equation_number(translator, node)
        translator.body.append(f'<span class="eqno">({number})</span>')
    text = latex_of(node)
    if "\\\\" in text:
        environment = pick_math_environment(text)
        text = f"\\begin{{{environment}}}{text}\\end{{{environment}}}"
    formula = mathml_of(text, as_block=True)
    translator.body.append(f'<div class="formula">{formula}</div>')
    raise SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displaymath, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
