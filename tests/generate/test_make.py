"""Making cases: retried with the reasons, set aside, resumed, never lost, never made twice."""

from __future__ import annotations

import json
import stat
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from generate_support import STORY, keys, made, source, sources, work
from runs_support import lines
from scripted_server import LONG, ScriptedServer

from agentclinic.builtin import Builtin
from agentclinic.cases.model import WriterPayload, WrittenStory
from agentclinic.clinic.prompts import load_prompt
from agentclinic.config import Settings
from agentclinic.errors import InputError
from agentclinic.generate.case_job import RETRIES
from agentclinic.generate.files import Files
from agentclinic.generate.make import Work
from agentclinic.generate.source import SourceCase, Truth
from agentclinic.lint.check import check_file
from agentclinic.models.base import ModelError, Purpose, Reply, Request
from agentclinic.models.retry import Clock
from agentclinic.runs.build import Models

pytestmark = pytest.mark.anyio

TRUTH = Truth("Saddle embolus of pulmonary artery", "I2692", 10, "Circulatory system", ("Zyxwort clot",))
GIVES_AWAY = STORY.model_copy(update={"history": "Belly cramps for 3 days, surely a lung clot."})
INVENTS = STORY.model_copy(update={"history": "Belly cramps for 9 days."})


class Scripted:
    """A writer that gives its answers in order, then repeats the last; it records the requests."""

    name = "scripted"

    def __init__(self, *stories: WrittenStory | ModelError) -> None:
        self._stories = stories
        self.requests: list[Request] = []

    async def reply(self, request: Request) -> Reply:
        said = self._stories[min(len(self.requests), len(self._stories) - 1)]
        self.requests.append(request)
        if isinstance(said, ModelError):
            raise said
        return Reply(said.model_dump_json(), parsed=said)


def at_endpoint(server: ScriptedServer, **runtime: Any) -> Settings:
    return Settings.model_validate(
        {"openai": {"base_url": server.base_url}, "llm": {"runtime": {"timeout": 0, "tries": 1, **runtime}}}
    )


def said(story: WrittenStory, **match: Any) -> dict[str, Any]:
    return {"match": {"purpose": "writer", **match}, "reply": story.model_dump_json()}


async def test_cases_are_written_checked_and_can_be_played(tmp_path: Path) -> None:
    job = work(tmp_path / "out.jsonl", sources(5))
    result = await made(job)
    assert result.manifest["counts"]["made"] == 5
    report = check_file(job.output, "made")
    assert (report.errors, report.leaks, len(report.cases)) == ([], [], 5)
    for row in lines(job.output):
        assert (row["data_class"], row["history_source"], row["labs_only"]) == ("open-demo", "note", False)
        assert row["OSCE_Examination"]["Correct_Diagnosis"] == "Frobisher fever"


async def test_every_file_is_readable_only_by_its_owner(tmp_path: Path) -> None:
    bad = source(key="bad", history_source="none", story=(), past=(), drugs=(), vitals=(), labs=(), cultures=())
    job = work(tmp_path / "out.jsonl", [*sources(2), bad])
    job.output.touch(0o644)
    await made(job)
    files = Files(job.output)
    for path in (files.output, files.quarantine, files.trace, files.manifest):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


async def test_the_writer_is_told_why_and_its_second_draft_is_used(tmp_path: Path) -> None:
    writer = Scripted(GIVES_AWAY, STORY)
    job = work(tmp_path / "out.jsonl", [source(TRUTH)])
    result = await made(job, writer)
    (row,) = lines(job.output)
    assert (row["generation"]["attempts"], row["generation"]["rejected"]) == (2, ["patient_leak"])
    assert result.manifest["rejected_drafts"] == {"patient_leak": 1}
    first, second = writer.requests
    assert len(second.messages) == len(first.messages) + 2
    assert "names a disease" in second.messages[-1].content


async def test_after_two_retries_the_case_is_set_aside_with_reasons_and_draft(tmp_path: Path) -> None:
    writer = Scripted(INVENTS)
    job = work(tmp_path / "out.jsonl", [source(TRUTH)])
    result = await made(job, writer)
    assert len(writer.requests) == 1 + RETRIES == 3
    assert lines(job.output) == []
    (entry,) = lines(Files(job.output).quarantine)
    assert (entry["key"], entry["attempts"]) == ("k1", 3)
    assert [reason["kind"] for reason in entry["reasons"]] == ["invented_number"]
    assert "9" in entry["reasons"][0]["detail"]
    assert entry["draft"]["OSCE_Examination"]["Patient_Actor"]["History"] == "Belly cramps for 9 days."
    assert result.manifest["quarantine_reasons"] == {"invented_number": 1}
    assert result.missing == 0


