"""Judging again through the provider's batch endpoint: `agentclinic regrade --batch`."""

from __future__ import annotations

import json
import signal
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from judges_support import UNREAD
from runs_support import asked, lines, point_at, settings_for, start, until
from scripted_server import ScriptedServer

from agentclinic.cli import main
from agentclinic.config import Settings, with_limits
from agentclinic.errors import InputError
from agentclinic.models.retry import Clock
from agentclinic.runs.progress import Progress
from agentclinic.runs.regrade import Regraded, estimate_regrade, regrade

pytestmark = pytest.mark.anyio

Json = dict[str, Any]
PRICES = {"*": {"input": 10.0, "output": 20.0}}
KEY = "sk-planted-0123456789abcdefghij"


class Said(Progress):
    """Keeps the messages."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def say(self, message: str) -> None:
        self.messages.append(message)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run of four diagnoses."""
    made = tmp_path / "MedQA_20240101_000000"
    made.mkdir()
    write_run(made)
    return made


def write_run(folder: Path, **more: Any) -> None:
    rows = [
        {"scenario_id": n, "dataset": "MedQA", "status": "diagnosed", "correct": True}
        | {"ground_truth": "Go\u2028ut", "diagnosis_text": f"Diseaße number {n}", **more}
        for n in range(4)
    ]
    (folder / "scenarios.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def settings(server: ScriptedServer, **run: Any) -> Settings:
    """A judge with a key and a price."""
    made = settings_for(server, Path("out"), **{"moderator_llm": "judge", **run}).model_dump(mode="json")
    made["openai"] = {"base_url": server.base_url, "api_key": KEY, "prices": PRICES}
    return Settings.model_validate(made)


async def by_batch(folder: Path, settings: Settings, *, progress: Progress | None = None, **options: Any) -> Regraded:
    """Regrade with a clock on which waiting takes no time."""

    async def sleep(_: float) -> None:
        return

    return await regrade(folder, settings, batch=True, progress=progress, clock=Clock(sleep=sleep), **options)


Called = Callable[..., tuple[str, str]]


@pytest.fixture
def called(
    server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Called:
    """Runs a command in this process and returns what it printed on standard output and standard error."""
    config = point_at(tmp_path, server)
    content = json.loads(config.read_text())
    content["openai"]["prices"] = PRICES
    config.write_text(json.dumps(content))
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str | Path, expect: int = 0) -> tuple[str, str]:
        capsys.readouterr()
        try:
            main([str(argument) for argument in arguments])
            code: object = 0
        except SystemExit as ended:
            code = ended.code
        out, err = capsys.readouterr()
        assert code == expect, f"{code}\n{out}\n{err}"
        return out, " ".join(err.split())

    return call


def calls(server: ScriptedServer, api: str, key: str) -> list[Any]:
    """What the requests to one part of the server hold under a key: uploads, batches, deletions."""
    return [entry["body"][key] for entry in server.log() if entry["api"] == api and key in entry["body"]]


def note_of(folder: Path) -> Path:
    return folder / "judgements" / "judge_model.batch.json"


def untimed_lines(path: Path) -> list[dict[str, Any]]:
    return sorted(({**entry, "checksum": None} for entry in lines(path)), key=lambda entry: entry["scenario_id"])


async def test_a_batch_asks_what_single_requests_ask_and_gives_the_same_verdicts_for_half_the_price(
    folder: Path, server: ScriptedServer
) -> None:
    server.control(rules=[{"match": {"purpose": "moderator", "text_contains": "number 2"}, "reply": "No"}])
    plain = await regrade(folder, settings(server, temperature=0.3), "plain")
    bodies = server.bodies()
    assert bodies[0]["temperature"] == 0.3
    server.control(batch_polls=3)
    shown = Said()

    done = await by_batch(folder, settings(server, temperature=0.3), progress=shown)

    (uploaded,) = calls(server, "files", "lines")
    assert [line["body"] for line in uploaded] == bodies
    assert {(line["method"], line["url"]) for line in uploaded} == {("POST", "/v1/responses")}
    assert asked(server, "moderator") - len(bodies) == 2 + 4 + 1 + 2, "upload, create, four looks, fetch, two deletions"
    assert calls(server, "batches", "endpoint") == ["/v1/responses"]
    assert {entry["headers"]["authorization"] for entry in server.log()} == {f"Bearer {KEY}"}
    before, after = untimed_lines(plain.path), untimed_lines(done.path)
    for one, other in zip(before, after, strict=True):
        assert other.pop("cost_usd")["moderator"] == pytest.approx(one.pop("cost_usd")["moderator"] / 2)
        assert one == other
    assert [(r.scenario_id, r.correct, now) for r, now in done.changed] == [(2, True, False)]
    assert done.spent.dollars == pytest.approx(plain.spent.dollars / 2)
    assert f"batch {done.batches[0]} at 127.0.0.1:{server.port}: 4 requests submitted" in shown.messages
    assert len(calls(server, "files", "delete")) == 2, "what was uploaded, and the answers"
    assert not note_of(folder).exists()
    everything = server.counts()["received"]
    assert (await by_batch(folder, settings(server, temperature=0.3))).judged == 4
    assert server.counts()["received"] == everything, "nothing is left to ask"


async def test_only_what_code_cannot_read_goes_into_a_batch(folder: Path, server: ScriptedServer) -> None:
    write_run(folder, diagnosis_text="Gout", ground_truth="Gout")
    journal = folder / "scenarios.jsonl"
    first, *others = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join([first.replace('"Gout"}', f'"{UNREAD}"}}'), *others]))
    cascade = settings(server, judge="cascade")
    estimate = await estimate_regrade(folder, cascade, batch=True)
    assert (estimate.count, estimate.most[0].amount.requests) == (4, 1)
    assert "judge: code decides 3 of 4, without a request" in estimate.based_on
    server.control(batch_polls=1)

    pending = await by_batch(folder, cascade, wait=False)
    assert (pending.pending, pending.judged) == (1, 3), "what code decides is not waited for"
    done = await by_batch(folder, cascade)

    (uploaded,) = calls(server, "files", "lines")
    assert [UNREAD in json.dumps(line) for line in uploaded] == [True]
    assert (done.judged, done.decided_by, done.saved) == (4, {"code": 3, "model": 1}, 3)

    write_run(folder, diagnosis_text="Gout", ground_truth="Gout")
    server.reset()
    done = await by_batch(folder, cascade, name="all")
    assert (done.judged, done.batches, asked(server)) == (4, (), 0), "no batch without a request"


