"""The registry of metrics: one registered function appears in every output."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from report_support import gathered, record, write_run, wrong

import agentclinic
from agentclinic.cli import main
from agentclinic.report.card import card
from agentclinic.report.files import render
from agentclinic.results.record import Record
from agentclinic.scoring.metrics import METRICS, SECTIONS, Rows, information, metric
from agentclinic.scoring.rows import row_of
from agentclinic.scoring.stats import Proportion, proportion


@pytest.fixture
def brief() -> Iterator[str]:
    """A newcomer's metric: the share of encounters of at most three turns."""

    @metric("information.brief", title="brief encounters", unit="share", direction="higher")
    def brief(rows: Rows, seed: int) -> Proportion:
        known = [row.turns <= 3 for row in rows if row.turns is not None]
        return proportion(sum(known), len(known))

    yield "brief"
    del METRICS["information.brief"]


def test_a_registered_metric_appears_in_every_output(
    brief: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_run(tmp_path / "run", [record(0), wrong(1, num_turns=9), record(2), record(3, num_turns=None)])

    main(["score", str(folder), "--full"])
    full = " ".join(capsys.readouterr().out.split())
    assert "brief encounters 66.7% (20.8% to 93.9%; 2 of 3) higher is better" in full
    main(["score", str(folder), "--json"])
    assert json.loads(capsys.readouterr().out)["information"][brief]["count"] == 2

    collected = gathered(folder)
    row = "| brief encounters | 66.7% (20.8% to 93.9%; 2 of 3) | higher is better |"
    assert row in render(collected, "md")
    assert row in card(folder)
    page = render(collected, "html").replace("\u00a0", " ")
    assert "brief encounters</th><td>66.7% (20.8% to 93.9%; 2 of 3)</td><td>higher is better</td>" in page
    assert json.loads(render(collected, "json"))["runs"][0]["score"]["information"][brief]["of"] == 3
    lines = csv.DictReader(io.StringIO(render(collected, "csv")))
    assert [line[brief] for line in lines] == ["1.0", "0.0", "1.0", ""]
    frame = agentclinic.load_run(folder).to_pandas()
    assert frame[brief].tolist()[:3] == [1.0, 0.0, 1.0]
    assert frame[brief].isna().tolist() == [False, False, False, True]


@pytest.mark.parametrize("name", ["brief", "nowhere.brief", "information.", "information.two words"])
def test_a_metric_needs_a_section_and_a_key(name: str) -> None:
    with pytest.raises(ValueError, match=r"not SECTION\.KEY"):
        metric(name, title="x")


def test_a_name_is_registered_once() -> None:
    with pytest.raises(ValueError, match="registered twice"):
        metric("information.turns", title="x")


def test_every_metric_says_what_it_measures_and_holds_for_no_rows_at_all() -> None:
    for name, one in METRICS.items():
        assert one.of.__doc__, name
        assert one.value([], 0).value is None, name
    assert {one.section for one in METRICS.values()} == set(SECTIONS)


def test_the_value_of_one_encounter_is_that_of_its_row_alone() -> None:
    rows = [row_of(Record.model_validate(entry)) for entry in (record(0), record(1, num_turns=7))]
    turns = METRICS["information.turns"]
    assert [turns.of_encounter(row) for row in rows] == [3, 7]
    assert information(rows).turns.value == 5
