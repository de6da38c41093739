"""What a report says: groups, twins, key facts, tests, prices, reasons, and the formats other than the page."""

from __future__ import annotations

import base64
import csv
import io
import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from report_support import Json, differential, gathered, in_the_seeds_format, record, write_run, wrong
from runs_support import clinic, only_run
from scipy.stats import binom

from agentclinic.report.encounters import reasons
from agentclinic.report.markdown import quoted
from agentclinic.report.pack import BLOCK, Packer
from agentclinic.report.spreadsheet import safe
from agentclinic.report.statements import left_out, statements
from agentclinic.report.text import inert, line
from agentclinic.results.record import Record
from agentclinic.results.run_data import load_run
from agentclinic.scoring.bands import binomial_band
from agentclinic.scoring.breakdown import Tally, section_of
from agentclinic.scoring.information import KeyFinding
from agentclinic.scoring.orders import Price
from agentclinic.scoring.prices import knowledge_prices
from agentclinic.scoring.score import score


def broken_down(*entries: Json, price_of: Any = knowledge_prices) -> Any:
    tally = Tally(price_of)
    for entry in entries:
        tally.add(Record.model_validate(entry))
    return tally.result()


def noted(number: int, right: bool, **annotations: Any) -> Json:
    return (record if right else wrong)(number, annotations=annotations)


# --- by kind of case ------------------------------------------------------------------------------------------------


def test_accuracy_by_kind_leaves_out_what_is_missing_and_keeps_what_is_not_stated_apart() -> None:
    found = broken_down(
        noted(0, True, Specialty="Neurology", Difficulty="hard", Harm_If_Missed=4),
        noted(1, False, Specialty="Neurology", Difficulty="easy", Harm_If_Missed=4),
        noted(2, True, Specialty=" Urology ", Difficulty="medium"),
        {**noted(3, True, Specialty="Neurology"), "status": "judge_failed", "correct": None},
        noted(4, True, Specialty=["not", "a", "word"], Harm_If_Missed=9),
    ).groups

    assert [(g.name, g.accuracy.count, g.accuracy.of, g.missing) for g in found["specialty"]] == [
        ("Neurology", 1, 2, 1),
        ("Urology", 1, 1, 0),
        ("not stated", 1, 1, 0),
    ]
    assert [g.name for g in found["difficulty"]] == ["easy", "medium", "hard", "not stated"]
    assert [g.name for g in found["harm"]] == ["4", "not stated"]


def test_a_kind_that_no_case_states_is_left_out() -> None:
    assert broken_down(noted(0, True, Specialty="Neurology")).groups.keys() == {"specialty"}
    assert broken_down(in_the_seeds_format(record())).groups == {}


def test_repeats_of_a_case_are_one_case_with_a_note() -> None:
    (group,) = broken_down(*(record(0, repeat=repeat) for repeat in range(3))).groups["specialty"]
    assert (group.cases, group.accuracy.of) == (1, 3)
    assert "too narrow" in group.note


# --- twins ----------------------------------------------------------------------------------------------------------


def twin(number: int, right: bool, said: str = "Gout", **changes: Any) -> Json:
    made = (record if right else wrong)(number, diagnosis_text=said)
    return {**made, "annotations": {"case_id": f"c{number}", "twin_of": f"c{number ^ 1}"}, **changes}


def test_twins_are_told_apart_when_both_are_right() -> None:
    found = broken_down(
        *(twin(0, True), twin(1, True, "Septic arthritis")),
        *(twin(2, True), twin(3, False, "gout")),
        *(twin(4, False, "Influenza"), twin(5, False, "Migraine")),
    ).twins

    assert (found.told_apart.count, found.told_apart.of) == (1, 3)
    assert [(pair.outcome, pair.same_answer) for pair in found.pairs] == [
        ("one right", True),
        ("neither right", False),
        ("told apart", False),
    ]


def test_a_twin_pairs_only_within_its_repeat_and_only_with_an_outcome() -> None:
    missing: Json = {"status": "model_failed", "correct": None}
    found = broken_down(
        *(twin(0, True, repeat=0), twin(1, True, repeat=1)),
        *(twin(2, True), twin(3, True, **missing)),
        {**record(6), "annotations": {"case_id": "x", "twin_of": "x"}},
    ).twins

    assert found.pairs == []
    assert found.without_partner == 4