async def test_what_fails_in_a_batch_is_asked_again_by_the_next_call_and_a_bad_form_at_once(
    folder: Path, server: ScriptedServer
) -> None:
    server.control(
        rules=[
            {"match": {"text_contains": "number 1"}, "fault": "500", "times": 1},
            {"match": {"text_contains": "number 2"}, "fault": "invalid_schema_json", "times": 1},
        ]
    )
    first = await by_batch(folder, settings(server))

    assert (first.judged, first.failed, first.not_tried) == (3, 1, 0)
    assert "in the batch: " in (first.reason or "")
    assert "answered 500" in (first.reason or "")
    entries = {entry["scenario_id"]: entry for entry in lines(first.path)}
    assert entries[1]["fault"]["error"] == "batch"
    (repair,) = [entry["body"] for entry in server.log() if entry["api"] == "responses"]
    assert "Your last answer cannot be used" in json.dumps(repair)
    used = entries[2]["usage"]["moderator"]
    assert used["requests"] == 2
    batched, direct = entries[0]["cost_usd"]["moderator"], entries[2]["cost_usd"]["moderator"]
    whole = (used["input_tokens"] * 10 + used["output_tokens"] * 20) / 1e6
    assert batched < direct < whole, "the follow-up has its full price, the first request half of it"

    second = await by_batch(folder, settings(server))

    assert (second.judged, second.failed) == (4, 0)
    assert [len(upload) for upload in calls(server, "files", "lines")] == [4, 1]


