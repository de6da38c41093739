"""What may be shown: text, markup and tables in which nothing from a record can act on a page, terminal or spreadsheet.

Markup escapes text unless it was made here. Sections of a score are drawn from the same rows in every format.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from html import escape

from agentclinic.jsonl import inert
from agentclinic.scoring.format import plural as plural

CLIPPED = 240
"""Characters of a diagnosis or message that a table shows; the transcript has all of them."""
DASH = "–"
"""A number or text that is not known, in a table."""
Cells = Sequence[object]
_FORMULA = ("=", "+", "-", "@", "\t", "\n", "|", "%")
"""A spreadsheet may run a cell that starts with one of these as a formula or a command."""


def line(text: str | None, most: int = CLIPPED) -> str:
    """The text on one line, clipped to fit a table."""
    # Clip first: a model may have said a megabyte.
    flat = " ".join(inert((text or "")[: 4 * most]).split())
    return flat if len(flat) <= most and len(text or "") <= 4 * most else flat[: most - 1].rstrip() + "…"


def dollars(value: float | None) -> str:
    """Money, in cents only below ten dollars."""
    if value is None:
        return DASH
    return f"${value:,.0f}" if value >= 10 or value == round(value) else f"${value:,.2f}"


class Html(str):
    """Text that already is markup."""

    __slots__ = ()


_VOID = frozenset({"meta", "br", "hr", "input", "col"})
_EMPTY = frozenset({"line", "rect", "circle", "path", "polygon"})
"""Elements of drawings, closed in place when they have no children."""


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """An element; `class_` becomes `class`, `data_run` becomes `data-run`.

    An attribute that is None or False is left out; True stands alone. Children are `Html`, text (escaped), None
    (nothing) or lists of those.
    """
    opened = "".join(
        _attribute(key, value) for key, value in attributes.items() if value is not None and value is not False
    )
    if not children and name in _VOID:
        return Html(f"<{name}{opened}>")
    if not children and name in _EMPTY:
        return Html(f"<{name}{opened}/>")
    return Html(f"<{name}{opened}>{join(children)}</{name}>")


def join(children: object) -> Html:
    """Children one after another."""
    if children is None:
        return Html("")
    if isinstance(children, Html):
        return children
    if isinstance(children, Iterable) and not isinstance(children, str):
        return Html("".join(join(child) for child in children))
    return Html(escape(_BOUND.sub("\u00a0\\1\u00a0", inert(str(children))), quote=False))


_BOUND = re.compile(r"(?<=[\d%]) (of|to) (?=[-+$]?\d)")
"""The spaces in `3 of 4` and `37% to 60%`, at which no line breaks."""


def _attribute(key: str, value: object) -> str:
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(inert(str(value)), quote=True)}"'


@dataclass(frozen=True)
class Section:
    """A table with its title and what must be said about it."""

    title: str
    rows: Sequence[Cells]
    notes: Sequence[str] = ()
    head: Sequence[str] = ("", "value (95% interval)", "")
    words: Sequence[int] = ()
    """The columns of text, if the others are numbers; such a table is stacked on a phone."""

    def text(self) -> list[str]:
        """For the terminal: the title, the rows indented below it (with the head, if rows have one), the notes."""
        lines = text_table(self.head, ([str(cell) for cell in row] for row in self.rows))[not self.head[0] :]
        return [self.title, *(f"  {line}" for line in (*lines, *self.notes))]

    def markdown(self) -> str:
        """For Markdown: a heading, the table, the notes."""
        table = "\n".join(markdown_table(self.head, self.rows))
        return "\n\n".join([f"### {markdown_cell(self.title)}", table, *map(markdown_cell, self.notes)])

    def html(self) -> Html:
        """For a page: the table and the notes; the title is the table's caption."""
        made = html_table(
            self.title, self.head, self.rows, self.words or range(len(self.head)), stacked=bool(self.words)
        )
        return tag("div", made, [tag("p", note, class_="note") for note in self.notes], class_="narrow")


def text_table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Collection[int] = ()) -> list[str]:
    """The lines of a table with aligned columns; those in `numbers` are aligned on the right."""
    cells = [list(head), *(list(row) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    return [
        "  ".join(
            cell.rjust(width) if column in numbers else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


class Recorded(str):
    """Text from a record, which Markdown shows as code."""

    __slots__ = ()


class Quoted(str):
    """Markdown that may stand in a cell as it is."""

    __slots__ = ()


def markdown_cell(value: object) -> str:
    """A value that cannot break out of its cell in a Markdown table."""
    if isinstance(value, Recorded):
        return quoted(value)
    if isinstance(value, Quoted):
        return value
    text = " ".join(str(value).split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
    return text.replace("`", "'")


def quoted(text: str | None) -> Quoted:
    """Text from a record as a code span, so that no markup, mention, link or table border in it counts."""
    flat = line(text, 160).replace("|", "\\|")
    if not flat:
        return Quoted(DASH)
    fence = "`" * (max((len(run) for run in re.findall(r"`+", flat)), default=0) + 1)
    pad = " " if "`" in flat else ""
    return Quoted(f"{fence}{pad}{flat}{pad}{fence}")


def markdown_table(head: Sequence[str], rows: Iterable[Iterable[object]]) -> list[str]:
    """The lines of a Markdown table; cells are made harmless."""
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    return lines + [f"| {' | '.join(markdown_cell(cell) for cell in row)} |" for row in rows]


def html_table(
    caption: str,
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    words: Iterable[int] = (0,),
    *,
    stacked: bool = False,
) -> Html:
    """A table whose first cells head the rows; `words` are the columns of text. The caption is for screen readers.

    On a phone, the cells of a `stacked` table stand one below the other, each with the name of its column.
    """
    text = frozenset(words)

    def cell(place: int, content: object) -> Html:
        kind, named = None if place in text else "num", head[place] if stacked else None
        name, scope = ("th", "row") if place == 0 else ("td", None)
        return tag(name, content, scope=scope, class_=kind, data_head=named)

    heads = [tag("th", name, scope="col", class_=None if i in text else "num") for i, name in enumerate(head)]
    body = [tag("tr", [cell(place, content) for place, content in enumerate(row)]) for row in rows]
    hidden = tag("caption", caption, class_="hidden")
    made = tag(
        "table", hidden, tag("thead", tag("tr", heads)), tag("tbody", body), class_="stacked" if stacked else None
    )
    return scrolling(caption, made)


def scrolling(label: str, *parts: object) -> Html:
    """A region that scrolls sideways on a narrow screen, also with the keyboard."""
    return tag("div", *parts, class_="scroll", tabindex=0, role="region", aria_label=label)


def csv_table(head: Cells, rows: Iterable[Cells]) -> str:
    """A table as CSV, with cells that no spreadsheet runs."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([safe(cell) for cell in row] for row in rows)
    return out.getvalue()


def safe(value: object) -> object:
    """A cell that no spreadsheet runs: text that looks like a formula gets an apostrophe in front."""
    if not isinstance(value, str):
        return value
    text = inert(value)
    return f"'{text}" if text.startswith(_FORMULA) or text.lstrip().startswith(_FORMULA) else text