# --- key facts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "section"),
    [
        ("Patient_Actor/History#2", "history"),
        ("Patient_Actor/Symptoms/Primary_Symptom", "symptoms"),
        ("Patient_Actor/Past_Medical_History", "past_history"),
        ("Physical_Examination_Findings/Vital_Signs/Temperature", "vital_signs"),
        ("Physical_Examination_Findings/Skin_Examination", "examination"),
        ("Test_Results/Chest_X-ray/Findings", "tests"),
        ("physical_exams#3", "examination"),
        ("patient_info#0", "history"),
    ],
)
def test_a_key_finding_stands_in_the_section_of_its_first_path(path: str, section: str) -> None:
    assert section_of(KeyFinding((path, "Test_Results/Other"), (), "", 1.0)) == section
    assert section_of(KeyFinding((), ("a phrase",), "", 1.0)) == "not stated"


def test_key_facts_by_section_and_by_how_they_came() -> None:
    key = [
        {"any_of": ["Patient_Actor/History#0"], "role": "supporting", "weight": 1},
        {"any_of": ["Test_Results/Uric_Acid"], "role": "discriminating", "weight": 2},
        {"any_of": ["Test_Results/Joint_Fluid"], "role": "discriminating", "weight": 2},
    ]
    told, tests = broken_down(record(annotations={"Key_Findings": key})).fact_sections

    assert (told.section, told.by_way["volunteered"], told.not_found) == ("history", 1, 0)
    assert (tests.section, tests.total, tests.by_way["ordered"], tests.not_found) == ("tests", 2, 1, 1)


# --- tests and prices -----------------------------------------------------------------------------------------------


def ordering(number: int, *orders: tuple[str, str], right: bool = True) -> Json:
    """A record whose doctor orders these tests, each answered in that way."""
    said: list[Json] = []
    for turn, (name, how) in enumerate(orders, start=1):
        said.append({"turn": turn, "role": "doctor", "text": f"REQUEST TEST: {name}"})
        parts = [{"topic": name, "provenance": how}]
        said.append({"turn": turn, "role": "measurement", "text": "RESULTS: so", "disclosures": parts})
    return (record if right else wrong)(number, transcript=said)


PRICES = {"a": Price(10.0, 1.0, "a"), "b": Price(100.0, 1.0, "b")}


def test_tests_are_counted_by_name_with_what_they_cost_and_how_often_they_came_again() -> None:
    uses = broken_down(
        ordering(0, ("a", "chart"), ("a", "chart"), ("b", "unavailable")),
        ordering(1, ("a", "chart"), ("C", "chart"), ("c", "chart"), ("c", "unavailable")),
        price_of=PRICES.get,
    ).tests
    by_name = {use.name: use for use in uses}

    assert (by_name["a"].ordered, by_name["a"].encounters, by_name["a"].again) == (3, 2, 1)
    assert by_name["a"].total_usd == 20.0, "charged once per encounter"
    assert (by_name["b"].total_usd, by_name["b"].unanswered) == (0.0, 1), "what was not available costs nothing"
    assert (by_name["C"].again, by_name["C"].usd, by_name["C"].total_usd) == (2, None, None), "unknown, not 0"


def test_price_groups_hold_about_equal_numbers_and_keep_equal_prices_together() -> None:
    cheap = [ordering(n, ("a", "chart"), right=n % 2 == 0) for n in range(6)]
    dear = [ordering(n, ("b", "chart")) for n in range(6, 8)]
    price = broken_down(*cheap, *dear, price_of=PRICES.get).price

    assert [(g.n, g.mean_usd, g.accuracy.count) for g in price.groups] == [(6, 10.0, 3), (2, 100.0, 2)]
    assert price.mean_usd == pytest.approx((6 * 10 + 2 * 100) / 8)


