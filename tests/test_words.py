"""Plain words: public pages say nothing in a vocabulary of their own."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "docs" / "guide").glob("*.md"),
    ]
)

# What readers would not know, and what to say instead. A pattern stands here
# only if it has no other meaning: words such as "reach" or "pull" are left to readers.
WORDS = [
    (r"whitened", "sqrt-weighted, or standardised: say by what"),
    (r"lockstep", "runs side by side, or batched refits"),
    (r"of this doubt|a doubt\b|\bdoubts\b", "standard error, or uncertainty"),
    (
        r"(?:not|be|are|is) told (?:apart|from)\b",
        "distinguish, or: cannot be estimated separately",
    ),
    (
        r"\b(?:is|are|was|were|been|be) told (?:to|not to|the|its|by|of)\b",
        "is set to, is passed, is estimated from, is reported to",
    ),
    (r"\bthe rows? pulls?\b|\brows pull by\b", "derivatives of the loss of a row"),
    (r"\ba row's memory\b|\bmemory of (?:a|the) row\b", "self-influence of a row"),
    (r"\breads? low\b", "is too low"),
    (r"\bbeside (?:it|them)[.;]", "compare with a named thing: relative to ..."),
]
# A preposition that the sentence before, or the name of a parameter, has to complete.
BARE_OF = re.compile(r"(?:\A|(?<=[.:?!] )|(?<=\n\n))(?:[*-] )?Of (?!course\b)")
ITEM = re.compile(r"\n\s*(?=(?:[*-]|\d+\.|\|) )")
FENCED = re.compile(r"^ *(?:```|~~~).*?^ *(?:```|~~~) *$", re.MULTILINE | re.DOTALL)
LITERAL = re.compile(r"``[^`]*``|`[^`]*`|\]\([^)]*\)")


def plain(text):
    """A text without code, one paragraph, list item or entry after another."""
    text = FENCED.sub("", text)
    text = "\n".join(
        line for line in text.splitlines() if not line.lstrip().startswith(">>>")
    )
    return LITERAL.sub("``", text)


def paragraphs(text):
    """Pieces that begin with a sentence: also what is indented below a name."""
    for block in re.split(r"\n\s*\n", ITEM.sub("\n\n", plain(text))):
        piece, depth = [], None
        for line in block.splitlines():
            indent = len(line) - len(line.lstrip())
            if depth is not None and indent != depth and piece:
                yield " ".join(piece)
                piece = []
            piece.append(line.strip())
            depth = indent
        if piece:
            yield " ".join(piece)


def faults(text):
    """What a text should not say, with advice."""
    found = []
    for piece in paragraphs(text):
        if BARE_OF.search(piece):
            found.append(f'"{piece[:60]}...": a sentence begins with its subject')
        found += [
            f'"{match[0]}" in "{piece[:60]}...": say {advice}'
            for pattern, advice in WORDS
            for match in re.finditer(pattern, piece, re.IGNORECASE)
        ]
    return found


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_pages(path):
    assert faults(path.read_text()) == []


@pytest.mark.parametrize(
    "text",
    [
        "Of the gradients that are taken.",
        "Fit a model.\n\nOf two classes the second counts.",
        "Fit.\n\nParameters\n----------\nn_rows : int\n    Of the data.",
        "* one\n* Of another.",
        "The first. Of the second\nnothing is known.",
        "The columns are whitened first.",
        "Refits in lockstep.",
        "Columns that are not told apart.",
        "The estimator is told to\ncompute it.",
        "The estimate reads low.",
        "A sum, and the largest beside it.",
        "The rows pull back.",
    ],
)
def test_what_is_no_plain_word_is_found(text):
    assert len(faults(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "The mean of the rows. It is of the order of n.",
        "Half\nOf course not.",
        "``model.whitened`` and `lockstep` are names.",
        "What gradient descent can reach, and a table beside it all.",
        "```\nOf code\n```",
    ],
)
def test_what_is_plain_is_left(text):
    assert faults(text) == []
