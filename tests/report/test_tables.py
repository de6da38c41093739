"""Text from records cannot act on a page, a Markdown table or a spreadsheet, and transcripts survive packing."""

from __future__ import annotations

import base64
import json
import zlib

import pytest

from agentclinic.jsonl import inert
from agentclinic.report.collect import BLOCK, Packer
from agentclinic.report.tables import line, markdown_table, quoted, safe


def test_characters_that_act_invisibly_are_shown_by_their_number() -> None:
    assert inert("a\u202eb\x00c\x1b[31m\r\nd\ud800") == "a⟨U+202E⟩b⟨U+0000⟩c⟨U+001B⟩[31m\nd⟨U+D800⟩"
    assert inert("Ménière’s disease\t→ 37 °C") == "Ménière’s disease\t→ 37 °C"
    assert len(line("x" * 10_000)) == 240
    assert line(" a \n b ") == "a b"


def test_a_markdown_table_keeps_its_columns_whatever_its_cells_say() -> None:
    assert markdown_table(("a", "b"), [("x | y", "`<b>`\n# z")]) == [
        "| a | b |",
        "| --- | --- |",
        "| x \\| y | '&lt;b>' # z |",
    ]


def test_quoted_text_cannot_end_its_quotation() -> None:
    assert quoted("a | b") == "`a \\| b`"
    assert quoted("``` @all") == "```` ``` @all ````"
    assert quoted("<b>\n# x") == "`<b> # x`"
    assert quoted(None) == "–"


@pytest.mark.parametrize(
    "attack", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", " =1", "\n=1", "|x", "%x"]
)
def test_no_cell_is_a_formula(attack: str) -> None:
    assert str(safe(attack)).startswith("'")


def test_cells_that_are_not_formulas_are_unchanged() -> None:
    assert safe("Gout = arthritis") == "Gout = arthritis"
    assert safe(-1.5) == -1.5
    assert safe(None) is None


def test_blocks_stay_small_and_unpack_to_what_was_packed() -> None:
    packer = Packer()
    values = [{"t": f"{number} " + "word " * (number % 400)} for number in range(300)]
    places = [packer.add(value) for value in values]
    packer.add({"t": "x" * (3 * BLOCK)})
    packer.close()
    opened = [json.loads(zlib.decompress(base64.b64decode(block))) for block in packer.blocks]

    assert [opened[block][position] for block, position in places] == values
    assert all(len(json.dumps(block)) < 1.2 * BLOCK for block in opened[:-1])
    assert len(opened[-1]) == 1, "a long transcript has its own block"
