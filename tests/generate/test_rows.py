"""Files of MedQA questions in the formats people have."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from generate_support import question, write_questions

from agentclinic.errors import InputError
from agentclinic.generate.medqa import select_questions
from agentclinic.generate.rows import read_rows
from agentclinic.generate.source import Selection

ROWS = [question(0), question(1)]


def selected(path: Path) -> Selection:
    return select_questions(path)


@pytest.fixture
def expected(tmp_path: Path) -> tuple[str, ...]:
    return selected(write_questions(tmp_path / "expected" / "q.jsonl", ROWS)).keys


def parquet(path: Path, rows: list[dict[str, Any]]) -> Path:
    duckdb = import_module("duckdb")
    lines = write_questions(path.with_suffix(".ndjson"), rows)
    duckdb.connect().execute(f"COPY (FROM read_json('{lines}')) TO '{path}' (FORMAT parquet)")
    return path


def saved_to_disk(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """A split as `datasets.save_to_disk` writes it."""
    arrow = import_module("pyarrow")
    folder.mkdir(parents=True)
    for name in ("dataset_info.json", "state.json"):
        (folder / name).write_text("{}")
    table = arrow.Table.from_pylist(rows)
    with arrow.ipc.new_stream(str(folder / "data-00000-of-00001.arrow"), table.schema) as stream:
        stream.write_table(table)
    return folder


def test_json_as_an_array_or_as_lines(tmp_path: Path, expected: tuple[str, ...]) -> None:
    (tmp_path / "array.json").write_text(json.dumps(ROWS, indent=1))
    assert selected(tmp_path / "array.json").keys == expected
    assert selected(write_questions(tmp_path / "lines.json", ROWS)).keys == expected


def test_parquet_with_options_as_a_struct_or_as_a_list(tmp_path: Path, expected: tuple[str, ...]) -> None:
    listed = [{**row, "options": [{"key": k, "value": v} for k, v in row["options"].items()]} for row in ROWS]

    assert selected(parquet(tmp_path / "struct.parquet", ROWS)).keys == expected
    assert selected(parquet(tmp_path / "list.parquet", listed)).keys == expected


def test_what_save_to_disk_writes_as_one_split_or_as_several(tmp_path: Path, expected: tuple[str, ...]) -> None:
    saved_to_disk(tmp_path / "medqa" / "test", ROWS[:1])
    saved_to_disk(tmp_path / "medqa" / "train", ROWS[1:])
    (tmp_path / "medqa" / "dataset_dict.json").write_text("{}")

    assert selected(tmp_path / "medqa").keys == expected
    assert selected(tmp_path / "medqa" / "test").keys == expected[:1]


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("q.json", "[{]", "q.json line 1: not valid JSON"),
        ("q.json", "[" * 100_000, "q.json line 1: not valid JSON"),
        ("q.json", "[1]", "q.json line 1: expected a JSON object"),
        ("q.parquet", "no", "q.parquet: cannot be read as Parquet"),
        ("q.arrow", "no", "q.arrow: cannot be read as Arrow"),
        ("q.csv", "question", r"q.csv: not a file of questions \(.jsonl, .json, .parquet, .arrow\)"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(name: str, content: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=complaint):
        list(read_rows(tmp_path / name))


def test_a_byte_changed_anywhere_in_an_arrow_file_is_noticed_or_harmless(tmp_path: Path) -> None:
    (file,) = saved_to_disk(tmp_path / "train", [{"a": "x"}]).glob("*.arrow")
    content = file.read_bytes()
    refused = 0
    for place in range(len(content)):
        file.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        try:
            assert len(list(read_rows(file))) < 2
        except InputError:
            refused += 1
    assert refused > 50


@pytest.mark.parametrize("shape", ["nulls", "empty objects", "one list", "nulls in objects", "no columns"])
def test_a_small_arrow_file_that_claims_billions_of_values_is_refused(shape: str, tmp_path: Path) -> None:
    arrow = import_module("pyarrow")
    many = 2**31 - 1
    nulls = arrow.nulls(many)
    column = {
        "nulls": lambda: nulls,
        "empty objects": lambda: arrow.StructArray.from_buffers(arrow.struct([]), many, [None]),
        "one list": lambda: arrow.ListArray.from_arrays(arrow.array([0, many], arrow.int32()), nulls),
        "nulls in objects": lambda: arrow.StructArray.from_arrays([nulls], ["a"]),
        "no columns": lambda: nulls,
    }[shape]()
    table = arrow.table({"question": column}).select([] if shape == "no columns" else ["question"])
    with arrow.ipc.new_stream(str(tmp_path / "q.arrow"), table.schema) as stream:
        stream.write_table(table)
    assert (tmp_path / "q.arrow").stat().st_size < 1000

    with pytest.raises(InputError, match=r"q.arrow: cannot be read as Arrow \(it claims to hold far more values"):
        next(read_rows(tmp_path / "q.arrow"))


def test_parquet_is_read_row_by_row_so_that_a_million_empty_ones_end_at_the_first(tmp_path: Path) -> None:
    file = tmp_path / "q.parquet"
    import_module("duckdb").connect().execute(
        f"COPY (SELECT NULL::VARCHAR AS question FROM range(1000000)) TO '{file}' (FORMAT parquet)"
    )
    rows = read_rows(file)

    assert [next(rows)[0] for _ in range(2500)][-1] == f"{file} row 2499"
    with pytest.raises(InputError, match=r"q.parquet row 0: question is missing"):
        selected(file)
