"""The judge benchmark: what its figures mean, what it opens, and what it prints."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from benchmark_support import load_benchmark

benchmark = load_benchmark("judge")
A, B = benchmark.READERS


def row(number: int, *relations: str, says: str = "Gout") -> Any:
    return benchmark.Row(number, str(number), says, "Gout", relations)


def squeezed(text: str) -> str:
    """The text without the spaces that align columns."""
    return re.sub(" +", " ", text)


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")


def test_errors_are_counted_among_the_decided_and_accuracy_counts_the_unread_as_wrong() -> None:
    same, other = ("same", "same"), ("different", "different")
    rows = [row(n, *labels) for n, labels in enumerate([same] * 6 + [other] * 4)]
    found = benchmark.tally(rows, [True, True, True, True, False, None, True, False, False, None], A)
    assert (found.decided.count, found.decided.of) == (8, 10)
    assert (found.wrong.count, found.wrong.of) == (2, 8)
    assert (found.false_yes, found.false_no) == (1, 1)
    assert (found.sensitivity.value, found.specificity.value) == (4 / 5, 2 / 3)
    assert found.accuracy.value == 6 / 10
    # Of 8: both Yes 4, both No 2; p1 = p2 = 5/8, so pe = 25/64 + 9/64 and kappa = (6/8 - 34/64) / (30/64).
    assert found.kappa.value == pytest.approx((48 - 34) / 30)


def test_a_standard_says_nothing_about_rows_that_it_has_not_marked() -> None:
    agreed, disputed, single = row(0, "same", "narrower_consistent"), row(1, "same", "broader"), row(2, "sibling")
    assert [one.right(A) for one in (agreed, disputed, single)] == [True, True, False]
    assert [one.right(B) for one in (agreed, disputed, single)] == [True, False, None]
    assert [one.right(benchmark.BOTH) for one in (agreed, disputed, single)] == [True, None, None]
    assert benchmark.tally([single], [True], B) is None


def test_without_the_public_data_the_pairs_still_run_and_nothing_held_out_is_opened(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(benchmark, "DATA", tmp_path)
    monkeypatch.setattr(benchmark, "LABELS", tmp_path)  # opening a held-out file here would fail
    benchmark.main()
    printed = squeezed(capsys.readouterr().out)
    assert "recorded_1: skipped" in printed
    assert "pairs 484" in printed
    assert not any(part in printed for part in benchmark.HELD_OUT)


def test_held_out_parts_are_printed_when_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rows = [{"id": f"t{n}", "truth": "Gout", "diagnosis": "Gout" if n % 2 else "Migraine"} for n in range(8)]
    labels = [{"id": f"t{n}", "relation": "same" if n else "sibling", "sure": True} for n in range(8)]
    write(tmp_path / "verdicts4_test.jsonl", rows)
    write(tmp_path / "verdicts4_honest.jsonl", rows[1::2])
    for reader in "ab":
        write(tmp_path / f"verdicts4_test_reader_{reader}.jsonl", labels)
    monkeypatch.setattr(benchmark, "LABELS", tmp_path)
    benchmark.main(["--rows", "verdicts4_test", "verdicts4_honest", "--show"])
    printed = squeezed(capsys.readouterr().out)
    assert "verdicts4_test 8 100.0 (67.6 - 100.0)" in printed
    assert "verdicts4_honest 4 100.0 (51.0 - 100.0) 0.0 (0.0 - 49.0)" in printed
    assert "row t2 false No: different / same / same 'Migraine' for 'Gout' (" in printed
    assert "row t0" not in printed


@pytest.mark.skipif(not (benchmark.DATA / "judge").exists(), reason="needs ../shared/data")
def test_rows_are_listed_by_number_and_no_text_of_the_public_data_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = benchmark.read_rows("recorded_2")
    assert [one.number for one in rows] == list(range(1, 80, 2))
    found = [benchmark.Comparison(None, "cannot read 'zzyzx'")] * len(rows)
    benchmark.print_errors("recorded_2", rows, found, show=True)
    benchmark.main(["--rows", *benchmark.RECORDED, "--show"])
    printed = squeezed(capsys.readouterr().out)
    assert all(f"row {one.number} not readable: - / {' / '.join(one.relations)}\n" in printed for one in rows)
    assert not any(text in printed for one in rows for text in (one.says, one.truth))


def test_another_checkout_is_measured_with_its_own_package(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    package = tmp_path / "agentclinic" / "__init__.py"
    package.parent.mkdir()
    package.write_text(f"print({json.dumps(json.dumps({'pairs': [None] * 484}))})\nraise SystemExit\n", "utf-8")
    benchmark.main(["--rows", "pairs", "--checkout", str(tmp_path)])
    printed = squeezed(capsys.readouterr().out)
    assert "pairs, before 484 0.0 (0.0 - 0.8)" in printed
    assert "pairs, now 484" in printed


@pytest.mark.parametrize(
    ("given", "said"), [(["--rows", "third"], "'third'"), (["--checkout", "tests"], "tests: no package agentclinic")]
)
def test_what_cannot_be_measured_is_refused(given: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        benchmark.main(given)
    assert stopped.value.code == 2
    assert said in capsys.readouterr().err
