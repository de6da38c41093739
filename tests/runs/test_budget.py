"""Budgets: a run stops between two encounters, says what was spent, and counts it when it goes on."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from generate_support import STORY, question, write_questions
from runs_support import AT_ENDPOINT, asked, clinic, lines, only_run, point_at, records
from scripted_server import ScriptedServer

from agentclinic.config import PriceSettings, Settings
from agentclinic.runs.budget import Budget, Spent

PRICES = {"*": {"input": 10.0, "output": 20.0}}
USD = 1_000_000
RUN = ("run", "--output_dir", "out", "--quiet")


def priced(folder: Path, server: ScriptedServer, prices: dict[str, Any] | None = None) -> None:
    path = point_at(folder, server)
    content = json.loads(path.read_text())
    content["openai"]["prices"] = PRICES if prices is None else prices
    path.write_text(json.dumps(content))


def cost(entries: list[dict[str, Any]]) -> float:
    return sum(sum(entry["cost_usd"].values()) for entry in entries)


def test_the_limits_come_from_the_settings_and_what_other_arms_used_counts() -> None:
    settings = Settings.model_validate({"llm": {"runtime": {"token_limit": 100, "max_cost": 2.5}}})
    budget = Budget.of(settings, Spent(tokens=60, dollars=1.0))
    spent = Spent()
    spent.add("doctor", {"input_tokens": 30, "output_tokens": 9}, 1.49)
    assert budget.used_up(spent) is None
    spent.add("doctor", {"input_tokens": 1, "output_tokens": 0}, 0.0)
    assert "token limit of 100 is reached with 100 used" in (budget.used_up(spent) or "")
    more = Spent()
    more.add("doctor", {"input_tokens": 0, "output_tokens": 0}, 1.5)
    assert "budget of $2.50 is reached with $2.50 spent" in (budget.used_up(more) or "")


def test_a_cost_that_is_never_known_ends_a_run_with_a_budget_in_dollars() -> None:
    budget = Budget(max_cost=5.0)
    silent = Spent()
    silent.add("patient", {"input_tokens": None, "output_tokens": None}, None)
    assert "what the patient cost is not known" in (budget.used_up(silent) or "")
    assert Budget(token_limit=5).used_up(silent) is None

    once = Spent()
    once.add("patient", {"input_tokens": 1, "output_tokens": 1}, 0.1)
    once.add("patient", {"input_tokens": None, "output_tokens": None}, None)
    assert budget.used_up(once) is None, "a request that failed is no reason to stop"
    failed = Spent()
    failed.add("patient", {"input_tokens": None, "output_tokens": None}, None, answered=False)
    assert budget.used_up(failed) is None


@pytest.mark.slow
def test_max_cost_stops_between_encounters_and_resume_counts_what_was_spent(
    server: ScriptedServer, tmp_path: Path
) -> None:
    priced(tmp_path, server)
    done = clinic(*RUN, *AT_ENDPOINT, "--max-cost", "0.15", cwd=tmp_path, expect=3)
    folder = only_run(tmp_path / "out")
    kept = records(folder)
    spent = cost(kept)
    assert cost(kept[:-1]) < 0.15 <= spent, "it stops after the encounter that reached the limit, not in it"
    assert {entry["status"] for entry in kept} == {"diagnosed"}
    assert f"the budget of $0.1500 is reached with ${spent:.4f} spent" in done.stderr
    assert f"agentclinic resume {folder.relative_to(tmp_path)}" in done.stderr
    used = json.loads((folder / "config.used.json").read_text())
    assert used["openai"]["prices"] == {"*": {"input": 10.0, "output": 20.0, "cached_input": None}}

    server.reset()
    clinic("resume", folder, cwd=tmp_path, expect=3)
    assert asked(server) == 0, "the budget is used up"
    more = clinic("resume", folder, "--max-cost", "0.3", cwd=tmp_path, expect=3)
    assert "the budget of $0.3000 is reached" in more.stderr
    entries = records(folder)
    assert cost(entries[:-1]) < 0.3 <= cost(entries)


@pytest.mark.slow
def test_the_price_of_a_record_is_its_tokens_by_the_users_prices(server: ScriptedServer, tmp_path: Path) -> None:
    priced(tmp_path, server, {"scripted": {"input": 2.0, "output": 8.0, "cached_input": 0.5}, "*": PRICES["*"]})
    roles = ("--doctor_llm", "scripted", "--patient_llm", "other", "--simulator", "voiced")
    clinic(*RUN, "--num_scenarios", "1", *roles, cwd=tmp_path)
    (record,) = records(only_run(tmp_path / "out"))
    doctor, patient = record["usage"]["doctor"], record["usage"]["patient"]
    fresh = doctor["input_tokens"] - doctor["cached_tokens"]
    by_hand = (fresh * 2.0 + doctor["cached_tokens"] * 0.5 + doctor["output_tokens"] * 8.0) / USD
    assert record["cost_usd"]["doctor"] == pytest.approx(by_hand)
    assert record["cost_usd"]["patient"] == pytest.approx(
        (patient["input_tokens"] * 10.0 + patient["output_tokens"] * 20.0) / USD
    )


@pytest.mark.slow
def test_an_unknown_price_refuses_max_cost_and_says_how_to_set_one(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)
    done = clinic(*RUN, *AT_ENDPOINT, "--max-cost", "5", cwd=tmp_path, expect=2)
    assert "these are not known: doctor, patient, measurement, moderator: 'scripted' at 127.0.0.1" in done.stderr
    assert '"prices": {"scripted": {"input": 0.5, "output": 1.5}} in openai of llm.config.json' in done.stderr
    assert not (tmp_path / "out").exists()
    assert server.checks() == []

    priced(tmp_path, server, {"*": {"input": 0, "output": 0}})
    clinic(*RUN, *AT_ENDPOINT, "--num_scenarios", "1", "--max-cost", "5", cwd=tmp_path)


@pytest.mark.slow
def test_prices_that_were_set_after_a_run_began_count_for_what_it_spent(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)
    clinic(*RUN, *AT_ENDPOINT, "--token-limit", "1", cwd=tmp_path, expect=3)
    folder = only_run(tmp_path / "out")
    assert len(records(folder)) == 1
    refused = clinic("resume", folder, "--max-cost", "1", "--token-limit", "99999999", cwd=tmp_path, expect=2)
    assert "--max-cost needs the price" in refused.stderr

    priced(tmp_path, server, {"*": {"input": 1_000_000, "output": 1_000_000}})
    done = clinic("resume", folder, "--max-cost", "1", "--token-limit", "99999999", cwd=tmp_path, expect=3)
    assert "the budget of $1.00 is reached" in done.stderr
    assert len(records(folder)) == 1, "the one encounter that was there used it up"


@pytest.mark.slow
def test_limits_and_the_check_do_not_belong_to_the_digest(server: ScriptedServer, tmp_path: Path) -> None:
    priced(tmp_path, server)
    clinic(*RUN, *AT_ENDPOINT, "--token-limit", "1", "--max-cost", "100", "--no-check", cwd=tmp_path, expect=3)
    folder = only_run(tmp_path / "out")
    clinic("resume", folder, "--token-limit", "99999999", "--max-cost", "50", "--check", cwd=tmp_path)
    assert len(server.checks()) == 1


@pytest.mark.slow
def test_a_sweep_has_one_budget_for_all_its_arms(server: ScriptedServer, tmp_path: Path) -> None:
    priced(tmp_path, server)
    run = {"num_scenarios": 1, "repeats": 3, "output_dir": "out", "patient_llm": "scripted", "simulator": "voiced"}
    sweep = {"name": "s", "run": run, "matrix": {"doctor_llm": ["one", "two"]}}
    (tmp_path / "s.json").write_text(json.dumps(sweep))
    clinic("sweep", "s.json", "--quiet", "--token-limit", "1", cwd=tmp_path, expect=3)
    (first,) = (tmp_path / "out" / "s" / "arms").glob("*/scenarios.jsonl")
    once = cost(lines(first))
    assert len(lines(first)) == 1

    # Enough for the first arm and one encounter of the second.
    limit = f"{3.5 * once:.5f}"
    done = clinic("sweep", "s.json", "--quiet", "--max-cost", limit, cwd=tmp_path, expect=3)
    assert "the budget of" in done.stderr
    second = first.parent.parent / first.parent.name.replace("one", "two") / "scenarios.jsonl"
    assert (len(lines(first)), len(lines(second))) == (3, 1)


@pytest.mark.slow
def test_regrade_keeps_a_budget_and_counts_earlier_calls(server: ScriptedServer, tmp_path: Path) -> None:
    clinic(*RUN, "--num_scenarios", "5", cwd=tmp_path)
    folder = only_run(tmp_path / "out")
    priced(tmp_path, server)
    judge = ("regrade", folder, "--moderator_llm", "scripted", "--judge", "model", "--name", "j")
    done = clinic(*judge, "--token-limit", "1", cwd=tmp_path, expect=3)
    entries = lines(folder / "judgements" / "j.jsonl")
    assert len(entries) == 1
    assert "4 not tried: the token limit of 1 is reached" in done.stderr
    once = cost(entries)
    used = entries[0]["usage"]["moderator"]
    assert once == pytest.approx((used["input_tokens"] * 10 + used["output_tokens"] * 20) / USD)

    clinic(*judge, "--max-cost", f"{1.5 * once:.6f}", cwd=tmp_path, expect=3)
    assert len(lines(folder / "judgements" / "j.jsonl")) == 2, "the first verdict counts"
    clinic(*judge, cwd=tmp_path)


@pytest.mark.slow
def test_generate_keeps_a_budget_and_counts_earlier_calls(server: ScriptedServer, tmp_path: Path) -> None:
    priced(tmp_path, server)
    server.control(rules=[{"match": {"purpose": "writer"}, "reply": STORY.model_dump_json()}])
    vignette = question()["question"]
    questions = [question(question=re.sub(r"\d+-year", f"{age}-year", vignette)) for age in range(41, 46)]
    path = write_questions(tmp_path / "q.jsonl", questions)
    make = ("generate", "medqa", "--base-dir", path, "--model", "scripted", "--output", "made.jsonl", "--quiet")

    done = clinic(*make, "--token-limit", "1", cwd=tmp_path, expect=3)
    assert "the token limit of 1 is reached" in done.stderr
    first = asked(server, "writer")
    assert 1 <= first <= 3, "one case, with its retries"
    clinic(*make, "--token-limit", "1", cwd=tmp_path, expect=3)
    assert asked(server, "writer") == first, "what the first call used counts"
    priced(tmp_path, server, {})
    refused = clinic(*make, "--max-cost", "5", cwd=tmp_path, expect=2)
    assert "writer: 'scripted' at" in refused.stderr


@pytest.mark.parametrize("amount", ["0", "-1", "nan", "inf"])
def test_a_budget_must_be_an_amount(amount: str, tmp_path: Path) -> None:
    done = clinic(*RUN, "--max-cost", amount, cwd=tmp_path, expect=2)
    assert "must be more than 0 dollars" in done.stderr


def test_cached_tokens_cost_as_much_as_others_unless_the_user_says_otherwise() -> None:
    from agentclinic.models.base import cost_usd

    usage = {"input_tokens": USD, "output_tokens": USD, "cached_tokens": USD // 2}
    prices = {"a": PriceSettings(input=2, output=3), "b": PriceSettings(input=2, output=3, cached_input=0)}
    assert [cost_usd(name, "http://x/v1", usage, prices) for name in ("a", "b", "c")] == [5.0, 4.0, None]
    assert cost_usd("gpt-4o-mini", "https://api.openai.com/v1", usage, {"*": PriceSettings(input=0, output=0)}) == 0.0