def test_with_more_than_a_tenth_unpriced_there_are_bounds_instead_of_groups() -> None:
    priced = [ordering(n, ("a", "chart")) for n in range(8)]
    few = broken_down(*priced, ordering(8, ("b", "chart")), ordering(9, ("what", "chart")), price_of=PRICES.get).price
    many = broken_down(*priced[:4], ordering(9, ("what", "chart")), price_of=PRICES.get).price

    assert (few.unpriced.value, bool(few.groups)) == (0.1, True), "a tenth is not over it"
    assert (many.unpriced.value, many.groups) == (0.2, [])
    assert many.note == "1 of 5 tests done have no price"
    assert many.mean_usd == 8.0
    assert many.mean_usd_most is not None
    assert many.mean_usd_most > 100, "were it as dear as the dearest of the price list"


def test_a_doctor_who_orders_nothing_costs_nothing_and_an_unknown_one_is_unknown() -> None:
    assert broken_down(ordering(0)).price.mean_usd == 0.0
    assert broken_down(in_the_seeds_format(record())).price.mean_usd is None


@pytest.mark.parametrize(("n", "p"), [(1, 0.5), (7, 0.04), (38, 0.98), (400, 0.31), (5000, 0.62)])
def test_the_band_of_a_bin_is_the_binomials(n: int, p: float) -> None:
    low, high = binomial_band(n, p)
    assert (low * n, high * n) == pytest.approx((binom.ppf(0.025, n, p), binom.ppf(0.975, n, p)))


def test_a_certain_forecast_has_no_band() -> None:
    assert binomial_band(9, 1.0) == (1.0, 1.0)
    assert binomial_band(0, 0.3) == (0.3, 0.3)


# --- reasons --------------------------------------------------------------------------------------------------------


def why(entry: Json, sure: float | None = None) -> list[str]:
    return [reason.text for reason in reasons(Record.model_validate(entry), sure)]


def test_reasons_tell_what_happened_to_the_truth() -> None:
    never = differential(Influenza=0.9)
    turns = [{"turn": 1, "role": "doctor", "text": "DIAGNOSIS READY: Influenza", "differential": never}]
    wild = wrong(0, "Influenza", transcript=turns, differential=never)
    assert why(wild, 0.9) == ["another disease", "90 % sure", "truth never considered"]

    led = [
        {"turn": 1, "role": "doctor", "text": "Fever?", "differential": differential(Gout=0.6, Influenza=0.3)},
        {"turn": 2, "role": "doctor", "text": "DIAGNOSIS READY: Influenza", "differential": never},
    ]
    assert "truth led at turn 1, then dropped" in why(wrong(0, "Influenza", transcript=led, differential=never))


def test_reasons_name_the_fault_the_limit_and_the_danger() -> None:
    fault = {"role": "patient", "error": "rate_limited", "message": "slow down"}
    assert why(record(status="model_failed", correct=None, fault=fault)) == ["patient failed: rate limited"]
    assert why(record(status="max_infs_reached", correct=False, annotations={})) == ["no diagnosis within 20 turns"]
    assert why(record(status="judge_failed", correct=None)) == ["no verdict on the diagnosis"]
    danger = {"Harm_If_Missed": 4, "Must_Not_Miss": [{"name": "Sepsis"}]}
    assert why(wrong(0, annotations=danger))[-2:] == ["harm 4 of 4", "never considered: Sepsis"]


# --- text and packing -----------------------------------------------------------------------------------------------


def test_invisible_actors_are_made_visible() -> None:
    assert inert("a\u202eb\x00c\x1b[31m\r\nd\ud800") == "a⟨U+202E⟩b⟨U+0000⟩c⟨U+001B⟩[31m\nd⟨U+D800⟩"
    assert inert("Ménière’s disease\t→ 37 °C") == "Ménière’s disease\t→ 37 °C"
    assert len(line("x" * 10_000)) == 240
    assert line(" a \n b ") == "a b"


def test_blocks_stay_small_and_give_back_what_was_packed() -> None:
    packer = Packer()
    values = [{"t": f"{number} " + "word " * (number % 400)} for number in range(300)]
    places = [packer.add(value) for value in values]
    packer.add({"t": "x" * (3 * BLOCK)})
    packer.close()
    opened = [json.loads(zlib.decompress(base64.b64decode(block))) for block in packer.blocks]

    assert [opened[block][position] for block, position in places] == values
    assert all(len(json.dumps(block)) < 1.2 * BLOCK for block in opened[:-1])
    assert len(opened[-1]) == 1, "a long one is alone in its block"


