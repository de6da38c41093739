"""The loop over items, and a server that dies during it: the work stops, says why, and loses nothing."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import anyio
import pytest
from runs_support import (
    AT_ENDPOINT,
    asked,
    clinic,
    only_run,
    own_cases,
    point_at,
    records,
    run_here,
    settings_for,
    start,
    until,
)
from scripted_server import ScriptedServer

from agentclinic.config import Settings
from agentclinic.models.endpoint import Share
from agentclinic.results.record import Fault
from agentclinic.runs.budget import Budget, Spent
from agentclinic.runs.build import Models
from agentclinic.runs.campaign import FEWEST, Campaign, Outage
from agentclinic.runs.execute import Finished, execute
from agentclinic.runs.plan import make_plan
from agentclinic.runs.progress import Progress
from agentclinic.runs.resume import plan_again, resume
from agentclinic.runs.shards import Shard, Work, folder_for

pytestmark = pytest.mark.anyio


class Asked:
    """Answers in place of the models, and counts."""

    def __init__(self, *answers: str | None) -> None:
        self.answers = list(answers)
        self.roles: list[tuple[str, ...]] = []

    async def __call__(self, roles: Collection[str]) -> str | None:
        self.roles.append(tuple(roles))
        return self.answers.pop(0)


async def test_three_failures_in_a_row_are_enough_to_ask_and_only_a_failure_then_is_hopeless() -> None:
    ask = Asked(None, "gone")
    outage = Outage(1, ask)
    said = [await outage.failed("patient", "no answer") for _ in range(2 * FEWEST)]
    assert said == [None, None, None, None, None, "gone"], "it answered the first time, so counting began again"
    assert ask.roles == [("patient",)] * 2


async def test_with_many_workers_one_cause_can_fail_as_many_encounters_at_once() -> None:
    outage = Outage(8, Asked("gone"))
    assert [await outage.failed("doctor", "no answer") for _ in range(8)] == [None] * 7 + ["gone"]


async def test_an_answer_in_between_ends_the_row() -> None:
    ask = Asked()
    outage = Outage(1, ask)
    for _ in range(5):
        await outage.failed("doctor", "no answer")
        await outage.failed("doctor", "no answer")
        outage.answered()
    assert ask.roles == []


async def test_without_the_check_the_count_decides() -> None:
    outage = Outage(1, None)
    assert [await outage.failed("doctor", "no answer") for _ in range(3)] == [None, None, "doctor: no answer"]
    assert await Outage(1, None).confirmed() is None


# The loop itself, with numbers as items: a number's result is itself, or a failure.


@dataclass(frozen=True)
class Numbers:
    """What is done with numbers."""

    journal: Path
    final: ClassVar[bool] = True

    @asynccontextmanager
    async def opened(self, settings: Settings, share: Share) -> AsyncIterator[Work[int, int]]:
        raise NotImplementedError
        yield

    def key(self, item: int) -> str:
        return str(item)

    def sent(self, item: int) -> int:
        return item

    def fault(self, result: int) -> Fault | None:
        return Fault("doctor", "connection", "no answer") if result < 0 else None

    def encode(self, result: int) -> str:
        return str(result)

    def decode(self, text: str) -> int:
        return int(text)


class Counted:
    """A campaign over numbers, and what it has recorded and counted."""

    def __init__(self, folder: Path, here: Work[int, int], workers: int = 1) -> None:
        self.recorded: list[int] = []
        self.counted: list[int] = []
        settings = Settings.model_validate({"run": {"workers": workers}})
        self.campaign = Campaign(
            settings=settings,
            models=Models(settings),
            progress=Progress(),
            what="numbers",
            title="numbers",
            job=Numbers(folder / "numbers.jsonl"),
            here=here,
            record=lambda _, result: self.recorded.append(result),
            count=self.counted.append,
            budget=Budget(),
            spent=Spent(),
            done=set(),
            asked=[],
        )


async def test_failures_are_recorded_in_their_place_once_another_item_is_answered(tmp_path: Path) -> None:
    results = [-1, -2, 3]

    async def here(item: int) -> int:
        return results[item]

    numbers = Counted(tmp_path, here)
    await numbers.campaign.run(range(3))
    assert numbers.recorded == numbers.counted == [-1, -2, 3]
    assert [fault.error for fault in numbers.campaign.failures] == ["connection"] * 2


async def test_what_was_under_way_when_the_server_was_found_to_be_gone_is_not_recorded_and_nothing_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found_gone, asked = anyio.Event(), []

    async def gone(*_: object) -> str:
        asked.append("asked")
        found_gone.set()
        return "it is gone"

    async def here(item: int) -> int:
        if item >= FEWEST:
            await found_gone.wait()
        return -1

    monkeypatch.setattr("agentclinic.runs.campaign.gone", gone)
    numbers = Counted(tmp_path, here, workers=FEWEST)
    with anyio.fail_after(20):
        await numbers.campaign.run(range(20))
    assert (numbers.recorded, asked) == ([], ["asked"])
    assert numbers.campaign.pool.reason == "it is gone. Numbers that failed for this reason were not recorded"


async def test_what_an_earlier_process_left_in_a_shard_is_counted_and_not_done_again(tmp_path: Path) -> None:
    done: list[int] = []

    async def here(item: int) -> int:
        done.append(item)
        return item

    numbers = Counted(tmp_path, here)
    shard = Shard(folder_for(numbers.campaign.job.journal) / "worker.jsonl")
    shard.append("1", "1", settled=True)
    shard.close()
    await numbers.campaign.run(range(3))
    assert done == [0, 2]
    assert numbers.recorded == numbers.counted == [1, 0, 2]


class Killing(Progress):
    """Kills the server when so many encounters are recorded."""

    def __init__(self, server: ScriptedServer, after: int) -> None:
        self._server = server
        self._left = after

    def advance(self, line: str) -> None:
        self._left -= 1
        if self._left == 0:
            self._server.kill()


async def dies(server: ScriptedServer, tmp_path: Path, *, after: int, count: int, workers: int) -> Finished:
    path = own_cases(tmp_path / "cases", count)
    settings = settings_for(server, tmp_path / "out", dataset=str(path), workers=workers, runtime={"tries": 1})
    return await execute(make_plan(settings), Killing(server, after))


@pytest.mark.parametrize(("count", "workers"), [pytest.param(10, 1, marks=pytest.mark.slow), (24, 4)])
async def test_a_server_that_dies_halfway_stops_the_run_and_resume_loses_nothing(
    count: int, workers: int, tmp_path: Path
) -> None:
    with ScriptedServer() as server:
        finished = await dies(server, tmp_path, after=4, count=count, workers=workers)
    kept = records(finished.folder)
    assert 4 <= len(kept) < 4 + workers
    assert {entry["status"] for entry in kept} == {"diagnosed"}, "a server that is gone leaves no failures behind"
    assert finished.missing == count - len(kept)
    assert f"127.0.0.1:{server.port} could not be reached" in (finished.reason or "")

    with ScriptedServer(server.port):
        again = await resume(plan_again(finished.folder), finished.folder, Progress())
    assert again.missing == 0
    assert {entry["status"] for entry in records(finished.folder)} == {"diagnosed"}
    assert sorted(entry["scenario_id"] for entry in records(finished.folder)) == list(range(count))


async def test_a_server_that_dies_before_the_last_encounter_is_found_out_at_the_end(tmp_path: Path) -> None:
    """One failure is too few to stop for, but not to ask for before it becomes final."""
    with ScriptedServer() as server:
        finished = await dies(server, tmp_path, after=4, count=5, workers=1)
    assert (finished.missing, len(records(finished.folder))) == (1, 4)
    assert "could not be reached" in (finished.reason or "")


async def test_a_dead_judge_stops_the_run_too(tmp_path: Path, server: ScriptedServer) -> None:
    with ScriptedServer() as judges:
        settings = settings_for(server, tmp_path / "out", moderator_endpoint="judges", runtime={"tries": 1})
        data = {**settings.model_dump(), "endpoints": {"judges": {"base_url": judges.base_url}}}
        settings = Settings.model_validate(data)
        finished = await execute(make_plan(settings), Killing(judges, 2))
    assert (len(records(finished.folder)), finished.missing) == (2, 12)
    assert (finished.reason or "").startswith("moderator: ")


async def test_a_server_that_fails_on_our_prompts_but_answers_is_not_gone(
    server: ScriptedServer, tmp_path: Path
) -> None:
    server.control(rules=[{"match": {"purpose": "patient"}, "fault": "500"}])

    finished, entries = await run_here(settings_for(server, tmp_path, num_scenarios=7))

    assert (finished.missing, finished.reason) == (0, None)
    assert [entry["status"] for entry in entries] == ["model_failed"] * 7
    assert len(server.checks()) == 1 + 2 + 1, "at the start, after each three failures, and at the end"


async def test_without_the_check_three_failures_stop_the_run(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(rules=[{"match": {"purpose": "patient"}, "fault": "500"}])

    finished, entries = await run_here(settings_for(server, tmp_path, num_scenarios=7, check=False))

    assert (finished.missing, entries) == (7, [])
    assert server.checks() == []


async def test_a_server_that_closes_for_a_day_stops_the_run_at_once_and_nothing_counts_as_failed(
    server: ScriptedServer, tmp_path: Path
) -> None:
    rule = {"match": {"purpose": "doctor", "nth": 6}, "fault": "429_retry_after", "seconds": 86400}
    server.control(rules=[rule])

    finished, entries = await run_here(settings_for(server, tmp_path, num_scenarios=7))

    assert [entry["status"] for entry in entries] == ["diagnosed"], "the one before; no other is tried"
    assert finished.missing == 6
    assert "too many requests" in (finished.reason or "")
    assert "it asks to wait 24.0 hours" in (finished.reason or "")
    assert (await resume(plan_again(finished.folder), finished.folder, Progress())).missing == 0


@pytest.mark.slow
def test_ctrl_c_does_not_wait_for_another_answer_and_what_failed_last_is_played_again(
    server: ScriptedServer, tmp_path: Path
) -> None:
    point_at(tmp_path, server, tries=1)
    rules = [
        {"fault": "500", "match": {"purpose": "doctor", "nth": 1}},
        {"fault": "hang", "match": {"purpose": "doctor"}},
    ]
    server.control(rules=rules)
    process = start("run", "--output_dir", "out", *AT_ENDPOINT, cwd=tmp_path)
    try:
        until(lambda: asked(server, "doctor") >= 2, "the second encounter", process)
        process.signal(signal.SIGINT)
        until(lambda: "press Ctrl-C again" in process.stderr, "the word on Ctrl-C", process)
        process.signal(signal.SIGINT)
        assert process.wait() == 130
    finally:
        process.signal(signal.SIGKILL)
    assert len(server.checks()) == 1, "only the one at the start"
    assert records(only_run(tmp_path / "out")) == []


@pytest.mark.slow
def test_a_run_in_which_nothing_could_be_judged_exits_with_1(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server, tries=1)
    server.control(rules=[{"match": {"purpose": "moderator"}, "fault": "500"}])

    done = clinic("run", "--output_dir", "out", "--num_scenarios", "2", *AT_ENDPOINT, cwd=tmp_path, expect=1)

    assert "nothing could be judged" in done.stderr
    assert "--retry-failed" in done.stderr
    folder = only_run(tmp_path / "out")
    server.control(rules=[{"match": {"purpose": "moderator", "nth": 1}, "fault": "500"}])
    clinic("resume", folder, "--retry-failed", cwd=tmp_path)  # one verdict is a result


@pytest.mark.slow
def test_a_sweep_with_an_arm_in_which_nothing_could_be_judged_exits_with_1(
    server: ScriptedServer, tmp_path: Path
) -> None:
    point_at(tmp_path, server, tries=1)
    server.control(rules=[{"match": {"purpose": "doctor", "model": "bad"}, "fault": "500"}])
    matrix = {"doctor_llm": ["good", "bad"]}
    sweep = {"name": "s", "run": {"num_scenarios": 2, "output_dir": "out"}, "matrix": matrix}
    (tmp_path / "s.json").write_text(json.dumps(sweep))

    done = clinic("sweep", "s.json", "--quiet", cwd=tmp_path, expect=1)

    assert "nothing could be judged in 1 of 2 arms: doctor_llm bad" in done.stderr


@pytest.mark.slow
def test_a_regrade_without_any_verdict_exits_with_1(server: ScriptedServer, tmp_path: Path) -> None:
    clinic("run", "--output_dir", "out", "--num_scenarios", "2", "--quiet", cwd=tmp_path)
    point_at(tmp_path, server, tries=1)
    judge = ("regrade", only_run(tmp_path / "out"), "--moderator_llm", "scripted", "--judge", "original")
    server.control(moderator="That is hard to say.")
    done = clinic(*judge, cwd=tmp_path, expect=1)
    assert "no verdict: the judge failed on all 2: the judge answered neither Yes nor No" in done.stderr

    server.control(moderator="Yes", rules=[{"match": {"purpose": "moderator", "nth": 1}, "fault": "500"}])
    clinic(*judge, cwd=tmp_path, expect=3)


@pytest.mark.slow
def test_a_regrade_stops_when_the_judge_is_gone(tmp_path: Path) -> None:
    clinic("run", "--output_dir", "out", "--quiet", cwd=tmp_path)
    with ScriptedServer() as server:
        point_at(tmp_path, server, tries=1)
        rules = [
            {"match": {"purpose": "moderator"}, "fault": "reset"},
            {"match": {"purpose": "check", "nth": 2}, "fault": "reset"},
        ]
        server.control(rules=rules)
        judge = ("--moderator_llm", "scripted", "--judge", "model")
        done = clinic("regrade", only_run(tmp_path / "out"), *judge, cwd=tmp_path, expect=3)
        assert asked(server, "moderator") == FEWEST
    assert "3 failed, 11 not tried: moderator: model 'scripted'" in done.stderr