async def test_batches_that_fail_or_expire_keep_what_was_answered(folder: Path, server: ScriptedServer) -> None:
    server.control(batch_status="failed")
    failed = await by_batch(folder, settings(server))
    assert (failed.judged, failed.not_tried) == (0, 4)
    assert "is failed, 4 of 4 requests were not answered: Queue is full" in (failed.reason or "")
    assert not failed.path.exists()
    assert not note_of(folder).exists()
    assert len(calls(server, "files", "delete")) == 1

    server.control(batch_status="expired", batch_polls=0)
    expired = await by_batch(folder, settings(server))
    assert (expired.judged, expired.not_tried) == (2, 2)
    assert "is expired, 2 of 4 requests were not answered: Too late" in (expired.reason or "")

    server.control(batch_status="completed")
    assert (await by_batch(folder, settings(server))).judged == 4
    assert [len(upload) for upload in calls(server, "files", "lines")] == [4, 4, 2]


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["files", "batches", "poll"])
async def test_a_process_that_is_killed_submits_nothing_twice(
    moment: str, folder: Path, server: ScriptedServer, tmp_path: Path
) -> None:
    """After the upload, after the batch was created, and while waiting; nothing about them was answered."""
    point_at(tmp_path, server)
    server.control(rules=[{"match": {"api": moment}, "fault": "hang", "times": 1}], batch_polls=1)
    process = start(
        "regrade", folder, "--moderator_llm", "judge", "--judge", "model", "--batch", "--no-check", cwd=tmp_path
    )
    seen: dict[str, Callable[[], bool]] = {
        "files": lambda: bool(calls(server, "files", "lines")),
        "batches": lambda: bool(calls(server, "batches", "endpoint")),
        "poll": lambda: bool(calls(server, "batches", "id")),
    }
    try:
        until(seen[moment], moment, process)
    finally:
        process.signal(signal.SIGKILL)
    process.wait()
    assert note_of(folder).exists()
    with pytest.raises(InputError, match=r"judge_model\.batch\.json: a batch was submitted.*--batch"):
        await regrade(folder, settings(server))

    done = await by_batch(folder, settings(server))

    assert done.judged == 4
    assert (len(calls(server, "files", "lines")), len(calls(server, "batches", "endpoint"))) == (1, 1)
    assert not note_of(folder).exists()


@pytest.mark.slow
def test_ctrl_c_while_waiting_says_that_the_batch_goes_on(folder: Path, server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)
    server.control(batch_polls=99)
    process = start(
        "regrade", folder, "--moderator_llm", "judge", "--judge", "model", "--batch", "--no-check", cwd=tmp_path
    )
    try:
        until(lambda: bool(calls(server, "batches", "id")), "the first look", process)
        process.signal(signal.SIGINT)
        assert process.wait() == 130
    finally:
        process.signal(signal.SIGKILL)
    assert "4 not tried: interrupted; what was submitted goes on without this process" in process.stderr
    assert "Run the same command again" in process.stderr
    assert "Traceback" not in process.stderr


def test_no_wait_submits_and_a_later_call_fetches(folder: Path, server: ScriptedServer, called: Called) -> None:
    server.control(batch_polls=2)
    command = ("regrade", folder, "--moderator_llm", "judge", "--judge", "model", "--batch")
    submitted, _ = called(*command, "--no_wait")
    assert "4 requests in 1 batch (batch_" in submitted
    assert f"agentclinic regrade {folder} --moderator-llm judge --judge model --batch" in submitted
    again, _ = called(*command, "--no-wait", "--json")
    assert json.loads(again)["pending"] == 4
    assert not (folder / "judgements" / "judge_model.jsonl").exists(), "a judge without a verdict is no judge"

    done, _ = called(*command, "--no-wait")

    assert "4 diagnoses judged by judge, 0 failed" in done
    assert "The cost of all verdicts in the file is $0." in done
    assert "requests in a batch cost half the price" in done
    assert len(calls(server, "files", "lines")) == 1


@pytest.mark.slow
def test_a_jury_submits_all_its_batches_before_it_waits(folder: Path, server: ScriptedServer, called: Called) -> None:
    server.control(rules=[{"match": {"purpose": "moderator", "model": "harsh"}, "reply": "No"}], batch_polls=1)
    command = ("regrade", folder, "--jury", "builtin,kind,harsh", "--judge", "model", "--batch")

    pending, _ = called(*command, "--no-wait")
    assert "8 requests in 2 batches" in pending
    assert "--jury builtin,kind,harsh --judge model --batch" in pending
    done, _ = called(*command, "--json", "--quiet")

    judges = [judge["name"] for judge in json.loads(done)["comparison"]["judges"]]
    assert judges == ["builtin", "kind_model", "harsh_model", "jury"]
    assert len(calls(server, "batches", "endpoint")) == 2


async def test_a_server_without_the_responses_api_gets_a_batch_of_chat_completions(
    folder: Path, server: ScriptedServer
) -> None:
    server.control(responses=False)
    assert (await by_batch(folder, settings(server))).judged == 4
    assert calls(server, "batches", "endpoint") == ["/v1/chat/completions"]
    (uploaded,) = calls(server, "files", "lines")
    assert all("messages" in line["body"] for line in uploaded)


