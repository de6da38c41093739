"""`agentclinic card`: complete, without secrets, clear about what is not known."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from helpers import write_rows
from runs_support import clinic, only_run, own_cases, records, settings_for
from scripted_server import ScriptedServer

from agentclinic import load_run
from agentclinic.config import RunSettings, Settings, load_settings
from agentclinic.doctors.uncertainty.agent_config import SHIPPED
from agentclinic.errors import InputError
from agentclinic.jsonl import read_json_lines
from agentclinic.report.card import AUTHORS, NOT_KEPT, UNKNOWN, card
from agentclinic.report.numbers import headline
from agentclinic.runs.execute import execute
from agentclinic.runs.plan import make_plan
from agentclinic.runs.progress import Progress


def played(tmp_path: Path, **changes: Any) -> Path:
    """A builtin run on a case file with three cases."""
    dataset = str(own_cases(tmp_path, 3))
    run = RunSettings(dataset=dataset, output_dir=str(tmp_path / "runs"), **changes)
    return anyio.run(execute, make_plan(Settings(run=run)), Progress()).folder


def test_the_card_names_the_models_as_their_endpoints_do_and_the_days(tmp_path: Path, server: ScriptedServer) -> None:
    settings = settings_for(server, tmp_path / "runs", dataset=str(own_cases(tmp_path, 1)), measurement_llm="builtin")
    folder = anyio.run(execute, make_plan(settings), Progress()).folder
    (line,) = records(folder)
    assert line["timing"]["models"] == {role: ["scripted"] for role in ("doctor", "patient", "moderator")}
    line["timing"] |= {"started_at": "2026-03-01T23:59:00+00:00", "models": {"doctor": ["scripted-2026-02-28"]}}
    again = {**line, "repeat": 1, "timing": {"started_at": "2026-03-02T00:01:00+00:00", "seconds": 1}}
    for name in ("config.used.json", "cases.jsonl"):
        (folder / name).unlink()
    write_rows(folder / "scenarios.jsonl", *({k: v for k, v in r.items() if k != "checksum"} for r in (line, again)))

    text = card(folder)

    assert "| doctor | scripted | scripted-2026-02-28 |" in text
    assert f"| moderator | scripted | {UNKNOWN} |" in text
    assert "| measurement | builtin | - | none |" in text
    assert "Dates of the calls (UTC): 2026-03-01 to 2026-03-02." in text


def test_a_run_is_repeated_at_its_address_on_its_data_set_at_its_price(tmp_path: Path, server: ScriptedServer) -> None:
    cases = {"mine": str(own_cases(tmp_path, 1)), "other": str(tmp_path / "not_played.jsonl")}
    prices = {"*": {"input": 10, "output": 10}}
    used = {"base_url": server.base_url.replace("://", "://user:sk-secret@"), "prices": prices}
    changed: dict[str, Any] = {"dataset": "mine", "measurement_llm": "builtin", "doctor_endpoint": "used"}
    settings = settings_for(server, tmp_path / "runs", **changed).model_dump()
    settings |= {"datasets": cases, "endpoints": {"used": used, "idle": {"base_url": "http://idle.example/v1"}}}
    settings["openai"]["prices"] = prices
    folder = anyio.run(execute, make_plan(Settings.model_validate(settings)), Progress()).folder

    text = card(folder)

    files = [tmp_path / "agentclinic.config.json", tmp_path / "llm.config.json"]
    for path, block in zip(files, text.split("```json\n")[1:], strict=True):
        path.write_text(block.split("```")[0], encoding="utf-8")
    config, llm = (json.loads(path.read_text(encoding="utf-8")) for path in files)
    assert load_settings(files[0], files[1]).run.doctor_endpoint == "used", "they can be used as they are shown"
    assert config["datasets"] == {"mine": "own_cases.jsonl"}
    assert config["endpoints"]["used"]["base_url"] == llm["openai"]["base_url"] == server.base_url
    assert config["endpoints"].keys() == {"used"}
    assert prices["*"].items() <= llm["openai"]["prices"]["*"].items()
    assert "sk-secret" not in text
    cost = next(row for row in headline(load_run(folder).score()).rows if row[0] == "cost of the models")[1]
    assert f"Cost of the models: {cost} at the prices above" in text
    assert "Cost of the models" not in card(played(tmp_path / "builtin"))


def original(tmp_path: Path, **config: Any) -> Path:
    """A run as the original wrote it: no hashes, no version, no transcript."""
    folder = tmp_path / "MedQA_20250101_000000"
    folder.mkdir()
    write_rows(
        folder / "scenarios.jsonl",
        *(
            {
                "scenario_id": number,
                "dataset": "MedQA",
                "status": "diagnosed",
                "num_turns": 9,
                "correct": number % 2 == 0,
                "ground_truth": "Gout",
                "diagnosis_text": "Gout",
                "doctor_llm": "some-model",
                "patient_llm": "some-model",
                "measurement_llm": "some-model",
                "moderator_llm": "some-model",
                "max_infs": 20,
            }
            for number in range(6)
        ),
    )
    if config:
        (folder / "config.used.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def test_the_card_has_what_is_needed_to_repeat_the_run(tmp_path: Path) -> None:
    folder = played(tmp_path, seed=7, total_inferences=9, silent_symptom="unknown")
    used = json.loads((folder / "config.used.json").read_text(encoding="utf-8"))
    text = card(folder)

    digest = used["agentclinic"]["digest"]
    for name in ("prompts.doctor", "prompts.patient", "prompts.measurement", "prompts.moderator", "cases"):
        assert digest[name] in text
    assert used["agentclinic"]["version"] in text
    config = json.loads(text.split("```json\n")[1].split("```")[0])
    assert config["run"]["seed"] == 7
    assert config["run"]["total_inferences"] == 9
    assert config["run"]["silent_symptom"] == "unknown"
    assert "workers" not in config["run"], "it does not change results"
    for file in ("scenarios.jsonl", "config.used.json", "cases.jsonl"):
        assert f"| {file} | {hashlib.sha256((folder / file).read_bytes()).hexdigest()} |" in text


@pytest.mark.slow
def test_the_card_uses_the_cases_in_the_run_and_never_looks_for_the_data_set(tmp_path: Path) -> None:
    folder = played(tmp_path)
    before = card(folder)
    (tmp_path / "own_cases.jsonl").unlink()
    assert card(folder) == before
    assert "| cases in cases.jsonl | 3 |" in before
    (folder / "cases.jsonl").unlink()
    assert f"| cases in cases.jsonl | {NOT_KEPT} |" in card(folder)


def test_results_and_intervals_are_those_of_the_summary(tmp_path: Path) -> None:
    folder = played(tmp_path)
    strict = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["accuracy_strict"]
    shown = f"{strict['value']:.1%} ({strict['low']:.1%} to {strict['high']:.1%}, clustered; {strict['count']} of 3)"
    assert f"| accuracy | {shown} |" in card(folder)


def test_checklists_are_named_and_open_items_are_left_to_the_authors(tmp_path: Path) -> None:
    text = card(played(tmp_path))
    for name in ("TRIPOD-LLM", "STARD-AI", "CHART", "MI-CLAIM", "CONSORT-AI", "DECIDE-AI"):
        assert name in text
    assert "For the authors to fill in:" in text
    assert f"| license | {AUTHORS} |" in text, "the licence of a user's own file is not known"
    assert "not medical advice" in text


def test_no_secret_is_shown_wherever_it_is(tmp_path: Path) -> None:
    secret = "sk-do-not-show-me"
    folder = original(
        tmp_path,
        openai={"api_key": secret, "base_url": f"https://user:{secret}@example.org/v1?key={secret}"},
        run={"dataset": "MedQA", "doctor_llm": "some-model", "doctor_endpoint": "mine", "api_key": secret},
        endpoints={
            "mine": {"base_url": f"https://{secret}@example.com/v1", "api_key": secret, "api_key_env": "MY_KEY"}
        },
        llm={"responses": {"max_output_tokens": 99, "extra_headers": {"Authorization": secret}}, "runtime": {}},
    )
    text = card(folder)
    assert secret not in text
    assert "https://example.com/v1" in text
    assert "https://example.org/v1" in text
    assert "max_output_tokens" in text


def test_the_card_of_a_run_in_the_originals_format_says_what_is_not_known(tmp_path: Path) -> None:
    text = card(original(tmp_path))
    assert "in the original's format" in text
    assert f"| doctor | some-model | {UNKNOWN} | {UNKNOWN} | {UNKNOWN} |" in text
    assert f"| hash of the cases played | {UNKNOWN} |" in text
    assert f"| tests not in the chart | {UNKNOWN} |" in text
    assert "| turn limit | 20 |" in text
    assert "50.0%" in text
    assert "contain no turn-by-turn transcript" in text


def test_an_unfinished_run_and_missing_verdicts_are_among_the_limits(tmp_path: Path) -> None:
    folder = played(tmp_path)
    records = folder / "scenarios.jsonl"
    first, second, _ = (entry for _, entry in read_json_lines(records, journal=True))
    write_rows(records, {**first, "status": "judge_failed", "correct": None, "judgement": None}, second)
    text = card(folder)
    assert "2 of 3 planned encounters were played" in text
    assert "1 encounter without a verdict" in text


def test_hostile_names_cannot_break_the_tables(tmp_path: Path) -> None:
    folder = original(tmp_path, run={"dataset": "MedQA", "doctor_llm": "evil | <img src=x>\n# heading", "seed": "```"})
    text = card(folder)
    assert text.count("```") % 2 == 0
    outside = "".join(text.split("```")[::2])
    assert "<img" not in outside
    assert "\n# heading" not in text


@pytest.mark.slow
def test_the_command_prints_or_writes_and_refuses_what_is_not_a_run(tmp_path: Path) -> None:
    folder = original(tmp_path)
    printed = clinic("card", folder, cwd=tmp_path).stdout
    assert printed.startswith("# Model and settings card: MedQA_20250101_000000")
    clinic("card", folder, "-o", tmp_path / "card.md", cwd=tmp_path)
    assert (tmp_path / "card.md").read_text(encoding="utf-8") == printed
    assert "no such file or folder" in clinic("card", tmp_path / "nothing", cwd=tmp_path, expect=2).stderr
    assert "no such judgements" in clinic("card", folder, "--judge", "nobody", cwd=tmp_path, expect=2).stderr
    assert "no folder" in clinic("card", folder, "-o", tmp_path / "a" / "b.md", cwd=tmp_path, expect=2).stderr


def test_an_empty_run_has_no_card(tmp_path: Path) -> None:
    (tmp_path / "scenarios.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="contains no records"):
        card(tmp_path)


@pytest.mark.slow
def test_the_card_has_hashes_of_agent_and_policy_but_no_paths(tmp_path: Path) -> None:
    cases = own_cases(tmp_path / "data", 1)
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "agent_config.yaml").write_text(SHIPPED.read_text())
    flags = ("--doctor", "uncertainty", "--doctor_test_policy_enabled", "--output_dir", "out")
    clinic("run", "--dataset", cases, *flags, cwd=tmp_path)
    card = clinic("card", only_run(tmp_path / "out"), cwd=tmp_path).stdout
    digest = json.loads((only_run(tmp_path / "out") / "config.used.json").read_text())["agentclinic"]["digest"]
    assert f"| agent | {digest['agent']} |" in card
    assert f"| policy | {digest['policy']} |" in card
    assert "agent_config.yaml" not in card