async def test_a_problem_that_no_writer_could_fix_is_not_retried(tmp_path: Path) -> None:
    writer = Scripted(STORY)
    bare = source(history_source="none", story=(), past=(), drugs=(), vitals=(), labs=(), cultures=())
    await made(work(tmp_path / "out.jsonl", [bare]), writer)
    assert writer.requests == []
    (entry,) = lines(Files(tmp_path / "out.jsonl").quarantine)
    assert entry["attempts"] == 1


async def test_no_request_holds_the_diagnosis_its_code_or_an_identifier(server: ScriptedServer, tmp_path: Path) -> None:
    """Whatever the source says, and also on retries, whose reasons come from the truth."""
    server.control(rules=[said(GIVES_AWAY, nth=[1, 2]), said(STORY)])
    told = source(
        TRUTH,
        story=(*source().story, "Known Zyxwort clot.", "Filed as I26.92.", "Pulmonary embolism feared."),
        past=("Pulmonary embolism", "Gallstones removed 7 years ago"),
    )
    async with Models(at_endpoint(server)) as models:
        result = await made(work(tmp_path / "out.jsonl", [told], model="scripted"), models.get("scripted"))
    assert result.manifest["counts"]["made"] == 1
    sent = server.log()
    assert len(sent) == 3
    assert {entry["purpose"] for entry in sent} == {"writer"}
    for entry in sent:
        own_words = json.dumps(entry["body"]).replace("surely a lung clot", "")
        for secret in ("Saddle", "embol", "Zyxwort", "I26", "90000001", "80000002", "2187", "lung clot"):
            assert secret.lower() not in own_words.lower(), secret


