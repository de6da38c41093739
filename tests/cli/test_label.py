"""`agentclinic judge label`: what a person sees and types, what is kept, and what the figures make of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect
import pytest
from judges_support import write_lines
from report_support import record, unread, write_run, wrong
from runs_support import CLINIC, environment
from scripted_server import LONG

from agentclinic.cli import main
from agentclinic.results.labels import read_labels


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Twenty diagnoses, every second judged right, and an encounter without one."""
    entries = [record(n) if n % 2 else wrong(n, "Psoriatic arthritis") for n in range(20)]
    lost = record(20, status="max_infs_reached", correct=False, diagnosis_text=None, judgement=None)
    return write_run(tmp_path / "run", [*entries, lost])


class Typist:
    """Types the lines of a script; then input ends."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self._lines: Iterator[str] = iter(())
        monkeypatch.setattr("builtins.input", self._input)

    def _input(self, prompt: str) -> str:
        print(prompt, end="")
        line = next(self._lines, None)
        if line is None:
            raise EOFError
        print(line)
        return line

    def types(self, folder: Path, *lines: str, flags: tuple[str, ...] = ("--number", "12")) -> str:
        self._lines = iter(lines)
        main(["judge", "label", str(folder), "--labeler", "ann", *flags])
        return self._capsys.readouterr().out


@pytest.fixture
def typist(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typist:
    return Typist(monkeypatch, capsys)


def test_a_sitting_is_blind_durable_and_resumed(run: Path, typist: Typist) -> None:
    path = run / "labels" / "ann.jsonl"
    screen = typist.types(
        run,
        *("r", "wrong  another disease", "2 the chart shows it"),
        *("unsure", "undo", "w", "undo", "skip", "dance", "chart", "q"),
    )
    before = screen.partition("diagnoses labeled")[0]
    for secret in ("gpt", "doctor_llm", "judged", " j", "equal", "names another disease"):
        assert secret not in before.replace("1 same", ""), "neither the doctor nor a verdict is shown"
    assert "Truth:      Gout\nDiagnosis:  " in before
    assert "Answer right, wrong, 1 to 8" in before
    assert "The run does not contain this case." in before
    assert "12> " in before
    labels = read_labels(path)
    assert [(one.correct, one.relation, one.reason) for one in labels] == [
        (True, None, None),
        (False, None, "another disease"),
        (True, "narrower_consistent", "the chart shows it"),
    ]
    first = labels[0]
    assert (first.labeler, first.drawn_by) == ("ann", ("recorded",))
    assert (first.stratum, first.stratum_size) == ("judged right" if first.scenario_id % 2 else "judged wrong", 10)
    size = path.stat().st_size
    again = typist.types(run, *["r"] * 20)
    assert "4/12> " in again
    assert "\n1/12> " not in again
    assert path.stat().st_size > size
    assert len(read_labels(path)) == 12
    assert typist.types(run, "r", flags=("--number", "99")).count("> ") == 2
    assert "12 diagnoses labeled by ann" in again


def test_y_and_n_are_labels(run: Path, typist: Typist) -> None:
    typist.types(run, "y", "n no such thing", "yes", "no", flags=("--number", "4"))
    labels = [json.loads(line) for line in (run / "labels" / "ann.jsonl").read_text().splitlines()]
    assert [label["correct"] for label in labels] == [True, False, True, False]


def test_the_agreement_that_is_shown_and_the_corrected_accuracy(
    run: Path, typist: Typist, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = typist.types(run, *["r"] * 20, flags=("--number", "20"))
    assert "both right 10, both wrong 0, only recorded right 0, only labeled right 10" in shown
    assert "calls wrong       50.0% (" in shown
    assert "calls right       unknown (nothing is labeled wrong) of wrong diagnoses" in shown
    assert f"agentclinic score {run} --corrected" in shown
    main(["score", str(run), "--corrected"])
    text = capsys.readouterr().out
    assert (
        "Judged by j, which called 50.0% of right diagnoses wrong and unknown of wrong ones right (labels: 20" in text
    )
    assert "Corrected by 20 labels: 95.2% (" in text, "20 of 21: one had no diagnosis"
    assert "note: 20 labeled cases: below 40 the interval is rough" in text
    main(["score", str(run), "--corrected", "--json"])
    found = json.loads(capsys.readouterr().out)["corrected"]
    assert (found["labeled"], found["label_next"]) == (20, [])

    other = write_run(tmp_path / "other", [record(n) for n in range(21)])
    write_lines(other / "labels" / "bob.jsonl", [{"scenario_id": n, "correct": n % 2 == 0} for n in range(20)])
    main(["compare", str(run), str(other), "--corrected"])
    compared = capsys.readouterr().out
    assert "Corrected by labels, B is clearly worse than A: -45.2 points (95% -" in compared
    assert "right A 95.2% (" in compared


def test_what_cannot_be_done_is_refused_with_what_to_do(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = write_run(run.parent / "empty", [record(0, status="max_infs_reached", diagnosis_text=None)])
    label = "agentclinic judge label"
    for arguments, said in (
        (["score", str(run), "--corrected"], f"no labels to correct by; label some diagnoses with: {label} {run}"),
        (["compare", str(run), str(run), "--corrected"], "no labels to correct by"),
        (["judge", "label", str(run), "--labeler", "a/b"], "'a/b' cannot be the name of a file"),
        (["judge", "label", str(empty), "--labeler", "ann"], "no diagnosis with a verdict to label"),
        (["judge", "label", str(run), "--judge", "nobody"], "no such judgements"),
    ):  # fmt: skip
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2
        assert said in capsys.readouterr().err
    assert not (empty / "labels").exists()


@pytest.fixture
def half_read(tmp_path: Path) -> Path:
    """Ten diagnoses: three judged right, three wrong, four not readable; and an encounter without one."""
    entries = [*(record(n) for n in range(3)), *(wrong(n) for n in range(3, 6)), *(unread(n) for n in range(6, 10))]
    lost = record(10, status="max_infs_reached", correct=False, diagnosis_text=None, judgement=None)
    return write_run(tmp_path / "half", [*entries, lost])


def test_only_what_is_unread_is_asked_and_the_figure_follows(half_read: Path, typist: Typist) -> None:
    path = half_read / "labels" / "ann.jsonl"
    screen = typist.types(half_read, "y", "? hard to say", "undo", "?", "help", "h", "skip", "q", flags=("--unread",))
    assert screen.count("Diagnosis:  Broken wing zzyzx of gout") == screen.count("Diagnosis:") == 6
    assert "cannot read" not in screen, "why is a verdict too"
    assert "\n\n4 left; now 27.3% (9.7% to 56.6%; 3 of 11), at most 63.6%: 4 of 11 not readable\n\nTruth:" in screen
    assert "\n3 left; now 36.4% (15.2% to 64.6%; 4 of 11), at most 63.6%: 3 of 11 not readable\n" in screen
    assert "\n2 left; now 36.4% (15.2% to 64.6%; 4 of 11), at most 63.6%: 3 of 11 not readable\n" in screen, (
        "unsure leaves it unread"
    )
    assert screen.count("unsure           recorded") == 3, "once at the start, and help and h"
    assert screen.endswith(
        "\nThe accuracy is now 36.4% (15.2% to 64.6%; 4 of 11), at most 63.6%: 3 of 11 not readable.\n"
    )
    assert [one.correct for one in read_labels(path)] == [True, None]
    assert {(one.stratum, one.stratum_size, one.drawn_by) for one in read_labels(path)} == {
        ("not readable", 4, ("recorded",))
    }
    again = typist.types(half_read, "y", "n", flags=("--unread",))
    assert "2 left; now 36.4% (15.2% to 64.6%; 4 of 11)" in again
    assert "3/4> y" in again
    assert again.endswith(
        "\nThe accuracy is now 45.5% (21.3% to 72.0%; 5 of 11), at most 54.5%: 1 of 11 not readable.\n"
    )
    assert typist.types(half_read, "y", flags=("--unread",)).count("> ") == 0, "each is asked once"


def test_labels_of_other_diagnoses_do_not_count_among_the_unread(half_read: Path, typist: Typist) -> None:
    typist.types(half_read, "y", "n", flags=("--number", "2"))
    assert {one.stratum for one in read_labels(half_read / "labels" / "ann.jsonl")} == {"judged right", "judged wrong"}
    assert "1/4> " in typist.types(half_read, *"yyyy", flags=("--unread",))
    assert len(read_labels(half_read / "labels" / "ann.jsonl")) == 6


def test_the_order_of_what_is_unread_is_that_of_the_seed(half_read: Path, typist: Typist) -> None:
    def order(seed: str) -> list[int]:
        path = half_read / "labels" / "ann.jsonl"
        path.unlink(missing_ok=True)
        typist.types(half_read, *"yyyy", flags=("--unread", "--seed", seed))
        return [one.scenario_id for one in read_labels(path)]

    orders = [order(str(seed)) for seed in range(4)]
    assert order("0") == orders[0]
    assert all(sorted(each) == [6, 7, 8, 9] for each in orders)
    assert len(set(map(tuple, orders))) > 1


def test_what_another_judge_could_not_read_is_asked_by_its_name(half_read: Path, typist: Typist) -> None:
    entries = [{"scenario_id": n, "case_hash": f"{n:016x}", "correct": n % 2 == 0} for n in range(10)]
    entries[2] |= {"correct": None, "reason": "cannot read it"}
    write_lines(half_read / "judgements" / "other.jsonl", entries)
    screen = typist.types(half_read, "n", flags=("--unread", "--judge", "other"))
    assert "\n1 left; now 36.4% (15.2% to 64.6%; 4 of 11), at most 45.5%: 1 of 11 not readable\n" in screen
    assert screen.endswith("\nThe accuracy is now 36.4% (15.2% to 64.6%; 4 of 11).\n")
    assert [one.scenario_id for one in read_labels(half_read / "labels" / "ann.jsonl")] == [2]


def test_a_run_without_unread_diagnoses_has_nothing_to_label(run: Path, typist: Typist) -> None:
    assert typist.types(run, "y", flags=("--unread",)) == "The judge could read every diagnosis: nothing to label.\n"
    assert not (run / "labels").exists()


def test_labels_of_unread_diagnoses_stand_for_no_others_and_feed_the_correction(
    half_read: Path, typist: Typist, capsys: pytest.CaptureFixture[str]
) -> None:
    typist.types(half_read, *"yyyn", flags=("--unread",))
    main(["score", str(half_read), "--corrected"])
    text = capsys.readouterr().out
    assert "Corrected by 4 labels: unknown (no label yet in judged right (3 cases))" in text
    assert "Judged by j; how often it errs is not known (agentclinic judge label measures it). People labeled 4" in text
    shown = typist.types(half_read, *["y"] * 20)
    assert "recorded, which judged 6 of them and could not read 4" in shown
    assert "  decided           60.0% (31.3% to 83.2%; 6 of 10); the figures below are of these" in shown
    assert "both right 3, both wrong 0, only recorded right 0, only labeled right 3" in shown
    assert "calls wrong       50.0% (" in shown
    main(["score", str(half_read), "--corrected"])
    text = capsys.readouterr().out
    assert "which decided 60.0% of the diagnoses; of these it called 50.0% of right diagnoses wrong" in text
    assert "Corrected by 10 labels: 81.8% (" in text, "9 of 11"


@pytest.mark.slow
def test_ctrl_c_at_a_real_terminal_loses_no_label(run: Path) -> None:
    arguments = [*CLINIC[1:], "judge", "label", str(run), "--labeler", "ann", "--number", "5"]
    child: Any = pexpect.spawn(CLINIC[0], arguments, env=environment(TERM="xterm"), encoding="utf-8", timeout=LONG)
    for prompt, line in (("1/5> ", "r"), ("2/5> ", "w")):
        child.expect_exact(prompt)
        child.sendline(line)
    child.expect_exact("3/5> ")
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130
    assert "Traceback" not in child.before
    assert [one.correct for one in read_labels(run / "labels" / "ann.jsonl")] == [True, False]
