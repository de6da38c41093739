"""Labels: reading, matching, and judges measured against them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from judges_support import ORIGINAL_FIELDS, write_lines

from agentclinic.errors import InputError
from agentclinic.results.labels import read_labels
from agentclinic.scoring.judges.comparison import compare_judges


class TestLabels:
    def long_run(self, tmp_path: Path) -> Path:
        """60 diagnoses, 40 judged right. Of the first 20, 12 are right (9 judged so) and 8 wrong (6 judged so)."""
        said = [True] * 9 + [False] * 3 + [False] * 6 + [True] * 2 + [True] * 29 + [False] * 11
        records = [
            {**ORIGINAL_FIELDS, "scenario_id": n, "status": "diagnosed", "correct": verdict, "ground_truth": "Gout",
             "diagnosis_text": "Gout"}
            for n, verdict in enumerate(said)
        ]  # fmt: skip
        records.extend({**ORIGINAL_FIELDS, "scenario_id": n, "status": "doctor_failed"} for n in range(60, 80))
        write_lines(tmp_path / "run" / "scenarios.jsonl", records)
        return tmp_path / "run"

    def labels(self, tmp_path: Path, entries: Sequence[dict[str, Any]]) -> Path:
        return write_lines(tmp_path / "labels.jsonl", entries)

    def test_by_hand(self, tmp_path: Path) -> None:
        folder = self.long_run(tmp_path)
        entries: list[dict[str, Any]] = [{"scenario_id": n, "correct": n < 12} for n in range(20)]
        entries += [{"scenario_id": 70, "correct": False}, {"scenario_id": 500, "correct": True}]
        comparison = compare_judges(folder, labels=self.labels(tmp_path, entries))
        report = comparison.labels
        assert report is not None
        assert (report.used, report.unused) == (20, 2)
        (row,) = report.judges
        assert (row.judge, row.labeled) == ("recorded", 20)
        assert (row.both_right, row.only_label_right, row.both_wrong, row.only_judge_right) == (9, 3, 6, 2)
        assert (row.missed.value, row.credited.value) == pytest.approx((3 / 12, 2 / 8))
        assert (row.missed.low, row.missed.high) == pytest.approx((0.07, 0.53), abs=0.06)
        assert (row.accuracy.count, row.accuracy.of) == (40, 80)
        # (40 · 9/11 + 20 · 3/9) / 80
        assert row.corrected.value == pytest.approx((40 * 9 / 11 + 20 / 3) / 80)
        # po = 15/20; yes 11/20 and 12/20: pe = (132 + 72)/400.
        assert row.kappa.value == pytest.approx((0.75 - 0.51) / 0.49)
        assert row.note is None

    def test_warns_if_the_labels_were_chosen_by_verdict(self, tmp_path: Path) -> None:
        folder = self.long_run(tmp_path)
        said_wrong = [*range(9, 18), *range(49, 60)]
        entries = [{"scenario_id": n, "correct": n % 2 == 0} for n in said_wrong]
        report = compare_judges(folder, labels=self.labels(tmp_path, entries)).labels
        assert report is not None
        assert "not a random sample" in (report.judges[0].note or "")

    def test_a_label_counts_only_for_its_case_repeat_and_diagnosis(self, tmp_path: Path) -> None:
        records = [
            {"scenario_id": 1, "case_hash": "h", "repeat": r, "status": "diagnosed", "correct": True,
             "diagnosis_text": "Gout"}
            for r in range(2)
        ]  # fmt: skip
        write_lines(tmp_path / "scenarios.jsonl", records)

        def used(**label: Any) -> int:
            fitting = {"scenario_id": 1, "correct": True}
            path = self.labels(tmp_path, [fitting, {**fitting, "repeat": 1, **label}])
            report = compare_judges(tmp_path, labels=path).labels
            assert report is not None
            return report.used

        assert used() == 2
        assert used(case_hash="h", diagnosis="Gout", labeler="R. M.", reason="clear") == 2
        assert used(labeller="R. M.") == 2, "as in files of version 0.2"
        assert used(case_hash="other") == 1
        assert used(diagnosis="Pseudogout") == 1
        assert used(repeat=2) == 1
        assert used(repeat=0) == 1

    @pytest.mark.parametrize(
        ("lines", "message"),
        [
            ('{"scenario_id": 1, "correct": "yes"}', "line 1: correct: Input should be a valid boolean"),
            ('{"scenario_id": 1}', "line 1: correct: Field required"),
            ('\n{"scenario_id": 1, "correct": true, "rep": 2}', "line 2: rep: Extra inputs"),
            ("right\n", "line 1: not a label .Expecting value"),
            ('{"scenario_id": 1, "correct": true, "relation": "cousin"}', "line 1: relation: Input should be"),
        ],
    )
    def test_a_bad_line_is_refused_by_its_number(self, tmp_path: Path, lines: str, message: str) -> None:
        path = tmp_path / "labels.jsonl"
        path.write_text(lines, encoding="utf-8")
        with pytest.raises(InputError, match=message):
            read_labels(path)

    def test_the_labels_in_the_runs_folder_count_and_labelers_who_disagree_count_half(self, tmp_path: Path) -> None:
        folder = self.long_run(tmp_path)
        ann = [{"scenario_id": n, "correct": n < 12, "labeler": "ann"} for n in range(20)]
        ann += [{"scenario_id": 20, "correct": None, "labeler": "ann"}]
        ann += [{"scenario_id": 21, "correct": True, "labeler": "ann"}]
        ann += [{"scenario_id": 21, "correct": None, "labeler": "ann", "undone": True}]
        write_lines(folder / "labels" / "ann.jsonl", ann)
        write_lines(folder / "labels" / "bob.jsonl", [{"scenario_id": 0, "correct": False, "labeler": "bob"}])
        report = compare_judges(folder).labels
        assert report is not None
        (row,) = report.judges
        assert (row.labeled, row.unsure, row.labelers) == (20, 1, ["ann", "bob"])
        assert (row.both_right, row.only_judge_right) == (8.5, 2.5)

    def test_contradicting_foreign_and_absent_labels_are_refused(self, tmp_path: Path) -> None:
        folder = self.long_run(tmp_path)
        twice = [{"scenario_id": 1, "correct": True}, {"scenario_id": 1, "correct": False}]
        with pytest.raises(InputError, match="both right and wrong"):
            compare_judges(folder, labels=self.labels(tmp_path, twice))
        with pytest.raises(InputError, match="none of its labels"):
            compare_judges(folder, labels=self.labels(tmp_path, [{"scenario_id": 900, "correct": True}]))
        with pytest.raises(InputError, match="cannot be read"):
            compare_judges(folder, labels=tmp_path / "nowhere.jsonl")