# --- formats --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "attack", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", " =1", "\n=1", "|x", "%x"]
)
def test_no_cell_is_a_formula(attack: str) -> None:
    assert str(safe(attack)).startswith("'")


def test_cells_that_are_no_formulas_are_left_alone() -> None:
    assert safe("Gout = arthritis") == "Gout = arthritis"
    assert safe(-1.5) == -1.5
    assert safe(None) is None


def test_quoted_words_cannot_end_their_quotation() -> None:
    assert quoted("a | b") == "`a \\| b`"
    assert quoted("``` @all") == "```` ``` @all ````"
    assert quoted("<b>\n# x") == "`<b> # x`"
    assert quoted(None) == "–"


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a right, a wrong and a failed one, and one that attacks spreadsheets."""
    fault = {"role": "moderator", "error": "timeout", "message": "no answer | `x`"}
    entries = [
        *(record(number) for number in range(6)),
        wrong(6),
        wrong(7, '=HYPERLINK("https://attack.example")'),
        record(8, status="judge_failed", correct=None, judgement=None, fault=fault),
    ]
    config = {"agentclinic": {"version": "9.9", "units": 12}}
    return write_run(tmp_path_factory.mktemp("runs") / "Made_20260101_000000", entries, config)


def test_csv_has_a_line_for_every_encounter(played: Path) -> None:
    done = clinic("report", played, "--format", "csv", "-o", "-", cwd=played)
    rows = list(csv.DictReader(io.StringIO(done.stdout)))

    assert [row["right"] for row in rows] == ["1"] * 6 + ["0", "0", ""]
    assert rows[0]["confidence"] == "0.7"
    assert rows[7]["diagnosis"].startswith("'=HYPERLINK")
    assert rows[8]["outcome"] == "judge_failed"
    assert rows[8]["reasons"] == "moderator failed: timeout"


def test_json_has_the_numbers_that_score_prints(played: Path) -> None:
    told = json.loads(clinic("report", played, "--format", "json", "-o", "-", cwd=played).stdout)
    printed = json.loads(clinic("score", played, "--json", cwd=played).stdout)

    (run,) = told["runs"]
    assert run["score"] == printed
    assert run["headline"]["value"] == pytest.approx(6 / 8)
    assert run["planned"] == 12
    assert [len(said) > 3 for said in told["statements"]] == [True]


def test_markdown_has_headline_bounds_failures_and_the_statement(played: Path) -> None:
    text = clinic("report", played, "--format", "md", "-o", "-", cwd=played).stdout

    assert "**75.0 %** (40.9 to 92.9 %) | 66.7 % to 77.8 %" in text
    assert "| moderator" not in text.replace("| `moderator", ""), "what a record says stands in quotes"
    assert '`=HYPERLINK("https://attack.example")`' in text
    assert "### What this run can and cannot show" in text
    assert "9 of 12 planned encounters are there" in text
    widths = {row.count(" | ") for row in text.split("### Not right")[1].split("\n\n")[1].splitlines()}
    assert len(widths) == 1, "every row has as many cells as the head"


def test_a_run_in_the_seeds_format_says_what_it_leaves_out(tmp_path: Path) -> None:
    old = write_run(tmp_path / "old", [in_the_seeds_format(record(n)) for n in range(3)])
    (run,) = gathered(old).report.runs

    said = left_out(run)
    assert [text.split(":")[0].split(",")[0] for text in said][:2] == ["Questions", "Confidence"]
    assert any(text.startswith("Tokens and money") for text in said)
    assert run.score == score(load_run(old))
    whole = write_run(tmp_path / "whole", [record(n) for n in range(3)])
    assert [text.split(":")[0] for text in left_out(gathered(whole).report.runs[0])] == ["Key facts", "Twins"]


def test_the_statement_names_what_is_missing_and_that_one_run_may_be_luck(played: Path) -> None:
    (said,) = statements(gathered(played).report)
    text = " ".join(one.text for one in said if one.kind == "cannot")
    assert "1 encounter without a verdict" in text
    assert "no case was repeated" in text
    assert "agentclinic audit" in text, "the patient is a model"
    assert "not medical advice" in text


def test_runs_without_a_common_case_are_shown_and_not_compared(played: Path, tmp_path: Path) -> None:
    other = write_run(tmp_path / "other", [record(number) for number in range(50, 53)])
    report = gathered(played, other).report
    assert report.comparison is None
    assert "no case in common" in (report.not_compared or "")


# --- the command ----------------------------------------------------------------------------------------------------


def test_a_report_is_written_beside_its_run_and_may_be_written_again(played: Path, tmp_path: Path) -> None:
    first = clinic("report", played, cwd=tmp_path)
    target = played / "report.html"
    assert first.stdout == f"Report written to {target}\n"
    before = target.read_bytes()
    clinic("report", played, cwd=tmp_path)
    assert target.read_bytes() == before, "the same run gives the same bytes"
    assert list(played.glob("*.new")) == []


def test_several_runs_are_reported_where_one_stands_and_the_name_chooses_the_format(
    played: Path, tmp_path: Path
) -> None:
    other = write_run(tmp_path / "other", [record(number) for number in range(9)])
    clinic("report", played, other, cwd=tmp_path)
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    clinic("report", other / "scenarios.jsonl", "-o", "x.md", cwd=tmp_path)
    assert (tmp_path / "x.md").read_text(encoding="utf-8").startswith("<!-- agentclinic-report -->")
    for name in ("x.json", "x.csv", "x.md"):
        clinic("report", other, "-o", name, cwd=tmp_path)
        clinic("report", other, "-o", name, cwd=tmp_path)


def test_nothing_that_is_no_report_is_overwritten(played: Path, tmp_path: Path) -> None:
    journal = played / "scenarios.jsonl"
    before = journal.read_bytes()
    precious = tmp_path / "thesis.md"
    precious.write_text("# agentclinic-report is mentioned here\n", encoding="utf-8")

    for target, message in (
        (journal, "holds the records themselves"),
        (played / "config.used.json", "is not a report"),
        (precious, "is not a report"),
        (tmp_path, "is a folder"),
        (tmp_path / "no" / "such" / "x.html", "there is no folder"),
    ):
        assert message in clinic("report", played, "-o", target, cwd=tmp_path, expect=2).stderr
    assert journal.read_bytes() == before
    assert precious.read_text(encoding="utf-8").startswith("# agentclinic")


def test_what_cannot_be_reported_is_named(tmp_path: Path) -> None:
    empty = write_run(tmp_path / "empty", [])
    broken = write_run(tmp_path / "broken", [record()])
    (broken / "config.used.json").write_text("{", encoding="utf-8")
    assert "not a run" in clinic("report", tmp_path / "nothing", cwd=tmp_path, expect=2).stderr
    assert "holds no records" in clinic("report", empty, cwd=tmp_path, expect=2).stderr
    assert "config.used.json line 1: not valid JSON" in clinic("report", broken, cwd=tmp_path, expect=2).stderr
    assert "html, md, json, csv" in clinic("report", empty, "--format", "pdf", cwd=tmp_path, expect=2).stderr
    assert (
        "no such judgements" in clinic("report", broken.parent / "empty", "--judge", "x", cwd=tmp_path, expect=2).stderr
    )


def test_a_run_that_is_asked_for_a_report_says_where_it_is_and_stays_the_same(tmp_path: Path) -> None:
    clinic("run", "--num_scenarios", "3", "--output_dir", "plain", cwd=tmp_path)
    done = clinic("run", "--num_scenarios", "3", "--output_dir", "told", "--report", cwd=tmp_path)
    plain, told = only_run(tmp_path / "plain"), only_run(tmp_path / "told")

    assert f"Report written to told/{told.name}/report.html" in done.stdout
    assert (told / "report.html").is_file()
    digests = [
        json.loads((f / "config.used.json").read_text(encoding="utf-8"))["agentclinic"]["digest"] for f in (plain, told)
    ]
    assert digests[0] == digests[1]
    again = clinic("resume", told, "--report", "--json", cwd=tmp_path)
    assert json.loads(again.stdout)["run"] == f"{told.relative_to(tmp_path)}" or json.loads(again.stdout)["run"] == str(
        told
    )
    assert "Report written to" in again.stderr
