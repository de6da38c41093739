"""Comparing runs: pairing, flips, warnings, verdicts under each rule, and the command."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agentclinic.cli import main
from agentclinic.errors import InputError
from agentclinic.results.run_data import load_run
from agentclinic.scoring.compare import Comparison, compare_arms, compare_two, load_arm, sentence
from agentclinic.scoring.score import score
from agentclinic.vocabulary.base import knowledge

SEED_FIELDS = {"dataset": "MedQA", "max_infs": 20, "patient_llm": "p", "measurement_llm": "m", "moderator_llm": "j"}


def write_run(folder: Path, outcomes: Sequence[Any], **common: Any) -> Path:
    """A run whose i-th case ended as given: True, False, or a record's fields."""
    folder.mkdir(parents=True)
    with (folder / "scenarios.jsonl").open("w") as file:
        for i, outcome in enumerate(outcomes):
            fields = outcome if isinstance(outcome, dict) else {"status": "diagnosed", "correct": outcome}
            record = {
                "scenario_id": i,
                "case_hash": f"hash{i}",
                "ground_truth": f"disease {i}",
                "doctor_llm": "d",
                "judgement": {"relation": "same", "correct_lenient": fields.get("correct")},
                **SEED_FIELDS,
                **common,
                **fields,
            }
            file.write(json.dumps({k: v for k, v in record.items() if v != "absent"}) + "\n")
    return folder


def compared(first: Path, second: Path) -> Comparison:
    return compare_two(load_arm(load_run(first)), load_arm(load_run(second)))


