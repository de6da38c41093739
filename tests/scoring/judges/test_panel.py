"""The majority of several judges."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judges_support import judge

from agentclinic.errors import InputError
from agentclinic.results.run_data import load_run
from agentclinic.scoring.judges.panel import majority, write_majority
from agentclinic.scoring.outcome import summarise
from agentclinic.scoring.verdicts import strict

Y, N = True, False


class TestMajority:
    @pytest.mark.parametrize(
        ("verdicts", "expected"),
        [
            ([True, True, False], True),
            ([True, False, False], False),
            ([True, True, True], True),
            ([True, True, None], True),
            ([False, None, False], False),
            ([True, False, None], None),
            ([True, None, None], None),
            ([True, False], None),
            ([True, True], True),
            ([True, True, False, None, None], None),
            ([True], True),
            ([None], None),
            ([], None),
        ],
    )
    def test_is_the_verdict_of_more_than_half_of_all_judges(
        self, verdicts: list[bool | None], expected: bool | None
    ) -> None:
        assert majority(verdicts) is expected

    @given(st.lists(st.sampled_from([True, False, None]), max_size=7))
    def test_cannot_be_overturned_by_missing_verdicts(self, verdicts: list[bool | None]) -> None:
        decided = majority(verdicts)
        if decided is not None:
            for late in (True, False):
                assert majority([late if verdict is None else verdict for verdict in verdicts]) is decided

    @given(st.lists(st.sampled_from([True, False, None]), max_size=7))
    def test_does_not_depend_on_order_and_flips_with_the_verdicts(self, verdicts: list[bool | None]) -> None:
        assert majority(verdicts[::-1]) is majority(verdicts)
        turned = majority([None if verdict is None else not verdict for verdict in verdicts])
        assert turned is (None if majority(verdicts) is None else not majority(verdicts))


class TestWriteMajority:
    def test_makes_a_file_that_serves_as_a_judge(self, run: Path) -> None:
        written = write_majority(run, ["recorded", "a", "b"])
        assert written.path == run / "judgements" / "majority_recorded_a_b.jsonl"
        assert (written.decided, written.undecided) == (7, 1)
        data = load_run(run, judge="majority_recorded_a_b")
        assert [strict(record) for record in data.records()] == [Y, Y, Y, N, N, N, Y, None, N, None]
        summary = summarise(data.records())
        assert summary.accuracy_strict is not None
        assert (summary.accuracy_strict.count, summary.accuracy_strict.of) == (4, 8)

    def test_says_who_voted_how_and_leaves_the_records_alone(self, run: Path) -> None:
        before = (run / "scenarios.jsonl").read_bytes()
        path = write_majority(run, ["recorded", "a", "b"]).path
        entries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        assert (run / "scenarios.jsonl").read_bytes() == before
        assert entries[2]["reason"] == "recorded: right; a: wrong (so it is); b: right"
        assert entries[2]["majority_of"] == ["recorded", "a", "b"]
        assert entries[7]["correct"] is None
        assert entries[7]["fault"]["error"] == "no_majority"

    def test_relation_and_lenient_verdict_are_those_of_the_majority(self, run: Path) -> None:
        judge(run, "x", [N] * 8, relation="broader", correct_lenient=True)
        judge(run, "y", [N] * 8, relation="broader", correct_lenient=True)
        judge(run, "z", [N] * 8, relation="sibling", correct_lenient=False)
        entry = json.loads(
            write_majority(run, ["x", "y", "z"], "mine").path.read_text(encoding="utf-8").splitlines()[0]
        )
        assert (entry["correct"], entry["relation"], entry["correct_lenient"]) == (False, "broader", True)

    def test_a_judge_that_could_not_read_a_diagnosis_has_no_vote_on_it(self, run: Path) -> None:
        judge(run, "x", ["unread", "unread", Y, None, "unread", N, N, N], relation="same")
        judge(run, "y", [Y, "unread", N, Y, "unread", N, N, N], relation="same")
        judge(run, "z", [Y, N, "unread", "unread", "unread", N, N, N], relation="broader", correct_lenient=True)
        written = write_majority(run, ["x", "y", "z"], "m")
        assert (written.decided, written.undecided, written.ties, written.unread) == (5, 2, 1, 1)
        statuses = [record.status for record in load_run(run, "m").records()]
        assert statuses[:5] == ["diagnosed", "diagnosed", "judge_failed", "judge_failed", "not_readable"]
        entries = [json.loads(line) for line in written.path.read_text(encoding="utf-8").splitlines()]
        assert entries[0]["reason"] == "x: not judged (cannot read 'zzyzx'); y: right, same; z: right, broader"
        assert (entries[1]["relation"], entries[1]["correct_lenient"]) == ("broader", True), "z decides alone"
        assert entries[3]["fault"]["error"] == "no_majority", "a verdict that is missing may still overturn it"

    def test_can_be_written_again_but_not_over_another_judge(self, run: Path) -> None:
        first = write_majority(run, ["recorded", "a", "b"])
        assert write_majority(run, ["recorded", "a", "b"]) == first
        with pytest.raises(InputError, match="verdicts other than"):
            write_majority(run, ["recorded", "b", "a"], first.path.stem)
        judge(run, "c", [Y] * 8)
        with pytest.raises(InputError, match="verdicts other than"):
            write_majority(run, ["recorded", "a", "b"], "c")

    @pytest.mark.parametrize(
        ("judges", "name", "message"),
        [
            (["a"], None, "at least two"),
            (["a", "a", "b"], None, "twice"),
            (["a", "b"], "a", "one of the judges"),
            (["a", "b"], "../a", "cannot be the name"),
            (["a", "../b"], None, "cannot be the name"),
            (["a", "missing"], None, "no such judgements; the run has a, b"),
        ],
    )
    def test_refuses_judges_that_cannot_form_a_majority(
        self, run: Path, judges: list[str], name: str | None, message: str
    ) -> None:
        with pytest.raises(InputError, match=message):
            write_majority(run, judges, name)
