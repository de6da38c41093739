"""Twins: which cases are a pair, how often both are right, and how often both get the same answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from report_support import Json, record, twin, unread, write_run

from agentclinic.cli import main
from agentclinic.results.record import Record
from agentclinic.results.run_data import load_run
from agentclinic.scoring.compare import Arm, SecondaryMetric, compare_two, load_arm
from agentclinic.scoring.metrics import Twins, twins
from agentclinic.scoring.rows import row_of
from agentclinic.scoring.score import score
from agentclinic.scoring.stats import Proportion, paired_difference, proportion

NO_VERDICT: Json = {"status": "judge_failed", "correct": None, "judgement": None}
CUT_SHORT: Json = {"status": "model_failed", "correct": None, "diagnosis_text": None}
SEPTIC = "Septic arthritis"


def measured(*entries: Json) -> Twins:
    return twins([row_of(Record.model_validate(entry)) for entry in entries])


def counts(share: Proportion) -> tuple[int, int]:
    return share.count, share.of


def apart(first: int, **changes: Any) -> list[Json]:
    """A pair told apart."""
    return [twin(first, **changes), twin(first + 1, said=SEPTIC, **changes)]


def alike(first: int, **changes: Any) -> list[Json]:
    """A pair with one answer to both, which is right for one."""
    return [twin(first, **changes), twin(first + 1, right=False, said="gout", **changes)]


def test_a_pair_counts_if_both_twins_are_right_and_the_same_answer_is_found_by_the_written_rules() -> None:
    neither = [twin(4, right=False, said="Influenza"), twin(5, right=False, said="Migraine")]
    found = measured(*apart(0), *alike(2), *neither)
    assert counts(found.both_right) == (1, 3)
    assert counts(found.same_answer) == (1, 3)
    assert found.both_right == proportion(1, 3)
    assert found.without_partner == 0


def test_one_answer_for_every_case_gets_half_of_the_cases_and_no_pair() -> None:
    entries = [entry for first in range(0, 16, 2) for entry in alike(first)]
    found = measured(*entries)
    assert sum(entry["correct"] for entry in entries) / len(entries) == 0.5
    assert counts(found.both_right) == (0, 8)
    assert counts(found.same_answer) == (8, 8)


@pytest.mark.parametrize("said", [("Gout", "The diagnosis is gout"), ("The diagnosis is gout", "Gout")])
def test_the_same_answer_in_other_words_is_the_same_whichever_twin_it_is_given_to(said: tuple[str, str]) -> None:
    assert counts(measured(twin(0, said=said[0]), twin(1, said=said[1])).same_answer) == (1, 1)


def test_a_missing_outcome_leaves_the_pair_out_of_pair_accuracy_but_two_diagnoses_can_still_be_compared() -> None:
    found = measured(*apart(0), twin(2), twin(3, **NO_VERDICT), twin(4), twin(5, **CUT_SHORT), twin(6))
    assert counts(found.both_right) == (1, 1)
    assert counts(found.same_answer) == (1, 2), "the judge failed, but the doctor said the same"
    assert found.without_partner == 5


def test_an_answer_that_could_not_be_read_is_not_right() -> None:
    notes = twin(1)["annotations"]
    found = measured(twin(0), unread(1, annotations=notes))
    assert counts(found.both_right) == (0, 1)
    assert counts(found.same_answer) == (0, 1)


def test_twins_must_name_each_other_and_be_played_in_the_same_repeat() -> None:
    itself = record(4, annotations={"case_id": "x", "twin_of": "x"})
    one_sided = record(5, annotations={"case_id": "c9", "twin_of": "c0"})
    found = measured(twin(0, repeat=0), one_sided, twin(1, repeat=1), itself)
    assert found.both_right.value is None
    assert found.without_partner == 3, "a case that is its own twin has none"


def test_repeats_of_a_pair_belong_together_in_the_interval() -> None:
    """Every repeat of a pair ends alike, so two pairs played four times say no more than two pairs."""
    entries = [entry for repeat in range(4) for entry in (*apart(0, repeat=repeat), *alike(2, repeat=repeat))]
    found, single = measured(*entries).both_right, proportion(1, 2)
    assert counts(found) == (4, 8)
    assert (found.low, found.high, found.clustered) == pytest.approx((single.low, single.high, True))


def test_score_has_the_two_shares_and_how_many_were_left_out(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [*apart(0), *alike(2), twin(4)])
    found = json.loads(score(load_run(run)).model_dump_json())["twins"]
    assert [found[key]["value"] for key in ("both_right", "same_answer")] == [0.5, 0.5]
    assert found["without_partner"] == 1


# --- two runs -------------------------------------------------------------------------------------------------------


def arm(folder: Path, *entries: Json) -> Arm:
    return load_arm(load_run(write_run(folder, entries)))


def of_pairs(first: Arm, second: Arm) -> dict[str, SecondaryMetric]:
    return {one.measure: one for one in compare_two(first, second).beside if one.unit == "pair"}


def test_two_runs_are_compared_over_the_pairs_that_both_have(tmp_path: Path) -> None:
    """By hand: of pairs 0, 2, 4 A tells one apart and B two; B gains 2 and 4 and loses 0. Pair 6 is only in A."""
    a = arm(tmp_path / "a", *apart(0), *alike(2), *alike(4), *alike(6))
    b = arm(tmp_path / "b", *alike(0), *apart(2), *apart(4), twin(6), twin(7, **CUT_SHORT))
    found = of_pairs(a, b)
    right, same = found["both twins right"], found["same answer to both twins"]
    assert (right.cases, right.before, right.after) == pytest.approx((3, 1 / 3, 2 / 3))
    assert right.difference == paired_difference([(0, 0, 1), (2, 1, 0), (4, 1, 0)]).estimate
    assert (same.cases, same.before, same.after) == pytest.approx((3, 2 / 3, 1 / 3))
    assert same.difference.value == pytest.approx(-1 / 3)


def test_with_repeats_a_pair_is_the_mean_of_its_repeats(tmp_path: Path) -> None:
    """By hand: pair 0 goes from 1/2 to 1, pair 2 from 0 to 1/2; a play of each gains either with a chance of 1/2."""
    a = arm(tmp_path / "a", *apart(0), *alike(0, repeat=1), *alike(2), *alike(2, repeat=1))
    b = arm(tmp_path / "b", *apart(0), *apart(0, repeat=1), *apart(2), *alike(2, repeat=1))
    right = of_pairs(a, b)["both twins right"]
    assert (right.cases, right.before, right.after) == (2, 0.25, 0.75)
    assert right.difference == paired_difference([(0, 0.5, 0), (2, 0.5, 0)], plays=2).estimate
    assert not a.waiting, "what has met is not kept"


def test_runs_without_common_pairs_have_nothing_to_compare(tmp_path: Path) -> None:
    assert of_pairs(arm(tmp_path / "a", *apart(0)), arm(tmp_path / "b", twin(0), record(2))) == {}


def test_compare_prints_a_line_for_each_measure_of_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = write_run(tmp_path / "a", [*alike(0), *alike(2)])
    b = write_run(tmp_path / "b", [*apart(0), *alike(2)])
    main(["compare", str(a), str(b), "--full"])
    full = capsys.readouterr().out
    assert "  both twins right: 0.0% -> 50.0%, difference +50.0 points (" in full
    assert "  same answer to both twins: 100.0% -> 50.0%, difference -50.0 points (" in full
    assert full.count(", 2 pairs\n") == 2
    main(["compare", str(a), str(b)])
    assert "twins" not in capsys.readouterr().out
    main(["compare", str(a), str(b), "--json"])
    beside = json.loads(capsys.readouterr().out)["comparisons"][0]["beside"]
    assert [(one["measure"], one["after"]) for one in beside if one["unit"] == "pair"] == [
        ("both twins right", 0.5),
        ("same answer to both twins", 0.5),
    ]