def test_flips_are_counted_each_way_and_differences_are_paired(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", [True, True, False, False, True])
    b = write_run(tmp_path / "b", [True, False, True, True, True])
    verdict = compared(a, b).verdicts[0]
    assert [flip.scenario_id for flip in verdict.gained] == [2, 3]
    assert [flip.scenario_id for flip in verdict.lost] == [1]
    assert verdict.difference.value == pytest.approx(0.2)
    assert [verdict.before, verdict.after] == pytest.approx([0.6, 0.8])
    assert verdict.p_mcnemar == pytest.approx(1.0)


def test_cases_of_one_disease_are_one_cluster_if_age_and_sex_agree_too(tmp_path: Path) -> None:
    doors = ["40-year-old man", "40-year-old man", "41-year-old man", "40-year-old woman"]
    cases = [
        {
            "status": "diagnosed",
            "correct": True,
            "ground_truth": "Gout",
            "door": {"objective": "", "demographics": door},
        }
        for door in doors
    ]
    a, b = (write_run(tmp_path / name, cases) for name in "ab")
    verdict = compared(a, b).verdicts[0]
    assert (verdict.cases, verdict.clusters) == (4, 3)


def test_a_clear_difference_names_the_better_run(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", [False] * 30 + [True] * 30)
    b = write_run(tmp_path / "b", [True] * 60)
    report = compare_arms([load_arm(load_run(p)) for p in (a, b)])
    assert report.comparisons[0].verdicts[0].conclusion.startswith("b is clearly better than a: +50.0 points (95% ")


def test_no_difference_says_how_many_cases_differ(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", [True, False] * 10)
    b = write_run(tmp_path / "b", [False, True] + [True, False] * 9)
    verdict = compare_arms([load_arm(load_run(p)) for p in (a, b)]).comparisons[0].verdicts[0]
    assert verdict.conclusion.startswith("No clear difference: b +0.0 points (95% ")
    assert verdict.conclusion.endswith("; 2 of the 20 cases differ"), (
        "no power is claimed from the flips that were seen"
    )


def test_equal_runs_still_have_an_interval(tmp_path: Path) -> None:
    a, b = (write_run(tmp_path / name, [True, False] * 10) for name in "ab")
    difference = compared(a, b).verdicts[0].difference
    assert difference.value == 0
    assert difference.high == pytest.approx(0.161, abs=1e-3)  # z² / (n + z²)
    assert difference.low == pytest.approx(-(difference.high or 0))


def test_missing_outcomes_leave_the_pair_out(tmp_path: Path) -> None:
    failed = {"status": "judge_failed", "correct": None, "judgement": None}
    a = write_run(tmp_path / "a", [True, True, False, failed])
    b = write_run(tmp_path / "b", [True, failed, True, True])
    verdict = compared(a, b).verdicts[0]
    assert verdict.cases == 2
    assert verdict.difference.value == pytest.approx(0.5)


def test_no_diagnosis_and_a_failing_doctor_count_as_wrong(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", [True, True])
    b = write_run(tmp_path / "b", [{"status": "max_infs_reached"}, {"status": "doctor_failed"}])
    assert compared(a, b).verdicts[0].after == 0


def test_cases_are_paired_by_content_whatever_their_row(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", [True, False])
    b = write_run(
        tmp_path / "b",
        [
            {"status": "diagnosed", "correct": True, "case_hash": "hash1"},
            {"status": "diagnosed", "correct": True, "case_hash": "hash0"},
        ],
        dataset="MedQA_Ext",
    )
    verdict = compared(a, b).verdicts[0]
    assert verdict.cases == 2
    assert [flip.scenario_id for flip in verdict.gained] == [1]


def test_runs_in_the_original_format_are_paired_by_data_set_and_row(tmp_path: Path) -> None:
    only = {"case_hash": "absent", "judgement": "absent"}
    a = write_run(tmp_path / "a", [True, False, True], **only)
    b = write_run(tmp_path / "b", [True, True, True], **only)
    result = compared(a, b)
    assert result.verdicts[0].cases == 3
    assert [v.rule for v in result.verdicts] == ["strict"], "no relation, no lenient verdict"
    assert any("lenient" in note for note in result.notes)


def test_a_run_of_the_original_and_one_of_ours_are_paired_by_row_and_diagnosis(tmp_path: Path) -> None:
    old = write_run(tmp_path / "old", [True, False, True], case_hash="absent", ground_truth="Gout ")
    ours = write_run(tmp_path / "ours", [True, True, True], ground_truth="gout")
    result = compared(old, ours)
    assert (result.verdicts[0].cases, [flip.scenario_id for flip in result.verdicts[0].gained]) == (3, [1])
    assert "old does not record its cases: they are paired by data set, row and diagnosis" in result.notes
    other = write_run(tmp_path / "other", [True, True, True], ground_truth="Flu")
    with pytest.raises(InputError, match="no case in common"):
        compared(old, other)


def test_nothing_in_common_is_an_error(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", [True])
    b = write_run(tmp_path / "b", [{"status": "diagnosed", "correct": True, "case_hash": "other"}])
    with pytest.raises(InputError, match="no case in common"):
        compared(a, b)


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("max_infs", 10, "turn limit: 20 against 10"),
        ("patient_llm", "other", "patient model: p against other"),
        ("moderator_llm", "other", "judge: j against other"),
        ("missing_test", "normal", "missing_test: None against normal"),
        ("silent_symptom", "unknown", "silent_symptom"),
        ("simulator", {"patient": "voiced"}, "simulator: patient free, measurement free against patient voiced"),
        ("dialogue", "chat", "dialogue form: transcript against chat"),
    ],
)
def test_what_makes_runs_incomparable_is_named(tmp_path: Path, field: str, value: object, named: str) -> None:
    a = write_run(tmp_path / "a", [True, False])
    b = write_run(tmp_path / "b", [True, False], **{field: value})
    assert any(named in warning for warning in compared(a, b).warnings)


def test_two_ways_of_judging_with_one_model_are_named(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, [True, False]) for name in "ab"]
    for run, judge in zip(runs, ("cascade", "model"), strict=True):
        (run.parent if run.is_file() else run).joinpath("config.used.json").write_text(
            json.dumps({"run": {"judge": judge}}), encoding="utf-8"
        )
    assert "way of judging: cascade against model" in compared(*runs).warnings
    assert not any("way of judging" in warning for warning in compared(runs[0], runs[0]).warnings)


def test_cases_only_one_run_has_are_named_as_left_out(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", [True, False, True])
    b = write_run(tmp_path / "b", [True, False])
    assert "cases: only 2 of 3 and 2 are in both; the rest are left out" in compared(a, b).warnings


def test_runs_that_differ_only_in_the_doctor_are_comparable(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", [True, False], doctor_llm="one")
    b = write_run(tmp_path / "b", [True, False], doctor_llm="two")
    assert compared(a, b).warnings == []


def test_near_copies_are_resampled_together_and_mcnemar_is_not_used(tmp_path: Path) -> None:
    twin = {"ground_truth": "vitiligo", "door": {"objective": "Assess.", "demographics": "19-year-old man"}}
    a = write_run(tmp_path / "a", [{"status": "diagnosed", "correct": False, **twin}] * 2 + [True, False])
    b = write_run(tmp_path / "b", [{"status": "diagnosed", "correct": True, **twin}] * 2 + [True, False])
    verdict = compared(a, b).verdicts[0]
    assert (verdict.cases, verdict.clusters) == (4, 3)
    assert verdict.p_mcnemar is None


def test_cases_with_the_same_diagnosis_but_another_age_or_sex_are_not_near_copies(tmp_path: Path) -> None:
    people = ("19-year-old man", "19-year-old woman", "62-year-old man", "19-year-old man")
    entries = [
        {"status": "diagnosed", "correct": True, "ground_truth": "vitiligo",
         "door": {"objective": "Assess.", "demographics": demographics}}
        for demographics in people
    ]  # fmt: skip
    run = write_run(tmp_path / "a", entries)
    verdict = compared(run, write_run(tmp_path / "b", entries)).verdicts[0]
    assert (verdict.cases, verdict.clusters) == (4, 3), "only the first and the last are near copies"


def repeated(outcomes: Sequence[Sequence[bool]], dialogues: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    return [
        {"scenario_id": case, "case_hash": f"hash{case}", "repeat": repeat, "status": "diagnosed", "correct": right,
         "ground_truth": f"disease {case}", "doctor_hist": dialogues[case][repeat]}
        for case, rights in enumerate(outcomes)
        for repeat, right in enumerate(rights)
    ]  # fmt: skip


def test_repeats_are_averaged_within_their_case(tmp_path: Path) -> None:
    talk = [["a", "b"], ["c", "d"]]
    a = write_run(tmp_path / "a", repeated([[True, False], [True, True]], talk))
    b = write_run(tmp_path / "b", repeated([[True, True], [True, True]], talk))
    verdict = compared(a, b).verdicts[0]
    assert verdict.cases == 2
    assert verdict.difference.value == pytest.approx(0.25)
    assert verdict.p_mcnemar is None


def test_a_doctor_without_variance_between_repeats_is_called_deterministic(tmp_path: Path) -> None:
    fixed = write_run(tmp_path / "fixed", repeated([[True, True], [False, False]], [["x", "x"], ["y", "y"]]))
    loose = write_run(tmp_path / "loose", repeated([[True, True], [False, True]], [["x", "x"], ["y", "z"]]))
    notes = compared(fixed, loose).notes
    assert any(note.startswith("fixed is deterministic") for note in notes)
    assert not any(note.startswith("loose is deterministic") for note in notes)


def test_several_arms_are_adjusted_together(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", [False] * 40)
    b = write_run(tmp_path / "b", [True] * 6 + [False] * 34)
    c = write_run(tmp_path / "c", [False] * 40)
    report = compare_arms([load_arm(load_run(p)) for p in (a, b, c)])
    first, second = (comparison.verdicts[0] for comparison in report.comparisons)
    assert first.p_holm == pytest.approx(2 * first.p)
    assert second.p_holm == 1.0


def test_another_judge_can_be_chosen(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", [True, True])
    (run / "judgements").mkdir()
    lines = [{"scenario_id": i, "case_hash": f"hash{i}", "repeat": 0, "correct": i == 0} for i in range(2)]
    (run / "judgements" / "strictest.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    arm = load_arm(load_run(run, "strictest"))
    assert [case.mean("strict") for case in arm.cases.values()] == [1.0, 0.0]
    with pytest.raises(InputError, match="the run has strictest"):
        load_run(run, "lost")


def test_the_command_prints_one_table_and_one_sentence_and_details_with_full(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spent = {"usage": {"doctor": {"input_tokens": 400, "output_tokens": 100}}, "cost_usd": {"doctor": 0.5}}
    a = write_run(tmp_path / "MedQA_20260101_000000", [True, False, False], doctor_llm="small", **spent)
    b = write_run(tmp_path / "MedQA_20260102_000000", [True, True, False], doctor_llm="large", **spent)

    main(["compare", str(a), str(b)])
    head, *runs, _, said, judge, more = capsys.readouterr().out.splitlines()
    assert head.split() == "run right (95%) difference in points (95%) turns tokens cost".split()
    assert [line.split()[:3] for line in runs] == [["A", "small", "33%"], ["B", "large", "67%"]]
    assert [line.split()[-2:] for line in runs] == [["1,500", "$1.50"]] * 2
    assert said.startswith("No clear difference: B +33.3 points (95% ")
    assert said.endswith("; 1 of the 3 cases differs.")
    assert judge.startswith("Judged by j; how often it errs")
    assert "--full" in more

    main(["compare", str(a), str(b), "--full"])
    full = capsys.readouterr().out
    assert "B against A:\n  strict: 33.3% -> 66.7%" in full
    assert "1 gained (MedQA/1), 0 lost" in full
    assert "lenient" not in full, "it is the same as the strict rule"

    main(["compare", "--json", str(a), str(b)])
    report = json.loads(capsys.readouterr().out)
    assert [run["label"] for run in report["runs"]] == ["small", "large"]
    assert [v["rule"] for v in report["comparisons"][0]["verdicts"]] == ["strict", "lenient"]


def test_the_lenient_rule_is_shown_where_it_differs_and_warnings_are_sentences(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    part = {"status": "diagnosed", "correct": False, "judgement": {"relation": "broader", "correct_lenient": True}}
    runs = [
        write_run(tmp_path / "a", [False] * 20),
        write_run(tmp_path / "b", [part] * 20, moderator_llm="other"),
        write_run(tmp_path / "c", [False] * 20, moderator_llm="other"),
    ]
    main(["compare", *map(str, runs)])
    shown = capsys.readouterr().out
    assert "strict: right (95%)" in shown
    assert "lenient: right (95%)" in shown
    assert "By the lenient rule: B is clearly better than A: +100.0 points" in shown
    assert "Warning: B, C also differ from A in judge: j against other." in shown


def test_one_run_is_not_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = write_run(tmp_path / "a", [True])
    with pytest.raises(SystemExit) as stopped:
        main(["compare", str(a)])
    assert stopped.value.code == 2
    assert "two runs or more" in capsys.readouterr().err


def measured(
    turns: int, p: float | None, right: bool, requests: int | None, tokens: int | None = None
) -> dict[str, Any]:
    """A record with its cost and its doctor's confidence."""
    stated = {
        "source": "stated",
        "hypotheses": [{"diagnosis": "Gout", "probability": p}, {"diagnosis": "Flu", "probability": 0.1}],
    }
    return {
        "status": "diagnosed",
        "correct": right,
        "diagnosis_text": "Gout",
        "ground_truth": "Gout" if right else "Asthma",
        "num_turns": turns,
        "transcript": [
            {"turn": turn, "role": "doctor", "text": text}
            for turn, text in enumerate(("REQUEST TEST: CBC", "Any fever?", "REQUEST TEST: MRI"), start=1)
        ],
        "usage": {
            "doctor": {"requests": requests, "input_tokens": tokens, "output_tokens": 5},
            "synthesis": {"requests": 1, "input_tokens": 10, "output_tokens": 5},
            "patient": {"requests": 50, "input_tokens": 999, "output_tokens": 999},
        },
        **({"differential": stated} if p is not None else {}),
    }


def test_turns_requests_and_calibration_are_compared_as_well_as_accuracy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Worked by hand. Gout is the truth of the first case only; Flu has 0.1, and `other` the rest, spread over
    N diseases."""
    n = len(knowledge().diseases)

    def brier_of(gout: float, true: bool) -> float:
        each = (0.9 - gout) / n
        if true:
            return (1 - gout) ** 2 + 0.1**2 + n * each**2
        return (1 - each) ** 2 + gout**2 + 0.1**2 + (n - 1) * each**2

    a = write_run(tmp_path / "a", [measured(4, 0.6, True, 4, 80), measured(8, 0.6, False, 8, 80)])
    b = write_run(tmp_path / "b", [measured(3, 0.9, True, 3), measured(5, 0.2, False, 5)])
    found = {metric.measure: metric for metric in compared(a, b).beside}
    assert (found["turns"].before, found["turns"].after, found["turns"].difference.value) == (6, 4, -2)
    assert (found["tests"].before, found["tests"].after) == (2, 2)
    assert (found["requests to models"].before, found["requests to models"].after) == (7, 5), (
        "the patient's requests do not count"
    )
    assert "tokens" not in found, "unknown in one of the two is not 0"
    brier = found["Brier score of the truth"]
    before = (brier_of(0.6, True) + brier_of(0.6, False)) / 2
    after = (brier_of(0.9, True) + brier_of(0.2, False)) / 2
    assert (brier.before, brier.after) == pytest.approx((before, after))
    assert brier.difference.value == pytest.approx(after - before)
    main(["compare", str(a), str(b), "--full"])
    shown = capsys.readouterr().out
    assert "turns: 6.0 -> 4.0, difference -2.0" in shown
    assert f"Brier score of the truth: {before:.3f} -> {after:.3f}" in shown


def test_measures_that_only_one_run_has_are_left_out(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", [measured(4, None, True, 4), measured(8, None, False, None)])
    b = write_run(tmp_path / "b", [measured(3, 0.9, True, 3), measured(5, 0.2, False, 5)])
    found = {metric.measure: metric for metric in compared(a, b).beside}
    assert "Brier score of the truth" not in found
    assert found["requests to models"].cases == 1


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (1, "No clear difference: b +100.0 points (95% -58.7 to +100.0); the one case differs"),
        (4, "b is clearly better than a: +100.0 points (95% +2.0 to +100.0); all 4 cases differ"),
    ],
)
def test_few_cases_that_all_differ_are_said_to_differ(count: int, said: str, tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, [name == "b"] * count) for name in "ab"]
    (compared,) = compare_arms([load_arm(load_run(run), run.name) for run in runs]).comparisons
    assert sentence(compared.verdicts[0], "b", "a") == said


def test_twins_are_one_cluster(tmp_path: Path) -> None:
    cases = [
        {"status": "diagnosed", "correct": right, "annotations": {"case_id": own, "twin_of": other}}
        for own, other, right in [("t1", "t2", True), ("t2", "t1", False), ("t3", None, True)]
    ]
    runs = [write_run(tmp_path / name, cases) for name in "ab"]
    assert (compared(*runs).verdicts[0].cases, compared(*runs).verdicts[0].clusters) == (3, 2)


def test_a_run_has_the_same_interval_alone_and_in_a_comparison(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """14 cases, three times each: `score` printed 49.2 to 77.0%, `compare` 40 to 86% for the same run."""
    outcomes = [[case < 9] * 3 for case in range(14)]
    talk = [[f"{case} {repeat}" for repeat in range(3)] for case in range(14)]
    runs = [write_run(tmp_path / name, repeated(outcomes, talk)) for name in "ab"]
    main(["score", str(runs[0])])
    assert "64.3% (95% 38.8% to 83.7%, clustered)" in capsys.readouterr().out
    main(["compare", *map(str, runs)])
    shown = capsys.readouterr().out
    assert "right (95%, clustered)" in shown
    assert "64% (39% to 84%)" in shown


def test_a_difference_that_only_the_adjustment_hides_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [
        write_run(tmp_path / "a", [False] * 40),
        write_run(tmp_path / "b", [True] * 4 + [False] * 36),
        write_run(tmp_path / "c", [True] + [False] * 39),
    ]
    main(["compare", *map(str, runs)])
    assert (
        "B +10.0, C +2.5 points (B would be clear without the adjustment for 2 comparisons)" in capsys.readouterr().out
    )


def test_unread_answers_are_not_right_and_counted_for_each_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unread = {"status": "not_readable", "correct": None, "judgement": {"correct": None, "reason": "cannot read 'x'"}}
    a = write_run(tmp_path / "a", [True, True, False, unread])
    b = write_run(tmp_path / "b", [True, unread, unread, unread])
    verdict = compared(a, b).verdicts[0]
    assert ([flip.scenario_id for flip in verdict.lost], verdict.cases, verdict.gained) == ([1], 4, [])

    main(["compare", str(a), str(b)])
    shown = capsys.readouterr().out
    assert "at most 75%: 1 of 4 not readable" in shown
    assert "at most 100%: 3 of 4 not readable" in shown
    assert "4 answers could not be read." in shown
    assert "differs from A in answers that could not be read (they count as not right): 25.0% against 75.0%" in shown
    main(["compare", str(a), str(write_run(tmp_path / "c", [True] * 4))])
    assert "with unread" in capsys.readouterr().out
    main(["compare", str(tmp_path / "c"), str(write_run(tmp_path / "d", [True] * 4))])
    assert "read" not in capsys.readouterr().out


def test_what_unread_answers_could_add_is_never_less_than_the_accuracy(tmp_path: Path) -> None:
    plays = [{"status": "diagnosed", "correct": right} for right in (True, True, True, False)]
    cases = [
        {**play, "scenario_id": n // 3, "case_hash": f"hash{n // 3}", "repeat": n % 3} for n, play in enumerate(plays)
    ]
    a, b = (write_run(tmp_path / name, cases) for name in "ab")
    report = compare_arms([load_arm(load_run(run)) for run in (a, b)])
    assert (report.accuracies[0].accuracy.value, report.accuracies[0].at_most) == (0.75, 0.75)


@pytest.mark.parametrize("count", [1, 2])
def test_json_of_a_comparison_of_few_cases_has_no_infinite_limits(
    count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = [{"status": "diagnosed", "correct": True, "num_turns": turns} for turns in (3, 5)][:count]
    runs = [write_run(tmp_path / name, cases) for name in "ab"]
    main(["compare", *map(str, runs), "--json"])
    assert "Infinity" not in capsys.readouterr().out
    turns = next(one for one in compared(*runs).beside if one.measure == "turns")
    assert (turns.difference.value, turns.difference.low, turns.difference.high) == (0, None, None)


def test_the_order_of_records_changes_nothing(tmp_path: Path) -> None:
    chance = random.Random(7)
    cases = [
        {
            "status": "diagnosed",
            "correct": chance.random() < 0.6,
            "num_turns": chance.randint(1, 20),
            "scenario_id": row,
            "case_hash": f"hash{row}",
            "repeat": repeat,
            "annotations": {"case_id": f"c{row}", "twin_of": f"c{row ^ 1}"},
        }
        for row in range(20)
        for repeat in range(3)
    ]
    found = []
    for place in ("first", "second"):
        a, b = (write_run(tmp_path / place / name, cases[k::2] + cases[1 - k :: 2]) for k, name in enumerate("ab"))
        report = compare_arms([load_arm(load_run(run), run.name) for run in (a, b)])
        found.append([report.model_dump(), *(score(load_run(run)).model_dump() for run in (a, b))])
        chance.shuffle(cases)
    assert found[0] == found[1]


def test_the_brier_score_is_about_the_differential_not_the_diagnosis(tmp_path: Path) -> None:
    unread = measured(8, 0.6, False, 8) | {"status": "not_readable", "correct": None}
    a, b = (write_run(tmp_path / name, [measured(4, 0.6, True, 4), unread]) for name in "ab")
    (brier,) = (metric for metric in compared(a, b).beside if metric.measure.startswith("Brier"))
    assert brier.cases == 2


def test_a_doctor_who_knows_nothing_is_not_the_best_by_its_brier_score(tmp_path: Path) -> None:
    """Sure of little and always wrong, it is well calibrated: (0.05 - 0)² is better than (0.7 - 1)²."""
    truths = ["Gout", "Asthma", "Migraine", "Psoriasis"]

    def stating(truth: str, said: str, p: float, right: bool) -> dict[str, Any]:
        hypotheses = [{"diagnosis": said, "probability": p}]
        given = {"source": "posterior", "hypotheses": hypotheses, "other": 1 - p}
        made = {"status": "diagnosed", "correct": right, "diagnosis_text": said, "ground_truth": truth}
        return {**made, "differential": given}

    finds = write_run(
        tmp_path / "finds",
        [stating(t, t, 0.7, True) for t in truths[:3]] + [stating("Psoriasis", "Eczema", 0.7, False)],
    )
    prior = write_run(tmp_path / "prior", [stating(t, "Common cold", 0.05, False) for t in truths])
    sure, unsure = (score(load_run(run)).calibration.sources[0].brier for run in (finds, prior))
    assert unsure
    assert sure
    assert unsure.value == pytest.approx(0.05**2)
    assert sure.value == pytest.approx((3 * 0.3**2 + 0.7**2) / 4)
    (brier,) = (metric for metric in compared(finds, prior).beside if metric.measure.startswith("Brier"))
    assert brier.before < 0.5 < 0.9 < brier.after


def test_tests_are_counted_as_in_the_score_not_by_message(tmp_path: Path) -> None:
    said = [{"turn": 1, "role": "doctor", "text": "REQUEST TEST: CBC and lipase"}]
    parts = [{"topic": name, "provenance": "chart"} for name in ("CBC", "Lipase")]
    said.append({"turn": 1, "role": "measurement", "text": "RESULTS: normal", "disclosures": parts})
    run = write_run(tmp_path / "a", [{"status": "diagnosed", "correct": True, "transcript": said}] * 3)
    (tests,) = (metric for metric in compared(run, run).beside if metric.measure == "tests")
    assert tests.before == score(load_run(run)).orders.items.value == 2


def test_a_doctor_that_judges_itself_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = write_run(tmp_path / "own", [True, False], doctor_llm="j")
    other = write_run(tmp_path / "other", [True, False])
    main(["compare", str(own), str(other)])
    assert "\nA: Judged by the doctor's own model.\n" in capsys.readouterr().out

    endpoints = {"run": {"doctor_endpoint": "one", "moderator_endpoint": "two"}}
    (own / "config.used.json").write_text(json.dumps(endpoints))
    main(["compare", str(own), str(other)])
    assert "own model" not in capsys.readouterr().out
