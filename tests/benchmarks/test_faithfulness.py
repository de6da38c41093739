"""The faithfulness benchmark counts what it says it counts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from benchmark_support import load_benchmark
from helpers import case_of, needs_public_data, osce

F = load_benchmark("faithfulness")
CASE = case_of(
    osce(
        patient={
            "Demographics": "40-year-old woman",
            "History": "The patient has had a sore toe for 3 days.",
            "Review_of_Systems": "Denies fever. No cough.",
        },
        tests={"Blood_Tests": {"Sodium": "139 mEq/L", "Lipase": "Normal"}},
    )
)


def item(said: str, recorded: str, *, exam: bool = False) -> object:
    facts = CASE.exam_facts if exam else CASE.patient_facts
    return F.Item(0, CASE, said, recorded, facts, (F.Marked(frozenset()), F.Marked(frozenset())))


def test_a_fact_told_as_an_equivalent_is_right_only_when_it_says_so() -> None:
    wanted = F.Marked(frozenset("a"), frozenset("b"))
    assert F.hits(F.Told(frozenset("ab"), frozenset("b")), wanted) == (2, 0, 0)
    assert F.hits(F.Told(frozenset("ab")), wanted) == (1, 1, 0)
    assert F.hits(F.Told(frozenset("ab")), wanted, provenance=False) == (2, 0, 0)
    assert F.hits(F.Told(frozenset("c")), wanted) == (0, 1, 1)


def test_both_and_either_reader() -> None:
    one, other = F.Marked(frozenset("ab"), frozenset("c")), F.Marked(frozenset("bc"))
    assert F.both(one, other) == F.Marked(frozenset("b"), frozenset("c"))
    assert F.either(one, other) == F.Marked(frozenset("abc"))


def test_figures_against_hand_worked_values() -> None:
    counts = np.array([[4.0], [1.0], [3.0], [12.0]])
    assert F.precision(counts)[0] == pytest.approx(4 / 5)
    assert F.recall(counts)[0] == pytest.approx(4 / 7)
    assert F.f1(counts)[0] == pytest.approx(8 / 12)
    assert F.jaccard(counts)[0] == pytest.approx(4 / 8)
    # observed 16/20; expected 5/20 * 7/20 + 15/20 * 13/20 = 0.575
    assert F.kappa(counts)[0] == pytest.approx((0.8 - 0.575) / 0.425)


def test_an_interval_holds_its_value_and_is_the_same_every_time() -> None:
    counts = np.array([[3, 1, 0], [0, 2, 1], [5, 0, 0], [2, 0, 2]], dtype=float)
    text = F.interval(counts, F.precision)
    assert text == F.interval(counts, F.precision)
    value, low, high = (float(part) for part in text.replace("(", "").replace(")", "").replace(" - ", " ").split())
    assert low <= value <= high
    assert value == pytest.approx(10 / 13, abs=5e-4)


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ("My toe has been sore for three days.", {"Patient_Actor/History"}),
        ("No fever, doctor.", {"Patient_Actor/Review_of_Systems#0"}),
        ("I have a fever.", set()),
        ("I feel fine.", set()),
    ],
)
def test_a_recorded_reply_discloses_what_its_words_say(reply: str, told: set[str]) -> None:
    assert F.told_by_recorded(item("?", reply), reply).paths == told


def test_a_recorded_report_needs_the_name_of_a_bare_value() -> None:
    nothing, sodium = "RESULTS: everything normal", "RESULTS: Sodium 139 mEq/L"
    assert F.told_by_recorded(item("?", nothing, exam=True), nothing).paths == frozenset()
    assert F.told_by_recorded(item("?", sodium, exam=True), sodium).paths == {"Test_Results/Blood_Tests/Sodium"}


def test_the_builtin_patient_invents_nothing_and_an_invention_would_be_counted() -> None:
    asked = item("Do you have a fever?", "")
    reply = F.ask(asked)
    assert F.invented(asked, reply) == 0
    assert F.invented(asked, F.Reply("I was bitten by a snake.", disclosures=reply.disclosures)) == 1


def test_without_the_data_it_says_so_and_ends(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(F, "DATA", tmp_path)
    F.main(["--rows", "recorded"])
    assert capsys.readouterr().out.startswith("Skipped: the public data is not there")


@pytest.mark.slow
@needs_public_data
def test_the_parts_share_no_row_and_the_test_nothing_with_what_was_fitted(capsys: pytest.CaptureFixture[str]) -> None:
    cases = F.load_cases("MedQA_Ext", {"MedQA_Ext": str(F.DATA / "agentclinic" / "agentclinic_medqa_extended.jsonl")})
    for task in F.TASKS:
        first, second = ([row.row for row in F.items(task, part, cases)] for part in ("recorded", "recorded2"))
        assert not set(first) & set(second)
        assert len(first) == len(second) == 100
        read = [path for path in F.LABELS.glob(f"{task.labels}3_*.jsonl") if "reader" not in path.stem]
        others = [path for path in read if not path.stem.endswith("_test")]
        lines = [line for path in others for line in path.read_text(encoding="utf-8").splitlines()]
        fitted = {(row["case"], row[task.said]) for row in map(json.loads, lines)}
        tested = {(item.case.scenario_id, item.said) for item in F.items(task, "test", cases)}
        assert len(tested) > 90
        assert not tested & fitted
    F.main(["--rows", "recorded"])
    out = capsys.readouterr().out
    assert "invented facts of the builtin patient: 0" in out
    assert "kappa" in out
