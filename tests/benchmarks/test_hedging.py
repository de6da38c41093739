"""The hedging benchmark: its templates, its other diseases, and the counts it finds on truths of our own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmark_support import load_benchmark
from scripted_server import ScriptedServer

benchmark = load_benchmark("hedging")
FORMS = "forms of the issue"


@pytest.fixture(autouse=True)
def _openosce_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(benchmark, "DATA", tmp_path)  # OpenOSCE is part of the package


def test_the_other_diseases_are_of_other_organs_and_the_same_for_the_same_truth() -> None:
    others = sum(benchmark.OTHERS.values(), ())
    assert benchmark.unrelated("Septic arthritis", others) == benchmark.unrelated("septic arthritis", others)
    for other in benchmark.unrelated("Septic arthritis", others):
        assert "joint" not in benchmark.organs(other)


def test_every_template_names_the_truth_and_stands_in_one_group() -> None:
    groups = [*benchmark.FALSE.values(), *benchmark.FIRST.values(), *benchmark.HONEST.values()]
    templates = [template for several in groups for template in several]
    assert len(set(templates)) == len(templates)
    assert all("{T}" in template for template in templates)
    assert len(benchmark.FALSE[FORMS]) == 36


def test_a_template_is_filled_by_plain_replacement() -> None:
    truth = benchmark.Truth(None, "", {"T": "Gout {X}", "X": "Migraine", "Y": "Acne"})
    assert truth.fill('{"dx": "{T}", {X}} {0} {Y}') == '{"dx": "Gout {X}", Migraine} {0} Acne'


@pytest.mark.slow
@pytest.mark.parametrize(
    "forms",
    [False, True],
)
def test_no_group_is_credited_without_a_commitment(forms: bool) -> None:
    groups = {group: several for group, several in benchmark.FALSE.items() if (group == FORMS) is forms}
    counted = benchmark.count({"": groups}, 20)
    shares = {group: benchmark._sum(counted[one] for one in several).share() for group, several in groups.items()}
    assert max(shares.values()) <= 2, shares


@pytest.mark.slow
def test_honest_answers_are_credited_and_hardly_ever_called_wrong() -> None:
    found = benchmark._sum(benchmark.count({"": benchmark.HONEST}, 40).values())
    assert found.share() >= 70
    assert found.wrong <= 0.02 * sum(found)


def test_held_out_templates_are_opened_only_when_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(benchmark.labeled, "LABELS", tmp_path)  # has no held-out file yet
    benchmark.main(["--tries", "1"])
    assert FORMS in capsys.readouterr().out
    attacks = [{"id": n, "group": f"group {n}", "template": text} for n, text in enumerate(("not {T}", "{T} or {X}"))]
    for name, rows in (("attacks", attacks), ("fair", [{"id": 0, "template": "{T}"}])):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"verdicts4_{name}.jsonl").write_text(lines, encoding="utf-8")
    benchmark.main(["--labels", "verdicts4", "--tries", "5", "--show"])
    printed = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "group 1 5 0 (0.0 %) 5 0" in printed
    assert "'{T}' 5 5 (100.0 %) 0 0" in printed
    assert "Highest share credited of a group that deserves none, now: 0.00 % (group 1)" in printed


def test_attacks_are_judged_by_code_by_a_model_that_obeys_and_by_both(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rows = [("Gout", True), ("Migraine", False), ("Acne vulgaris or gout", False)]
    lines = [json.dumps({"kind": "k", "truth": "Gout", "diagnosis": said, "right": right}) for said, right in rows]
    (tmp_path / "attacks.jsonl").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setattr(benchmark, "ATTACKS", tmp_path / "attacks.jsonl")
    benchmark.main(["--attacks"])
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    table = {tuple(line[:2]): " ".join(line[2:]) for line in printed}
    assert table["all:", "right"] == "1 / 0 / 0 1 / 0 / 0 1 / 0 / 0"
    assert table["all:", "wrong"].startswith("2 / 0 / 0")
    assert " ".join(printed[-2]) == "Cascade, decided by code: 3, of them 3 right and 0 wrong"


@pytest.mark.anyio
async def test_the_cascade_asks_only_what_code_cannot_decide(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        benchmark.labeled.Row(n, str(n), f"DIAGNOSIS READY: {said}", "Gout", (relation,))
        for n, (said, relation) in enumerate((("Gout", "same"), ("Migraine", "different")))
    ]
    await benchmark.print_cascade(server.base_url, "some/model", rows)  # the scripted model always says same
    assert capsys.readouterr().out.splitlines() == [
        "2 diagnoses: 2 decided by code, 0 asked of some/model",
        "Requests saved: 2 of 2; equal verdicts where the model was asked: 0 of 0",
        "model: 1 of 2 as reader A says (50.0 %), 0 without verdict",
        "cascade: 2 of 2 as reader A says (100.0 %), 0 without verdict",
    ]
    assert len(server.log()) == 2
