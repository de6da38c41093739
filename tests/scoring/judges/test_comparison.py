"""The judges of a run compared with each other, and the commands."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest
from judges_support import judge, original_run, write_lines

from agentclinic.cli import main
from agentclinic.config import load_settings
from agentclinic.errors import InputError
from agentclinic.results.run_data import load_run
from agentclinic.runs.regrade import regrade
from agentclinic.scoring.judges.comparison import compare_judges
from agentclinic.scoring.judges.panel import load_panel, write_majority
from agentclinic.scoring.outcome import summarise

Y, N = True, False


class TestCompareJudges:
    def test_counts_by_hand_on_a_run_in_the_original_format(self, run: Path) -> None:
        comparison = compare_judges(run)
        assert [j.name for j in comparison.judges] == ["recorded", "a", "b"]
        assert (comparison.diagnoses, comparison.wrong_unjudged, comparison.failed) == (8, 1, 1)
        assert [(j.judged, j.not_judged, j.right.count) for j in comparison.judges] == [(8, 0, 4), (7, 1, 3), (8, 0, 4)]
        assert comparison.judges[0].models == ["gpt-4"]
        first = comparison.pairs[0]
        assert (first.first, first.second, first.agreement.of, first.only_first_judged) == ("recorded", "a", 7, 1)
        assert first.confusion.model_dump() == {
            "both_yes": 3, "only_first_yes": 1, "only_second_yes": 0, "both_no": 3,
        }  # fmt: skip
        # po = 6/7; yes 4/7 and 3/7: pe = 24/49; (42/49 - 24/49) / (25/49) = 18/25.
        assert first.kappa.value == pytest.approx(18 / 25)
        assert first.kappa.low is not None
        assert first.relations is None
        assert comparison.fleiss is not None
        assert comparison.fleiss.n == 7
        assert [d.scenario_id for d in comparison.disputed] == [1, 2, 7]
        dispute = comparison.disputed[1]
        assert (dispute.truth, dispute.diagnosis) == ("Asthma", "Asthma")
        assert dispute.opinions["a"].reason == "so it is"

    def test_swapping_two_judges_transposes_the_table_and_keeps_kappa(self, run: Path) -> None:
        one, other = compare_judges(run, ["a", "b"]).pairs[0], compare_judges(run, ["b", "a"]).pairs[0]
        assert one.kappa.value == pytest.approx(other.kappa.value)
        assert one.confusion.only_first_yes == other.confusion.only_second_yes
        assert one.only_first_judged == other.only_second_judged

    def test_a_pair_does_not_depend_on_who_else_is_compared(self, run: Path) -> None:
        assert compare_judges(run, ["a", "b"]).pairs[0] == compare_judges(run).pairs[2]

    def test_relations_are_crossed_if_both_judges_give_one(self, run: Path) -> None:
        judge(run, "x", [Y] * 8, relation="same")
        judge(run, "y", [Y] * 8, relation="narrower_consistent")
        pair = compare_judges(run, ["x", "y"]).pairs[0]
        assert pair.relations == {"same": {"narrower_consistent": 8}}
        assert pair.same_relation is not None
        assert (pair.same_relation.count, pair.same_relation.of) == (0, 8)
        assert pair.kappa.value is None
        assert compare_judges(run, ["a", "x"]).pairs[0].relations is None

    def test_a_majority_is_compared_but_is_not_one_of_fleiss_judges(self, run: Path) -> None:
        write_majority(run, ["recorded", "a", "b"])
        comparison = compare_judges(run)
        assert comparison.fleiss_judges == ["recorded", "a", "b"]
        assert comparison.judges[-1].name == "majority_recorded_a_b"
        assert comparison.judges[-1].majority_of == ["recorded", "a", "b"]
        assert len(comparison.pairs) == 6

    def test_a_verdict_on_another_diagnosis_does_not_count(self, run: Path) -> None:
        judge(run, "old", [Y] * 8, diagnosis="Gout")
        summary = compare_judges(run, ["recorded", "old"]).judges[1]
        assert (summary.judged, summary.not_judged, summary.stale) == (0, 8, 8)

    def test_what_a_judge_could_not_read_is_left_out_and_counted(
        self, run: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        judge(run, "x", [Y, "unread", "unread", N, N, N, Y, None], relation="same")
        comparison = compare_judges(run, ["recorded", "x"])
        summary, pair = comparison.judges[1], comparison.pairs[0]
        assert (summary.judged, summary.not_judged, summary.unread) == (5, 3, 2)
        assert (pair.agreement.count, pair.agreement.of, pair.only_first_judged) == (5, 5, 3)
        assert comparison.disputed == []
        main(["judge", "compare", str(run), "--judges", "recorded,x"])
        assert "; 3 not judged, 2 of them not readable\n" in capsys.readouterr().out

    def test_a_real_regrade_fits_a_run_of_the_original(self, tmp_path: Path) -> None:
        folder = original_run(tmp_path / "MedQA_2")
        settings = load_settings(None, None, {"moderator_llm": "builtin", "workers": 2})
        anyio.run(regrade, folder, settings)
        comparison = compare_judges(folder)
        assert [(j.name, j.judged, j.stale) for j in comparison.judges] == [("recorded", 8, 0), ("builtin", 8, 0)]
        assert comparison.pairs[0].kappa.value == 1
        assert comparison.disputed == []

    def test_repeats_are_kept_separate_and_clustered(self, tmp_path: Path) -> None:
        records = [
            {
                "scenario_id": n % 6, "repeat": n // 6, "case_hash": f"h{n % 6}", "status": "diagnosed",
                "correct": n % 2 == 0, "judgement": {"relation": "same", "reason": "r"},
            }
            for n in range(12)
        ]  # fmt: skip
        write_lines(tmp_path / "scenarios.jsonl", records)
        entries = [{**record, "correct": record["scenario_id"] == 0} for record in records]
        write_lines(tmp_path / "judgements" / "x.jsonl", entries)
        comparison = compare_judges(tmp_path)
        assert comparison.pairs[0].agreement.clustered
        assert comparison.pairs[0].confusion.both_yes == 2

    def test_one_judge_alone_is_refused_with_what_to_do(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="agentclinic regrade"):
            compare_judges(original_run(tmp_path))

    def test_a_file_that_takes_the_recorded_judges_name_is_refused(self, run: Path) -> None:
        judge(run, "recorded", [Y])
        with pytest.raises(InputError, match="rename the file"):
            compare_judges(run)

    def test_a_verdict_other_than_true_false_or_null_is_refused(self, run: Path) -> None:
        judge(run, "x", ["yes"])
        with pytest.raises(InputError, match=r"x\.jsonl line 1: not a judgement .correct must be true, false or null"):
            load_panel(run, ["x"])

    def test_no_names_are_refused_with_the_names_of_the_judges(self, run: Path) -> None:
        with pytest.raises(InputError, match="this run has recorded, a, b"):
            compare_judges(run, [])


class TestCommand:
    def test_the_text_has_every_figure(self, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        labels = write_lines(tmp_path / "l.jsonl", [{"scenario_id": n, "correct": n < 3} for n in range(8)])
        judge(run, "x", [Y] * 8, relation="same")
        judge(run, "y", [Y] * 8, relation="broader")
        main(["judge", "compare", str(run), "--labels", str(labels)])
        shown = capsys.readouterr().out
        assert "8 diagnoses to judge; encounters without a diagnosis: 1 counted as wrong, 1 as missing" in shown
        assert "recorded (gpt-4): right 50.0%" in shown
        assert "Cohen's kappa  0.72 (" in shown
        assert "judged only by recorded 1, only by a 0, by neither 0" in shown
        assert "8  same by x, broader by y" in shown
        assert "Fleiss' kappa of recorded, a, b, x, y" in shown
        assert "corrected, PPI++  33.3% (" in shown, "3 of 9"
        assert "Label next:" not in shown, "everything is labeled"
        assert "MedQA/2, labeled right: 'Asthma', truth 'Asthma'" in shown
        assert "    a: wrong (so it is)" in shown

    def test_json_is_the_whole_comparison(self, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
        main(["judge", "compare", str(run), "--judges", "a, recorded", "--json"])
        shown = json.loads(capsys.readouterr().out)
        assert shown == compare_judges(run, ["a", "recorded"]).model_dump(mode="json")
        assert shown["disputed"][0]["opinions"]["a"]["correct"] is False

    def test_majority_names_its_file(self, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
        main(["judge", "majority", str(run), "--judges", "recorded,a,b"])
        assert "7 diagnoses decided, 1 without a majority (0 ties" in capsys.readouterr().out
        main(["judge", "majority", str(run), "--judges", "recorded,b", "--name", "m", "--json"])
        assert json.loads(capsys.readouterr().out) == {
            "path": str(run / "judgements" / "m.jsonl"), "decided": 6, "undecided": 2, "ties": 2, "unread": 0,
        }  # fmt: skip
        summary = summarise(load_run(run, "m").records())
        assert summary.faults["moderator.tie"] == 2, "a tie is stated, not hidden"
        assert summary.outcomes["judge_failed"] == 2