async def test_answers_to_other_questions_are_not_taken(folder: Path, server: ScriptedServer) -> None:
    server.control(batch_polls=1)
    pending = await by_batch(folder, settings(server), wait=False)
    assert (pending.pending, pending.judged) == (4, 0)
    with pytest.raises(InputError, match=r"judge_model\.batch\.json.*other prompts or settings"):
        await by_batch(folder, settings(server, temperature=0.9))
    with pytest.raises(InputError, match="is about a batch for 'judge'"):
        await by_batch(folder, settings(server, moderator_llm="other"), name="judge_model")
    estimate = await estimate_regrade(folder, settings(server), batch=True)
    assert estimate.count == 0, "what is submitted costs nothing more"

    write_run(folder, scenario_note="played again")
    journal = folder / "scenarios.jsonl"
    journal.write_text(journal.read_text().replace("number 3", "number 33"))
    done = await by_batch(folder, settings(server))
    assert (done.judged, done.not_tried) == (3, 1), "an encounter that was played again is left for the next batch"
    assert (await by_batch(folder, settings(server))).judged == 4


def answer_to(line: Json, right: bool, **more: Any) -> str:
    """A line of a batch's file of answers: what the judge said to one request."""
    said = json.dumps({"relation": "same" if right else "different", "reason": "as the script says"})
    words = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": said}]}]
    body = {"id": "r", "object": "response", "status": "completed", "model": "judge", "output": words}
    return json.dumps(
        {"custom_id": line["custom_id"], "response": {"status_code": 200, "body": body}, "error": None} | more
    )


async def test_contradictory_answers_are_named_and_count_as_failed_and_copies_are_harmless(
    folder: Path, server: ScriptedServer
) -> None:
    server.control(batch_polls=1)
    await by_batch(folder, settings(server), wait=False)
    ((copied, changed, refused, twice),) = calls(server, "files", "lines")
    late = {"response": None, "error": {"code": "batch_expired", "message": "Too late"}}
    key_twice = answer_to(twice, True).replace('"error": null', f'"response": {json.dumps(answer_to(twice, False))}')
    told = [
        answer_to(copied, False),
        answer_to(changed, True),
        answer_to(refused, True),
        key_twice,
        answer_to(changed, False),
        answer_to(copied, False),
        answer_to(refused, False, **late),
    ]
    server.control(batch_polls=0, batch_content="\n".join(told))
    shown = Said()

    done = await by_batch(folder, settings(server), progress=shown)

    assert (done.judged, done.failed, done.not_tried) == (1, 2, 1)
    assert [(r.scenario_id, r.correct, now) for r, now in done.changed] == [(0, True, False)], (
        "the copied answer counts once"
    )
    assert "Warning: the batch contradicts itself; no answer is used for MedQA/1; MedQA/2" in shown.messages
    faults = {entry["scenario_id"]: entry["fault"] for entry in lines(done.path) if entry["correct"] is None}
    assert {number: fault["error"] for number, fault in faults.items()} == {1: "batch", 2: "batch"}
    assert "its answers contradict each other" in faults[1]["message"]
    assert "1 of 4 requests were not answered" in (done.reason or "")

    server.reset()
    again = await by_batch(folder, settings(server))
    assert again.judged == 4
    assert [len(upload) for upload in calls(server, "files", "lines")] == [3], "what failed is asked again"


def test_a_limit_that_the_batch_would_exceed_is_refused_before_anything_is_sent(
    folder: Path, server: ScriptedServer, called: Called
) -> None:
    command = ("regrade", folder, "--moderator-llm", "judge", "--judge", "model", "--no-check")
    plain, half = (
        json.loads(called(*command, *flags, "--dry-run", "--json")[0])["typical"]["total"]
        for flags in ((), ("--batch",))
    )
    assert half["cost_usd"] == pytest.approx(plain["cost_usd"] / 2, abs=1e-6)
    cost, tokens = half["cost_usd"], half["input_tokens"] + half["output_tokens"]

    _, dear = called(*command, "--batch", "--max-cost", str(cost * 0.9), expect=2)
    assert "the batch costs about $" in dear
    assert "leave out --batch" in dear
    _, long = called(*command, "--batch", "--token-limit", str(tokens - 1), expect=2)
    assert f"the batch needs about {tokens:,} tokens" in long
    assert server.counts()["received"] == 0
    assert not note_of(folder).exists()

    called(*command, "--batch", "--max-cost", str(cost * 1.1), "--token-limit", str(tokens))


async def test_a_budget_that_is_used_up_ends_the_follow_ups_and_keeps_the_answers(
    folder: Path, server: ScriptedServer
) -> None:
    rule = {"match": {"text_contains": "number 3"}, "fault": "invalid_schema_json"}
    server.control(rules=[rule], batch_polls=1)
    await by_batch(folder, settings(server), wait=False)

    done = await by_batch(folder, with_limits(settings(server), 1, None))

    assert (done.judged, done.failed) == (3, 1)
    assert "not asked again: the token limit of" in (done.reason or "")
    assert not [entry for entry in server.log() if entry["api"] == "responses"]


