"""Numbers that the manual quotes, and where they have been printed.

A comment in a page names the committed output that the numbers of its paragraph
or table row are from; standing alone, it speaks for the next table or paragraph:

    <!-- bench path cv_path_; studies criteria -->

is ``benchmarks/results/bench.md``, rows of the benchmark "path" that say "cv_path_",
and the section of ``studies.md`` that ``python -m benchmarks.studies criteria`` has
written. Words in brackets stand together, as in ``[2000 x 3000]``.
``<!-- settings -->`` says that numbers are no results, ``<!-- tests -->`` that
they are bounds that tests hold, ``<!-- former -->`` that code printed them which has
been mended since.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?%?")
HELD_ELSEWHERE = ("settings", "tests", "former")
COMMENT = re.compile(r"<!--(.*?)-->")
CODE = re.compile(r"^ *```.*?^ *```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
NO_QUOTATION = re.compile(
    r"\]\([^)]*\)|arXiv:[\d.]+|<[^>]*>|(?:Python|scikit-learn) [\d.]+"
)
TABLE_ROW = re.compile(r"^\s*\|")
HEADER = re.compile(r"^ *\|.*\n *\|[-|]+\| *\n", re.MULTILINE)
WORD = re.compile(r"\[([^\]]*)\]|(\S+)")
ITEM = re.compile(r"^\s*[*-] ")


@dataclass(frozen=True)
class Quotation:
    """A paragraph, an item or a table row, and the sources that it names."""

    text: str
    sources: tuple

    @property
    def numbers(self):
        return NUMBER.findall(NO_QUOTATION.sub(" ", COMMENT.sub("", self.text)))

    @property
    def looks_measured(self):
        """Whether there is a number that is no whole one."""
        return any(set(number) & set(".e%") for number in self.numbers)

    def unfounded(self):
        """Numbers that no source has, to the digits that are quoted."""
        if set(self.sources) & set(HELD_ELSEWHERE):
            return []
        lines = [
            line for source in self.sources for line in lines_of(*words_of(source))
        ]
        # A row of a table is compared with those that begin as it does, if any do.
        alike = [line for line in lines if first_cell(line) == first_cell(self.text)]
        is_row = TABLE_ROW.match(self.text) and first_cell(self.text)
        compared = alike if is_row and alike else lines
        printed = {number for line in compared for number in NUMBER.findall(line)}
        return [
            quoted
            for quoted in self.numbers
            if not any(is_rounded(quoted, number) for number in printed)
        ]


def words_of(source):
    """A file, a name in it, and words or phrases that its lines say."""
    return [phrase or word for phrase, word in WORD.findall(source)]


def first_cell(line):
    return line.strip().strip("|").split("|")[0].strip()


def is_rounded(quoted, printed):
    """Whether ``quoted`` is ``printed`` to fewer digits, or the same.

    A share of 0.026 may be quoted as 2.6%, a ratio of 1.009 or 0.991 as 0.9% more or
    less.
    """
    mantissa, _, exponent = quoted.strip("%").partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    values = [value_of(printed)]
    if quoted.endswith("%") and not printed.endswith("%"):
        if "." not in printed:
            return False
        share = values[0]
        values = [100 * share, 100 * (share - 1), 100 * (1 - share)]
    elif printed.endswith("%") and not quoted.endswith("%"):
        return False
    return any(
        abs(value_of(quoted) - value) <= 0.5 * unit * (1 + 1e-6) for value in values
    )


def value_of(number):
    return float(number.strip("%").replace(",", ""))


@cache
def lines_of(file, name, *words):
    """What a benchmark, study or example has printed, where it says the words."""
    text = (RESULTS / f"{file}.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith(f"| {name} |")]
    for section in text.split("\n## ")[1:]:
        command = section.partition("`")[2].partition("`")[0]
        if command.endswith((f" {name}", f"/{name}.py")):
            rows += section.splitlines()
    found = [row for row in rows if all(word in row for word in words)]
    if not found:
        raise ValueError(f"{file}.md has no {name} with {words}.")
    return found


def quotations_of(path):
    """All paragraphs, items and table rows of a page outside of code."""
    found, ahead = [], ()
    text = HEADER.sub("", CODE.sub("", path.read_text()))
    for block in re.split(r"\n\s*\n", text):
        for text in units_of(block):
            sources = sources_of(text)
            if not COMMENT.sub("", text).strip():
                ahead = sources
                continue
            found.append(Quotation(text, sources or ahead))
        if not all(COMMENT.fullmatch(line.strip()) for line in block.splitlines()):
            ahead = ()
    return found


def units_of(block):
    """Rows of tables one by one, items, and the lines of a paragraph together."""
    units = []
    for line in block.splitlines():
        alone = (
            TABLE_ROW.match(line) or ITEM.match(line) or COMMENT.fullmatch(line.strip())
        )
        if units and not alone and not TABLE_ROW.match(units[-1]):
            units[-1] += f"\n{line}"
        else:
            units.append(line)
    return units


def sources_of(text):
    return tuple(
        source.strip()
        for comment in COMMENT.findall(text)
        for source in comment.split(";")
    )
