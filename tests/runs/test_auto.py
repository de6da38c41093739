"""`simulator: auto`: a model is tried before a run, and plays each role as it can."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from runs_support import Json, asked, clinic, only_run, point_at, records, start, until
from scripted_server import ScriptedServer

from agentclinic.envs.episode import open_clinic
from agentclinic.runs import auto
from agentclinic.runs.probe_sample import probe_sample

FLAGS = ("run", "--num-scenarios", "1", "--patient-llm", "scripted", "--measurement-llm", "scripted")


def chosen_as_marked(*roles: str) -> list[Json]:
    """Rules by which the server answers each question and order of the sample as a reader did."""
    rules = []
    for row in probe_sample():
        if row.role not in roles:
            continue
        letter, facts = ("f", row.case.patient_facts) if row.role == "patient" else ("r", row.case.exam_facts)
        wanted = row.marked.paths | row.marked.equivalent
        names = [f"{letter}{place}" for place, fact in enumerate(facts, start=1) if fact.path in wanted]
        told = [fact.says or fact.text for fact in facts if fact.path in wanted][:6]
        given = (
            {
                "parts": [{"asked": "it", "facts": names[:6], "kind": "answer" if names else "unknown"}],
                "reply": " ".join(told) or "Well, not that I know.",
            }
            if row.role == "patient"
            else {"items": names, "not_in_chart": []}
        )
        rules.append({"match": {"purpose": row.role, "text_contains": row.said}, "reply": json.dumps(given)})
    return rules


def used(folder: Path) -> Json:
    content: Json = json.loads((folder / "config.used.json").read_text(encoding="utf-8"))
    return content


def decided(folder: Path) -> Json:
    found: Json = used(folder)["agentclinic"]["auto"]
    return found


def cached() -> list[Path]:
    return sorted(auto.cache_folder().glob("*.json"))


def test_a_model_that_chooses_well_is_grounded(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)
    server.control(rules=chosen_as_marked("patient", "measurement"))

    done = clinic(*FLAGS, cwd=tmp_path)

    folder = only_run(tmp_path / "runs")
    choice = decided(folder)["patient"]
    assert choice["simulator"] == "grounded"
    assert choice["f1_model"] > 0.95 > choice["f1_matcher"]
    assert 0 < choice["low"] < choice["f1_difference"] < choice["high"]
    assert 30 <= choice["rows"] <= choice["requests"] <= auto.MOST_REQUESTS
    assert choice["cached"] is False
    assert used(folder)["run"]["simulator"] == "auto"
    (record,) = records(folder)
    assert record["simulator"] == {role: decided(folder)[role]["simulator"] for role in ("patient", "measurement")}
    assert "simulator auto: patient grounded: the model chooses facts better than the matcher (F1" in done.stderr


def test_a_model_that_chooses_badly_is_voiced(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)  # the scripted server chooses nothing

    done = clinic(*FLAGS, cwd=tmp_path)

    folder = only_run(tmp_path / "runs")
    (record,) = records(folder)
    assert record["simulator"] == {"patient": "voiced", "measurement": "voiced"}
    for role in ("patient", "measurement"):
        choice = decided(folder)[role]
        assert choice["high"] < 0
        assert choice["because"].startswith("the matcher chooses facts better than the model (F1 ")
    assert "simulator auto: laboratory voiced: the matcher chooses" in done.stderr


def test_roles_are_decided_one_by_one(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)
    server.control(rules=chosen_as_marked("patient"))

    clinic(*FLAGS, cwd=tmp_path)

    (record,) = records(only_run(tmp_path / "runs"))
    assert record["simulator"] == {"patient": "grounded", "measurement": "voiced"}


@pytest.mark.parametrize("rules", [[], chosen_as_marked("patient")], ids=["every question twice", "once"])
def test_a_role_is_tried_with_at_most_forty_requests(rules: list[Json], server: ScriptedServer, tmp_path: Path) -> None:
    """Empty words are sent back, so that each question takes two requests."""
    point_at(tmp_path, server)
    server.control(rules=rules)
    clinic(*FLAGS, "--doctor-llm", "scripted", "--simulator", "voiced", cwd=tmp_path)
    in_the_run = asked(server, "patient")
    server.reset()
    server.control(rules=rules)

    clinic(*FLAGS, "--doctor-llm", "scripted", cwd=tmp_path)

    choice = decided(max((tmp_path / "runs").iterdir()))
    assert choice["patient"]["requests"] == 40
    assert choice["patient"]["rows"] == (40 if rules else 20)
    assert choice["measurement"]["requests"] == asked(server, "measurement") == 37
    assert asked(server, "patient") - 40 <= in_the_run * (2 if rules else 1)
    assert asked(server, "patient") >= 40


def test_a_decision_is_kept_for_later_runs_and_a_broken_file_is_made_again(
    server: ScriptedServer, tmp_path: Path
) -> None:
    point_at(tmp_path, server, key="sk-planted-0123456789abcdef")
    clinic(*FLAGS, cwd=tmp_path, env={"OPENAI_API_KEY": "sk-planted-0123456789abcdef"})
    assert len(cached()) == 2
    assert not any("sk-planted" in path.read_text() for path in cached())
    server.reset()

    done = clinic(*FLAGS, "--output-dir", "again", cwd=tmp_path)

    again = decided(only_run(tmp_path / "again"))
    assert {choice["cached"] for choice in again.values()} == {True}
    assert asked(server, "measurement") == 0
    assert "decided on 2" in done.stderr

    for path in cached():
        path.write_text('{"simulator": "grou')
    clinic(*FLAGS, "--output-dir", "third", cwd=tmp_path)

    third = decided(only_run(tmp_path / "third"))
    assert {choice["cached"] for choice in third.values()} == {False}
    assert asked(server, "measurement") == 37
    assert all(json.loads(path.read_text())["simulator"] == "voiced" for path in cached())


def test_another_prompt_or_model_is_tried_again(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)
    clinic(*FLAGS, cwd=tmp_path)
    clinic(*FLAGS[:3], "--patient-llm", "other", cwd=tmp_path)

    assert len(cached()) == 3

    shipped = Path(auto.__file__).parents[1] / "prompts" / "patient.json"
    texts = json.loads(shipped.read_text(encoding="utf-8"))
    (tmp_path / "prompts").mkdir()
    texts["grounded_system"] += " Be brief."
    (tmp_path / "prompts" / "patient.json").write_text(json.dumps(texts))
    clinic(*FLAGS[:3], "--patient-llm", "other", cwd=tmp_path)

    assert len(cached()) == 4


def test_resuming_keeps_the_decision_without_asking(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)
    rules = chosen_as_marked("patient")
    flags = (*FLAGS[:2], "2", "--doctor-llm", "scripted", *FLAGS[3:], "--workers", "1")
    server.control(rules=[*rules, {"match": {"purpose": "doctor", "nth": list(range(5, 99))}, "fault": "hold"}])
    process = start(*flags, cwd=tmp_path)
    try:
        until(lambda: asked(server, "doctor") >= 5, "the second encounter", process)
    finally:
        process.signal(9)
    process.wait()
    folder = only_run(tmp_path / "runs")
    before = decided(folder)
    assert before["patient"]["simulator"] == "grounded"
    for path in cached():
        path.unlink()
    server.reset()  # the model would now choose badly

    clinic("resume", folder, cwd=tmp_path)

    assert decided(folder) == before
    assert asked(server, "measurement") == 0, "it was not tried again"
    assert [record["simulator"]["patient"] for record in records(folder)] == ["grounded", "grounded"]


def test_a_named_simulator_and_builtin_roles_are_not_tried(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)

    clinic(*FLAGS, "--simulator", "voiced", cwd=tmp_path)
    clinic(*FLAGS, "--preset", "original", "--output-dir", "original", cwd=tmp_path)
    clinic(*FLAGS[:3], "--doctor-llm", "scripted", "--output-dir", "builtin", cwd=tmp_path)

    for folder in map(only_run, (tmp_path / "runs", tmp_path / "original", tmp_path / "builtin")):
        assert "auto" not in used(folder)["agentclinic"]
    assert cached() == []


def test_without_the_check_the_model_is_voiced_and_this_is_said(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)
    server.control(rules=chosen_as_marked("patient"))

    done = clinic(*FLAGS, "--no-check", cwd=tmp_path)

    (record,) = records(only_run(tmp_path / "runs"))
    assert record["simulator"] == {"patient": "voiced", "measurement": "voiced"}
    assert "simulator auto: patient voiced: the model was not tried, because the check is off" in done.stderr
    assert asked(server, "measurement") == 0


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ({"match": {"purpose": "measurement"}, "fault": "500"}, "could not be tried to the end ("),
        ({"match": {"purpose": "measurement", "every": 4}, "fault": "bad_request"}, "too many to judge by"),
    ],
)
def test_a_model_that_cannot_be_tried_is_voiced_and_nothing_is_kept(
    rule: Json, why: str, server: ScriptedServer, tmp_path: Path
) -> None:
    point_at(tmp_path, server, tries=1)
    server.control(rules=[rule])

    done = clinic(*FLAGS[:3], "--measurement-llm", "scripted", cwd=tmp_path)

    (record,) = records(only_run(tmp_path / "runs"))
    assert record["simulator"]["measurement"] == "voiced"
    assert "simulator auto: laboratory voiced: " in done.stderr
    assert why in done.stderr
    assert cached() == []


def test_a_laboratory_whose_server_is_down_is_voiced(server: ScriptedServer, tmp_path: Path) -> None:
    settings = {"endpoints": {"ward": {"base_url": "http://127.0.0.1:9/v1"}}}
    (tmp_path / "agentclinic.config.json").write_text(json.dumps(settings))

    done = clinic(*FLAGS[:3], "--measurement-llm", "m", "--measurement-endpoint", "ward", cwd=tmp_path)

    assert "simulator auto: laboratory voiced: the model could not be tried (" in done.stderr
    (record,) = records(only_run(tmp_path / "runs"))
    assert record["simulator"]["measurement"] == "voiced"


def test_a_dry_run_sends_nothing_and_counts_the_trial(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)

    before = json.loads(clinic(*FLAGS, "--dry-run", "--json", cwd=tmp_path).stdout)

    assert asked(server) == 0
    trials = {row["role"]: row["requests"] for row in before["most"]["roles"]}
    assert trials["patient (auto)"] == trials["measurement (auto)"] == 40
    assert trials["measurement"] > 0, "grounded, the laboratory's model is asked"
    assert any("at most 40 requests decide" in line for line in before["based_on"])

    clinic(*FLAGS, cwd=tmp_path)
    server.reset()
    after = json.loads(clinic(*FLAGS, "--dry-run", "--json", cwd=tmp_path).stdout)

    assert asked(server) == 0
    assert {row["role"] for row in after["most"]["roles"]} == {"patient"}
    assert any("laboratory: voiced, decided on " in line for line in after["based_on"])


def test_a_sweep_asks_once_and_dry_runs_count_once(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)
    roles = {"patient_llm": "scripted", "measurement_llm": "scripted", "num_scenarios": 1}
    sweep = {"name": "s", "run": roles, "matrix": {"silent_symptom": ["deny"], "total_inferences": [3, 4, 5]}}
    (tmp_path / "sweep.json").write_text(json.dumps(sweep))

    dry = json.loads(clinic("sweep", "sweep.json", "--dry-run", "--json", cwd=tmp_path).stdout)
    assert {row["role"]: row["requests"] for row in dry["most"]["roles"]}["measurement (auto)"] == 40

    done = clinic("sweep", "sweep.json", cwd=tmp_path)

    assert asked(server, "measurement") == 37
    arms = [decided(folder)["measurement"] for folder in (tmp_path / "runs" / "s" / "arms").iterdir()]
    assert sorted(choice["cached"] for choice in arms) == [False, True, True]
    assert done.stderr.count("simulator auto: laboratory voiced") == 1


def test_what_the_trial_uses_counts_towards_the_token_limit(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)

    done = clinic(*FLAGS, "--token-limit", "5000", cwd=tmp_path, expect=3)

    assert "patient voiced: the model could not be tried to the end (the token limit of 5,000 is reached" in done.stderr
    assert asked(server, "measurement") == 0
    assert asked(server, "patient") < 15
    folder = only_run(tmp_path / "runs")
    assert records(folder) == []
    assert decided(folder)["patient"]["input_tokens"] > 4000


def test_an_environment_is_decided_when_it_is_opened(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(rules=chosen_as_marked("patient"))

    opened = open_clinic("OpenOSCE_Demo", llm_config=point_at(tmp_path, server), patient_llm="scripted")

    assert opened.plan.roles.patient == "grounded"
    assert asked(server, "patient") == auto.MOST_REQUESTS


def test_the_probe_decides_for_later_runs(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)
    server.control(rules=chosen_as_marked("patient"))
    said = clinic("probe", "scripted", cwd=tmp_path).stdout
    assert "Recommended for the patient: grounded; the model chooses facts better than the matcher (F1 " in said
    assert "Recommended for the laboratory: voiced; the matcher chooses facts better than the model (F1 " in said
    server.reset()

    clinic(*FLAGS, cwd=tmp_path)

    choice = decided(only_run(tmp_path / "runs"))
    assert (choice["patient"]["simulator"], choice["patient"]["cached"]) == ("grounded", True)
    assert asked(server, "measurement") == 0