async def test_labs_go_into_the_case_and_not_to_the_writer(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(rules=[said(STORY)])
    async with Models(at_endpoint(server)) as models:
        await made(work(tmp_path / "out.jsonl", [source()], model="scripted"), models.get("scripted"))
    (row,) = lines(tmp_path / "out.jsonl")
    assert row["OSCE_Examination"]["Test_Results"]["Blood_Chemistry"]["Sodium"].startswith("131 mEq/L")
    assert "131" not in json.dumps(server.log()[0]["body"])
    assert row["generation"]["tokens"]["input"] > 0


async def test_an_answer_that_is_not_a_story_counts_as_a_draft(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(rules=[{"match": {"purpose": "writer"}, "fault": "refusal"}])
    async with Models(at_endpoint(server)) as models:
        await made(work(tmp_path / "out.jsonl", [source()], model="scripted"), models.get("scripted"))
    (entry,) = lines(Files(tmp_path / "out.jsonl").quarantine)
    assert entry["rejected"] == ["writer_refused"] * 3
    assert entry["draft"] is None


@pytest.mark.parametrize(
    ("fault", "kind"), [("500", "server"), ("reset", "connection"), ("bad_request", "bad_request")]
)
async def test_an_endpoint_failure_is_counted_and_its_case_made_by_the_next_call(
    fault: str, kind: str, server: ScriptedServer, tmp_path: Path
) -> None:
    server.control(rules=[{"match": {"purpose": "writer", "nth": 2}, "fault": fault}, said(STORY)])
    job = work(tmp_path / "out.jsonl", sources(4), model="scripted", workers=1)
    async with Models(at_endpoint(server)) as models:
        first = await made(job, models.get("scripted"))
        assert (first.missing, first.manifest["failures"], first.reason) == (1, {kind: 1}, None)
        second = await made(job, models.get("scripted"))
    assert second.missing == 0
    assert sorted(keys(job.output)) == list(job.selection.keys)


async def test_an_error_that_every_request_would_get_stops_the_call_and_keeps_what_is_made(
    server: ScriptedServer, tmp_path: Path
) -> None:
    server.control(rules=[{"match": {"purpose": "writer", "nth": 3}, "fault": "auth"}, said(STORY)])
    job = work(tmp_path / "out.jsonl", sources(9), model="scripted", workers=1)
    async with Models(at_endpoint(server)) as models:
        result = await made(job, models.get("scripted"))
    assert result.reason == "the writer's endpoint: it does not accept the key"
    assert len(keys(job.output)) == 2
    assert (result.missing, len(server.log())) == (7, 3)


async def test_an_endpoint_that_closes_for_a_day_stops_the_call_and_says_why(
    server: ScriptedServer, tmp_path: Path
) -> None:
    closed = {"match": {"purpose": "writer", "nth": 2}, "fault": "429_retry_after", "seconds": 86400}
    server.control(rules=[closed, said(STORY)])
    job = work(tmp_path / "out.jsonl", sources(4), model="scripted", workers=1)
    async with Models(at_endpoint(server)) as models:
        result = await made(job, models.get("scripted"))
    assert "it asks to wait 24.0 hours" in (result.reason or "")
    assert (result.missing, len(keys(job.output))) == (3, 1)


async def test_a_second_call_sends_no_request_and_changes_nothing(tmp_path: Path) -> None:
    job = work(tmp_path / "out.jsonl", sources(3))
    await made(job)
    before = job.output.read_bytes()
    writer = Scripted(STORY)
    result = await made(job, writer)
    assert writer.requests == []
    assert job.output.read_bytes() == before
    assert result.manifest["counts"]["made"] == 3


async def test_a_larger_choice_continues_where_the_smaller_ended(tmp_path: Path) -> None:
    every = sources(6)
    await made(work(tmp_path / "out.jsonl", every[:2]))
    read: list[str] = []

    def reading(done: Collection[str]) -> Iterator[SourceCase]:
        for one in every:
            if one.key not in done:
                read.append(one.key)
                yield one

    result = await made(work(tmp_path / "out.jsonl", every, selection={"read": reading}))
    assert read == [one.key for one in every[2:]]
    assert sorted(keys(tmp_path / "out.jsonl")) == [one.key for one in every]
    assert result.missing == 0


async def test_a_case_that_the_source_gives_twice_is_made_once(tmp_path: Path) -> None:
    one = source()
    await made(work(tmp_path / "out.jsonl", [one, one, one]))
    assert keys(tmp_path / "out.jsonl") == ["k1"]


@pytest.mark.parametrize("change", ["model", "prompt", "settings"])
async def test_cases_made_with_other_settings_are_not_mixed_and_the_error_names_the_change(
    change: str, tmp_path: Path
) -> None:
    job = work(tmp_path / "out.jsonl", sources(2))
    await made(job)
    before = job.output.read_bytes()
    other: Work = {
        "model": replace(job, model="another"),
        "prompt": replace(job, prompt=replace(load_prompt("writer"), digest="0" * 16)),
        "settings": replace(job, selection=replace(job.selection, settings={"hours": 48.0})),
    }[change]
    with pytest.raises(InputError, match=f"changed: {'hours' if change == 'settings' else change}"):
        await made(other)
    assert job.output.read_bytes() == before


async def test_a_file_of_other_cases_is_refused_and_left_alone(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    output.write_text('{"OSCE_Examination": {}}\n')
    with pytest.raises(InputError, match=r"out\.jsonl line 1: not a case made by"):
        await made(work(output, sources(1)))
    assert output.read_text() == '{"OSCE_Examination": {}}\n'


@pytest.mark.parametrize("cut", [1, 30, 300])
async def test_an_incomplete_last_line_is_removed_and_its_case_made_again(cut: int, tmp_path: Path) -> None:
    job = work(tmp_path / "out.jsonl", sources(3), workers=1)
    await made(job)
    whole = job.output.read_bytes()
    job.output.write_bytes(whole[:-cut])
    await made(job)
    assert job.output.read_bytes() == whole


async def test_a_case_stays_in_quarantine_until_a_retry_is_asked_for(tmp_path: Path) -> None:
    job = work(tmp_path / "out.jsonl", [source(TRUTH)])
    await made(job, Scripted(INVENTS))
    writer = Scripted(STORY)
    await made(job, writer)
    assert writer.requests == []
    result = await made(job, writer, retry_quarantined=True)
    assert keys(job.output) == ["k1"]
    assert not Files(job.output).quarantine.exists()
    assert (result.manifest["counts"]["made"], result.manifest["counts"]["quarantined"]) == (1, 0)


async def test_a_worker_pauses_between_its_requests_and_not_before_the_first(tmp_path: Path) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    clock = Clock(sleep=sleep)
    await made(work(tmp_path / "a.jsonl", sources(4), workers=1, sleep_seconds=2.5), clock=clock)
    assert slept == [2.5] * 3
    slept.clear()
    await made(work(tmp_path / "b.jsonl", [source(TRUTH)], sleep_seconds=1), Scripted(GIVES_AWAY, STORY), clock)
    assert slept == [1]


async def test_each_worker_pauses_between_its_own_requests_only(tmp_path: Path) -> None:
    slept: list[float] = []
    both_asked = anyio.Event()

    class Waiting(Scripted):
        async def reply(self, request: Request) -> Reply:
            answer = await super().reply(request)
            if len(self.requests) == 2:
                both_asked.set()
            with anyio.fail_after(LONG):
                await both_asked.wait()
            return answer

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    await made(work(tmp_path / "out.jsonl", sources(4), sleep_seconds=2.5), Waiting(STORY), Clock(sleep=sleep))
    assert slept == [2.5] * 2, "four requests by two workers: the first of each without a pause"


async def test_every_result_of_a_case_has_a_trace_to_rows(tmp_path: Path) -> None:
    job = work(tmp_path / "out.jsonl", sources(2))
    await made(job)
    traces = {entry["key"]: entry["rows"] for entry in lines(Files(job.output).trace)}
    for case in check_file(job.output, "made").cases:
        rows = traces[case.annotations["generation"]["key"]]
        assert {fact.path for fact in case.exam_facts} == set(rows)
        assert all(rows.values())
        assert "labevents" not in json.dumps(dict(case.annotations))


async def test_an_error_in_the_source_is_raised_and_what_was_made_before_is_kept(tmp_path: Path) -> None:
    def breaking(done: Collection[str]) -> Iterator[SourceCase]:
        yield from sources(3)
        raise InputError("labevents.csv.gz line 7: broken")

    with pytest.raises(InputError, match="line 7"):
        await made(work(tmp_path / "out.jsonl", sources(9), selection={"read": breaking}, workers=1))
    assert len(keys(tmp_path / "out.jsonl")) == 3
    manifest = json.loads(Files(tmp_path / "out.jsonl").manifest.read_text())
    assert (manifest["counts"]["made"], manifest["counts"]["chosen"]) == (3, 9)


async def test_a_second_process_on_the_same_file_is_refused(tmp_path: Path) -> None:
    class Again:
        name = "again"

        async def reply(self, request: Request) -> Reply:
            with pytest.raises(InputError, match="another process is working on this data set"):
                await made(job)
            return await Scripted(STORY).reply(request)

    job = work(tmp_path / "out.jsonl", [source()])
    await made(job, Again())
    assert keys(job.output) == ["k1"]


async def test_the_manifest_has_counts_reasons_and_settings(tmp_path: Path) -> None:
    bare = source(key="bare", history_source="none", story=(), past=(), drugs=())
    codes = source(key="codes", history_source="codes", story=())
    report = {"excluded": {"planned admission": 3}}
    job = work(tmp_path / "out.jsonl", [*sources(2), bare, codes], selection={"report": report})
    await made(job)
    manifest = json.loads(Files(job.output).manifest.read_text())
    assert manifest["by_history_source"] == {"note": 2, "none": 1, "codes": 1}
    assert manifest["by_chapter"] == {"Invented diseases": 4}
    assert manifest["counts"] == {
        "chosen": 4,
        "made": 4,
        "quarantined": 0,
        "failed": 0,
        "made_before_by_another_choice": 0,
        "labs_only": 1,
        "without_symptoms": 2,
    }
    assert manifest["chosen"] == report
    assert manifest["made_with"]["prompt"] == load_prompt("writer").digest
    assert manifest["tokens"] == {"input": 0, "output": 0}


async def test_the_builtin_writer_uses_only_what_is_on_record() -> None:
    payload = WriterPayload("triage", 40, "Male", "came on foot", ("Itchy toe", "Cold feet"), ("Gout",), ("aspirin",))
    reply = await Builtin().reply(Request(Purpose.WRITER, (), schema=WrittenStory, payload=payload))
    assert reply.parsed == WrittenStory(
        objective="Assess and diagnose the patient presenting with itchy toe.",
        history="",
        primary_symptom="Itchy toe",
        secondary_symptoms=["Cold feet"],
        past_medical_history="On record from earlier: Gout.",
        medications="Takes aspirin.",
        social_history="",
        family_history="",
        review_of_systems="",
    )


def test_damaged_companion_files_are_clear_errors(tmp_path: Path) -> None:
    files = Files(tmp_path / "out.jsonl")
    for line in ('"text"', "{", "[" * 1000, "9" * 5000):
        files.quarantine.write_text(f'{{"digest": "a"}}\n{line}\n{{"digest": "b"}}\n')
        with pytest.raises(InputError, match=r"out\.quarantine\.jsonl line 2"):
            files.empty_quarantine("a")
    files.quarantine.write_text('{"digest": "a"}\n\n{"digest": "b"}\n{"dig')
    files.empty_quarantine("a")
    assert files.quarantine.read_text() == '\n{"digest": "b"}\n{"dig'
    files.manifest.write_text('{"made_with": 3}')
    files.output.write_text('{"generation": {"key": "k", "digest": "old"}, "OSCE_Examination": {}}\n')
    with pytest.raises(InputError, match="there is no manifest to compare with"):
        files.made("new", {"model": "x"})