def test_what_cannot_be_done_in_a_batch_is_refused(folder: Path, server: ScriptedServer, called: Called) -> None:
    server.control(batches=False)
    command = ("regrade", folder, "--moderator-llm", "judge", "--judge", "model", "--no-check", "--batch")
    _, lacking = called(*command, expect=2)
    assert f"127.0.0.1:{server.port} has no batches (" in lacking
    assert "leave out --batch" in lacking
    server.control(batches=True, rules=[{"match": {"api": "batches"}, "fault": "405"}])
    assert "has no batches (/batches: " in called(*command, expect=2)[1]
    assert len(calls(server, "files", "delete")) == 1, "what was uploaded is deleted"
    assert not note_of(folder).exists()
    called(*command[:-1])  # nothing is in the way of a plain call

    for flags, why in (
        (("--moderator-llm", "builtin", "--batch"), "--batch needs a judge at an endpoint, and builtin is none"),
        (("--jury", "builtin,recorded", "--batch"), "--batch needs a judge at an endpoint, and builtin,recorded has"),
        (("--moderator-llm", "other", "--batch", "--resynthesize"), "leave it out with --resynthesize"),
        (("--moderator-llm", "other", "--no-wait"), "--no-wait is for --batch"),
    ):
        assert why in called("regrade", folder, *flags, expect=2)[1]

    note_of(folder).write_text('{"model": "judge"}')
    assert "judge_model.batch.json: not the note of a batch (host: field required)" in called(*command, expect=2)[1]


async def test_credentialed_data_goes_to_no_file_elsewhere_and_its_note_is_private(
    folder: Path, server: ScriptedServer
) -> None:
    write_run(folder, data_class="credentialed")
    server.control(batch_polls=1)
    await by_batch(folder, settings(server), wait=False)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder / "judgements").iterdir()}
    assert modes["judge_model.batch.json"] == 0o600
    assert (await by_batch(folder, settings(server))).judged == 4
    assert stat.S_IMODE((folder / "judgements" / "judge_model.jsonl").stat().st_mode) == 0o600

    elsewhere = settings(server).model_dump(mode="json")
    elsewhere["openai"]["base_url"] = "https://10.0.0.7/v1"
    with pytest.raises(InputError, match="credentialed data may not go to"):
        await by_batch(folder, Settings.model_validate(elsewhere))
    promise = {"zero_retention": True, "no_training": True, "no_human_review": True}
    elsewhere["privacy"] = {"hosts": {"10.0.0.7": {**promise, "attested_by": "Ann", "attested_on": "2024-01-01"}}}
    attested = Settings.model_validate(elsewhere).model_copy(update={"allow_hosts": ("10.0.0.7",)})
    with pytest.raises(InputError, match=r"may not be stored at 10\.0\.0\.7.*leave out --batch"):
        await by_batch(folder, attested)


async def test_files_that_cannot_be_deleted_are_named_and_no_secret_is_kept(
    folder: Path, server: ScriptedServer
) -> None:
    server.control(
        rules=[
            {"match": {"api": "delete"}, "fault": "bad_request"},
            {"match": {"text_contains": "number 0"}, "fault": "auth"},
            {"match": {"text_contains": "number 1"}, "fault": "echo_key"},
        ],
        batch_polls=1,
    )
    shown = Said()
    await by_batch(folder, settings(server), wait=False)
    noted = note_of(folder).read_text()

    done = await by_batch(folder, settings(server), progress=shown)

    assert (done.judged, done.failed) == (2, 2)
    assert sum("could not be deleted at 127.0.0.1" in message for message in shown.messages) == 3
    assert not note_of(folder).exists()
    said = noted + done.path.read_text() + "".join(shown.messages)
    assert "[key]" in said
    assert KEY not in said


async def test_a_process_killed_while_it_deletes_does_not_ask_again(folder: Path, server: ScriptedServer) -> None:
    server.control(batch_polls=1)
    await by_batch(folder, settings(server), wait=False)
    note = json.loads(note_of(folder).read_text())
    file = note["parts"][0]["file_id"]
    await by_batch(folder, settings(server))
    note_of(folder).write_text(json.dumps({**note, "to_delete": [file, "file-gone"]}))

    done = await by_batch(folder, settings(server))

    assert done.judged == 4
    assert calls(server, "files", "delete")[-2:] == [file, "file-gone"]
    assert len(calls(server, "files", "lines")) == 1
    assert not note_of(folder).exists()
