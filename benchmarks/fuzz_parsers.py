"""The parsers that `fuzz.py` feeds: each with valid inputs to begin with, and the errors it documents."""

from __future__ import annotations

import asyncio
import copy
import gzip
import io
import json
import logging
import os
import tempfile
import zlib
from collections.abc import Callable, Coroutine, Mapping
from contextlib import closing, redirect_stderr, redirect_stdout, suppress
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, cast
from unittest.mock import patch

import typer
from typer.main import get_command

from agentclinic import privacy
from agentclinic.audit import reviewer
from agentclinic.audit.exact import exact_findings
from agentclinic.audit.model import AuditedReply
from agentclinic.builtin import roles
from agentclinic.cases.formats import Row, read_case
from agentclinic.cases.model import AnswerKey, WrittenStory
from agentclinic.cases.registry import load_cases, parse_rows
from agentclinic.cli import main as command_line
from agentclinic.cli import normalized
from agentclinic.cli.app import app
from agentclinic.clinic import payloads
from agentclinic.clinic.doctor import Assignment, Incoming, Observation
from agentclinic.clinic.encounter import Clinic, Seat, encounter
from agentclinic.clinic.findings import gather
from agentclinic.clinic.judge import Judge
from agentclinic.clinic.laboratory import Laboratory
from agentclinic.clinic.patient import Patient
from agentclinic.clinic.prompts import SHIPPED, load_prompt, load_prompts
from agentclinic.compat.folder import check_folder
from agentclinic.config import ROLES, RuntimeSettings, Settings, _dotenv, load_llm_file, load_settings
from agentclinic.doctors.plain import PlainDoctor, elicit
from agentclinic.doctors.planner.engine import DifferentialDiagnosisEngine, PolicyDoctor
from agentclinic.doctors.planner.settings import load_policy
from agentclinic.doctors.uncertainty.agent_config import UNCERTAINTY, load_agent
from agentclinic.doctors.uncertainty.doctor import UncertaintyDoctor
from agentclinic.doctors.uncertainty.store import SessionError, SessionStore, read_session
from agentclinic.doctors.uncertainty.synthesis import synthesise
from agentclinic.errors import InputError
from agentclinic.generate import settings as generation
from agentclinic.generate.case import case_row, prepare
from agentclinic.generate.checks import check
from agentclinic.generate.files import Files
from agentclinic.generate.medqa import select_questions
from agentclinic.generate.mimic import icd, results, story, tables
from agentclinic.generate.mimic.choose import load_salt
from agentclinic.generate.mimic.classify import data_class
from agentclinic.generate.settings import GenFile
from agentclinic.generate.source import SourceCase, Truth
from agentclinic.jsonl import encodable, sealed
from agentclinic.learn.write import learn_from, only_new
from agentclinic.lint.check import check_file
from agentclinic.lint.quality import check_file_quality
from agentclinic.memory import retrieval
from agentclinic.memory.experience import Experience
from agentclinic.memory.split import make_split, read_split, write_split
from agentclinic.memory.store import Known, load_store
from agentclinic.models import batch, endpoint, faults, recording, wire
from agentclinic.models.base import MalformedError, ModelError, Purpose, Reply, Request, ToolCall
from agentclinic.models.recording import Ongoing, Replay
from agentclinic.models.retry import Clock
from agentclinic.models.structured import InvalidReplyError, parse, written_call
from agentclinic.models.wire import image_url
from agentclinic.privacy import DataClass
from agentclinic.report.runs import list_runs
from agentclinic.results.journal import read_records
from agentclinic.results.record import Record
from agentclinic.results.run_cases import read_cases, write_cases
from agentclinic.results.run_data import load_run
from agentclinic.results.turn import Exchange
from agentclinic.runs import shards, verdicts
from agentclinic.runs.execute import PlayJob
from agentclinic.runs.resume import class_of_run, settings_of
from agentclinic.runs.sweep import read_sweep
from agentclinic.scoring.judges.against_labels import judged_units, panel_and_labels
from agentclinic.scoring.outcome import RunningSummary
from agentclinic.scoring.rows import row_of
from agentclinic.scoring.sessions import load_sessions, summarise_sessions
from agentclinic.viewer.moves import Move, Times
from agentclinic.viewer.players import PLAYERS, Joining, Players
from agentclinic.viewer.players import _hash as by_hash
from agentclinic.viewer.room import read_body


class Parser(NamedTuple):
    """A parser of outside data."""

    read: Callable[[bytes], object]
    seeds: tuple[bytes, ...]
    """Valid inputs to begin with."""
    refuses: tuple[type[Exception], ...] = (InputError,)
    """What it may raise."""
    longest: int = 4_600
    """Bytes of its longest input: several times the usual seed. `slow_text.py` reads longer texts."""
    slow: bool = False
    """Takes several milliseconds: gets fewer inputs in the tests."""


CHART = {
    "Objective_for_Doctor": "Assess a patient with a sore toe.",
    "Patient_Actor": {
        "Demographics": "54-year-old man",
        "History": "The patient has had a painful red toe for 3 days. He denies fever.",
        "Symptoms": {"Primary_Symptom": "Toe pain", "Secondary_Symptoms": ["Swelling", "Chills"]},
        "Past_Medical_History": "Hypertension",
    },
    "Physical_Examination_Findings": {"Vital_Signs": {"Temperature": "37.9°C", "Blood_Pressure": "150/90 mmHg"}},
    "Test_Results": {
        "Blood_Chemistry": {"Uric_Acid": "9.1 mg/dL (high)"},
        "X-ray": {"Findings": "Soft tissue swelling"},
    },
    "Correct_Diagnosis": "Acute gout",
}
ANNOTATIONS = {
    "case_id": "osce-a01", "version": 2, "canary": "openosce-canary-aea180ce", "setting": "primary care",
    "acuity": "urgent",
    "Specialty": "Rheumatology", "Difficulty": "medium", "atypical": False, "lockbox": False, "ICD10": "M10.9",
    "Answer_Key": {"accept": ["Gout"], "partial": ["Arthritis"], "reject": [{"text": "Cellulitis", "reason": "no"}]},
    "Differential": [{"name": "Cellulitis", "why_considered": "red toe", "refuted_by": "Uric acid 9.1 mg/dL"}],
    "Key_Findings": [{"any_of": ["Test_Results/Blood_Chemistry/Uric_Acid"], "role": "discriminating", "weight": 5}],
    "Must_Not_Miss": [{"name": "Septic arthritis", "excluded_by": "Soft tissue swelling only"}], "Harm_If_Missed": 2,
    "twin_of": "osce-a02", "data_class": "synthetic", "references": ["a textbook"],
}  # fmt: skip
OSCE = {"OSCE_Examination": CHART}
NEJM = {
    "question": "A 40-year-old man with an itchy rash. What is it?", "image_url": "https://example.org/a?id=7&width=3",
    "type": "Text", "answers": [{"text": "Psoriasis", "correct": True}, {"text": "Scabies", "correct": False}],
    "patient_info": "A 40-year-old man has had an itchy rash for a week.", "physical_exams": "Skin: scaly plaques.",
}  # fmt: skip
MIMIC = {**OSCE, "data_class": "credentialed", "generation": {"key": "ab", "digest": "cd"}, "labs_only": False}
NOTE = """Chief Complaint:
toe pain
History of Present Illness:
Mr. ___ is a ___ year old man who presented to ___ with toe pain for 3 days. In the ED, CT showed gout.
Past Medical History: - hypertension
Medications on Admission:
1. lisinopril 10 mg
2. ___
Discharge Diagnosis: gout
"""
AGENTS = """agents:
  uncertainty_aware_doctor:
    model: builtin
    system_prompt: |
      You are a doctor.
    temperature: 0.5
    tools: [diagnosis_step, final_diagnosis]
  other: {model: &m x, system_prompt: *m}
"""
CASE = read_case(Row(Path("case.jsonl"), 1, 0, {**OSCE, **ANNOTATIONS}), "Fuzz")
logging.getLogger("dotenv.main").disabled = True  # it logs each line that it cannot read
PROMPTS = load_prompts(None, "uncertainty", "synthesis", "writer", "reviewer", "memory", "learner")


class Said:
    """A model that always answers with the same text; where tools are offered, as the arguments of a call."""

    name = "fuzz"

    def __init__(self, text: str) -> None:
        self._text = text

    def one_of(self, *ways: Any) -> Any:
        """One of several ways to be asked, always the same for the same text."""
        return ways[zlib.crc32(self._text.encode()) % len(ways)]

    async def reply(self, request: Request) -> Reply:
        """The text, parsed as an endpoint parses it."""
        if request.tools:
            call = written_call(self._text, request.tools)
            return Reply("", (call or ToolCall("1", self.one_of(*request.tools).name, self._text),))
        try:
            return Reply(self._text, parsed=parse(self._text, request.schema) if request.schema else None)
        except InvalidReplyError as problem:
            raise MalformedError(str(problem), text=self._text) from None


def folder() -> Path:
    """A scratch folder of this process."""
    return _folder(os.getpid())


@cache
def _folder(_process: int) -> Path:
    return Path(tempfile.mkdtemp())


def _json(*rows: object) -> bytes:
    return "\n".join(json.dumps(row) for row in rows).encode() + b"\n"


def in_file(name: str, read: Callable[[Path], object]) -> Callable[[bytes], object]:
    """A parser of a file of that name."""

    def parser(data: bytes) -> object:
        path = folder() / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        try:
            return read(path)
        finally:
            privacy.reset()

    return parser


def of_text(read: Callable[[str], object]) -> Callable[[bytes], object]:
    """A parser of text, as it arrives from an endpoint."""
    return lambda data: read(encodable(data.decode("utf-8", "replace")))


def by_model(ask: Callable[[Said], Coroutine[Any, Any, object]]) -> Callable[[bytes], object]:
    """What a role makes of a reply."""
    return of_text(lambda text: _loop(os.getpid()).run(ask(Said(text))))


@cache
def _loop(_process: int) -> asyncio.Runner:
    return asyncio.Runner()


def close() -> None:
    """Close what this process has open."""
    _loop(os.getpid()).close()
    _connection(os.getpid())[0].__exit__(None, None, None)
    for kept in (_loop, _connection, _folder, _simulators):
        kept.cache_clear()


# --- case files, settings -----------------------------------------------------------------------------------------


def _cases(path: Path, *, name: str | None = None) -> None:
    cases = load_cases(name or str(path), {name: str(path)} if name else None)
    write_cases(path.parent, cases)
    again = read_cases(path.parent)
    assert again == [replace(case, annotations=other.annotations) for case, other in zip(cases, again, strict=True)]


def _data_check(path: Path) -> None:
    check_file_quality(check_file(path, "fuzz").cases)


def _settings(path: Path) -> None:
    public = load_settings(path).public()
    used = path.with_name("config.used.json")
    used.write_text(json.dumps(public), encoding="utf-8")
    assert load_settings(used).public() == public


def _generation(path: Path) -> None:
    for source in ("mimic", "medqa"):
        _, section = generation.load(path, source, {})
        _ = section.base if section.base_dataset_dir else None
    assert isinstance(section, generation.MedqaSettings)


def _prompts(path: Path) -> None:
    for role in ROLES:
        path.replace(path.with_name(f"{role}.json"))
        path = path.with_name(f"{role}.json")
        with suppress(InputError):  # most files are of one role
            load_prompt(role, path.parent)


# --- run folders ----------------------------------------------------------------------------------------------------


def _scored(record: Record) -> None:
    outcome = RunningSummary()
    outcome.add(record)
    outcome.summary()
    row_of(record)


def _results_of_the_original(path: Path) -> None:
    for record in read_records(path):
        _scored(record)


def _journal(path: Path) -> None:
    for record in read_records(path):
        _scored(record)
        again = path.with_name("again.jsonl")
        again.write_bytes(sealed(record.model_dump(mode="json")) + b"\n")
        (other,) = read_records(again)
        assert other.model_dump_json() == record.model_dump_json()


def _run(path: Path) -> None:
    read_cases(path.parent)
    list(load_run(path.parent).records())


def _used(path: Path) -> None:
    list_runs(path.parent)
    list(load_run(path.parent).records())
    class_of_run(path.parent, ())
    settings_of(path.parent)


def _judgements(path: Path) -> None:
    run = load_run(path.parent.parent, "fuzz")
    records = list(run.records())
    for record in records:
        _scored(record)
    verdicts.spent_on(path)
    verdicts.kept_verdicts(path, records, {"moderator_llm": "builtin"})


def _shard(path: Path) -> None:
    """As a shard, and as a result in one: most changes to a shard are noticed by its checksum."""
    job = PlayJob(path.parents[2], DataClass.SYNTHETIC, {})
    text = path.read_text("utf-8", "replace")
    with suppress(InputError):
        list(shards.left_over(job, ("u",)))
    path.write_bytes(sealed({"key": "u", "settled": True, "result": text}) + b"\n")
    for _, record in shards.left_over(job, ("u",)):
        _scored(record)


def _session(path: Path) -> None:
    summarise_sessions(load_sessions(path.parent))
    session = read_session(path)
    store = SessionStore(path.parent / "again")
    store.save(session)
    assert store.load(session.session_id).model_dump_json() == session.model_dump_json()


def _recording(path: Path) -> None:
    replay = Replay(path)
    replay.models_for(Purpose.DOCTOR)
    for place in replay._entries:
        with patch.object(recording, "_place", return_value=place), suppress(ModelError):
            _loop(os.getpid()).run(replay.reply(Request(Purpose.DOCTOR, ())))


def _store(path: Path) -> None:
    store = load_store(path)
    retrieval.Memory(store, "bm25").allowed(CASE)


def _split(path: Path) -> None:
    split = read_split(path)
    write_split(path, split)
    assert read_split(path) == split


def _labels(path: Path) -> None:
    panel, matched = panel_and_labels(path.parent.parent)
    judged_units(panel, "recorded", matched)


# --- games in the browser -------------------------------------------------------------------------------------------


def _move(data: bytes) -> None:
    move = read_body(data, Move)
    stated = move.stated()
    json.dumps([move.words(), stated and stated.model_dump()], ensure_ascii=False, allow_nan=False).encode()


def _joining(data: bytes) -> None:
    path = folder() / "joined"
    (path / PLAYERS).unlink(missing_ok=True)
    _joined(path, read_body(data, Joining))


def _joined(path: Path, joining: Joining) -> None:
    """Join, and be known after a restart."""
    with closing(Players(path)) as players:
        session, _ = players.join(joining, asks_experience=False)
    with closing(Players(path)) as players:
        assert players.of_session(session)


def _players(path: Path) -> None:
    with closing(Players(path.parent)) as players:
        known = [players.of_session(session) for session in ("s", "t")]
    _joined(path.parent, Joining(name=known[0].name[:200] if known[0] else "Ann", code="abcd"))


def _game(path: Path) -> None:
    with closing(Ongoing(path)) as game:
        for place in game._replies:
            with patch.object(recording, "_place", return_value=place), suppress(ModelError):
                reply = _loop(os.getpid()).run(game.reply("m", Said("").reply, Request(Purpose.DOCTOR, ())))
                json.dumps([reply.text, reply.differential and reply.differential.model_dump()]).encode()


def _times(path: Path) -> None:
    record = Record(scenario_id=0, status="diagnosed", diagnosis_text="Gout")
    with closing(Times(path, lambda: 2e9)) as times:
        json.dumps(times.in_record(record, "doctor"), allow_nan=False)


def _environment(path: Path) -> None:
    _dotenv.cache_clear()
    _dotenv(path)


# --- sources of new cases -------------------------------------------------------------------------------------------

FULL = "subject_id,hadm_id,seq_num,icd_code,icd_version\n900000001,900000002,1,M109,10\n"


def _gives(text: str) -> bool:
    return "gout" in text.lower()


def _note(text: str) -> None:
    story.note_story(text, _gives)
    story.note_drugs(text, _gives)
    story.complaints(text, _gives)
    story.drug_names(text.splitlines(), _gives)


def _results(text: str) -> None:
    cells: Any = [cell or None for cell in (text.split("|") + [""] * 12)[:12]]
    results.labs([results.LabRow._make((1, *cells[:3], 1.0, *cells[3:10]))])
    results.cultures([results.CultureRow(1, 2, 1.0, *cells[:7])])
    results.vitals([results.VitalRow("triage", 1.0, *cells[:7])])
    results.body([results.BodyRow(text[:20], text, 3, cells[0])])
    for version in (9, 10):
        icd.chapter(text, version)
        icd.dotted(text, version)
    icd.vague(text)


@cache
def _connection(_process: int) -> tuple[Any, Any]:
    kept = tables.opened("256MB", 1)
    return kept, kept.__enter__()


def _table(path: Path) -> None:
    source = tables.Folder(path.parent.parent)
    tables.run(
        _connection(os.getpid())[1], source, tables.DIAGNOSES, f"FROM {source.source(tables.DIAGNOSES)}"
    ).fetchall()


def _marker(path: Path) -> None:
    for table in tables.READ:
        place = path.parent / f"{table.path}.csv"
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(",".join(table.columns) + "\n", encoding="utf-8")
    data_class(path.parent)


def _generated(path: Path) -> None:
    files = Files(path)
    for other in (files.manifest, files.quarantine):
        other.write_bytes(path.read_bytes())
    files.empty_quarantine("cd")
    files.quarantined("cd")
    files.made("cd", {"model": "x"})


SOURCE = SourceCase(
    "k", "mimic", DataClass.SYNTHETIC, Truth("Acute gout", "M109", 10), 54, "Male", "walked in", "note",
    ("Toe pain for 3 days.",), ("Hypertension",), ("lisinopril",),
)  # fmt: skip


def _written(text: str) -> None:
    written = cast("WrittenStory", parse(text, WrittenStory))
    prepared = prepare(SOURCE)
    check(case_row(prepared, written, {}), prepared)


# --- what models and servers answer ---------------------------------------------------------------------------------

ADDRESS = "http://127.0.0.1:8000/v1"
HOST = faults.Host(ADDRESS, "secret-key")


def _body(api: wire.Api, data: bytes) -> None:
    """As `Endpoint._post` and `_try` read an answer."""
    body = endpoint._loads(HOST.scrub(data))
    for status in (200, 400, 404, 500):
        repr(faults.from_answer(status, body, {"retry-after": str(body)[:40]}, HOST, "m"))
    if isinstance(body, dict) and wire.error_in(body) is None:
        wire.read_usage(body)
        answer = wire.read_answer(api, body, HOST.name)
        json.dumps([answer.text, *map(vars, answer.tool_calls)], ensure_ascii=False).encode()


class Provider(endpoint.Client):
    """A provider of batches whose answers are lines: to lists and orders, about a batch, and the rest a file."""

    def __init__(self, lines: list[bytes]) -> None:
        super().__init__(ADDRESS, runtime=RuntimeSettings(tries=1), clock=Clock(sleep=_at_once))
        self._lines = [*lines, b"", b""]

    async def send(self, path: str, *_: Any, **__: Any) -> endpoint.HttpAnswer:
        """The line for this path."""
        lists, status, *file = self._lines
        content = b"\n".join(file) if path.endswith("/content") else status if path == "/batches/b" else lists
        return endpoint.HttpAnswer(200, {}, HOST.scrub(content))


async def _at_once(_seconds: float) -> None:
    return


async def _batch(lines: list[bytes]) -> None:
    """Find the batch of a killed command, look at it once, and read its answers."""
    path = folder() / "judge.batch.json"
    part = batch.Part(token="t", requests={"unit": "id"}, file_id="f")
    path.write_text(
        batch.Note(model="m", host=HOST.name, api="responses", parts=[part]).model_dump_json(), encoding="utf-8"
    )
    asked = endpoint.Endpoint("m", Provider(lines))
    batches = batch.Batches(path, asked, Purpose.MODERATOR)
    said: list[str] = []
    shown: list[int] = []
    await batches.submit({}, said.append)
    if await batches.wait(shown.append, said.append, once=True):
        for answer in (await batches.answers()).values():
            with suppress(ModelError):
                used = batch.FromBatch(answer, asked, lambda: "")
                wire.read_answer(
                    "responses", endpoint.body_of(await used.send("", None, Purpose.MODERATOR), HOST, "m"), ""
                )
        await batches.finish(said.append)
    assert all(0 <= done <= 1 for done in shown), "there is one request"
    "\n".join([*said, str(batches.reason)]).encode()


def _embedding(data: bytes) -> None:
    body = endpoint._loads(data)
    if isinstance(body, dict):
        answer = wire.read_embeddings(body, HOST.name)
        _loop(os.getpid()).run(retrieval.embed(Said(answer.text), ["a", "b"]))


def _clinic(said: Said, **ways: Any) -> Clinic:
    patient = Patient(CASE, said, PROMPTS["patient"], **ways)
    return Clinic(CASE, patient, Laboratory(CASE, said, PROMPTS["measurement"], **ways), PROMPTS["doctor"])


def _assignment(said: Said, **ways: Any) -> Assignment:
    return Assignment(CASE.door, said, PROMPTS, 2, **ways)


def _plain(said: Said, **ways: Any) -> PlainDoctor:
    return PlainDoctor(_assignment(said, **ways))


async def _encounter(said: Said) -> None:
    """The same words from doctor, patient and laboratory, in one of the two forms of the dialogue."""
    dialogue = said.one_of("chat", "transcript")
    await encounter(Seat(_clinic(said, dialogue=dialogue), 2), _plain(said, dialogue=dialogue))


async def _planner(said: Said) -> None:
    doctor = _plain(said, dialogue="chat")
    engine = DifferentialDiagnosisEngine(_assignment(said, dialogue="chat"), POLICY)
    await PolicyDoctor(doctor, engine, inline=said.one_of(doctor, None)).act(Observation(Incoming("", "Begin.")))


async def _uncertainty(said: Said) -> None:
    store = SessionStore(folder() / "sessions", of_run=True)
    doctor = UncertaintyDoctor(_assignment(said, dialogue="chat"), AGENT, said, store, "fuzz")
    doctor.structured = said.one_of(False, True)
    await doctor.act(Observation(Incoming("Patient", "My toe hurts."), turn=2, last=said.one_of(False, True, False)))


async def _simulated(said: Said) -> None:
    clinic = copy.deepcopy(_simulators(os.getpid(), said.one_of("grounded", "voiced")))
    assert isinstance(clinic.patient, Patient)
    assert isinstance(clinic.laboratory, Laboratory)
    clinic.patient.model = clinic.laboratory.model = said
    await clinic.patient.answer("Any fever?")
    await clinic.laboratory.report("Uric acid", "REQUEST TEST: Uric acid")


@cache
def _simulators(_process: int, simulator: str) -> Clinic:
    """Roles with the shape of their choices, which takes longer to make than a reply to read."""
    clinic = _clinic(Said(""), simulator=simulator)
    assert isinstance(clinic.patient, Patient)
    assert isinstance(clinic.laboratory, Laboratory)
    _ = clinic.patient._shape, clinic.laboratory._shape
    return clinic


async def _judged(said: Said) -> None:
    asked = payloads.JudgePayload("Gout", "Acute gout", CASE.answer_key)
    for mode in ("model", "original"):
        with suppress(MalformedError):
            await Judge(said, PROMPTS["moderator"], mode).judge(asked)


async def _asked(said: Said) -> None:
    doctor = _plain(said)
    await synthesise(said, PROMPTS["synthesis"], ["toe pain"], "Gout")
    await elicit(doctor, (), "Gout", turn=2)
    found = [retrieval.Found(Experience(observation="a", suggestion="b"), 1.0)] * 3
    with suppress(MalformedError):
        await retrieval.Picker(said, PROMPTS["memory"]).pick("toe pain", found)
    with suppress(InvalidReplyError):
        reviewer.findings_of(cast("reviewer.Review", parse(said._text, reviewer.review_of(3))), Item())


class Item:
    """A reply to audit."""

    reply = AuditedReply("patient", "Any fever?", "No.")
    case = CASE


async def _learned(said: Said) -> None:
    record = Record(scenario_id=0, status="diagnosed", diagnosis_text="Cellulitis")
    judge = Judge(Said("No"), PROMPTS["moderator"], "model")
    only_new(await learn_from(record, CASE, said, PROMPTS["learner"], judge), Known())


def _builtin(text: str) -> None:
    roles.judge(payloads.JudgePayload(text, "Acute gout", CASE.answer_key, "Toe pain."))


def _diagnosis(text: str) -> None:
    roles.judge(payloads.JudgePayload("Gout", text, AnswerKey((text,), (text,), ((text, text),)), text))


def _question(text: str) -> None:
    roles.answer(payloads.PatientPayload(CASE.door, CASE.patient_facts, text, (), "deny", caregiver=False))


def _order(text: str) -> None:
    roles.report(payloads.LaboratoryPayload(CASE.exam_facts, text, "normal"))


def _heard(text: str) -> None:
    told = (Exchange("question", "Any fever?", text), Exchange("test", text, text))
    gather(CASE.door, told)
    exact_findings(AuditedReply("patient", text, text, (Item.reply,)), CASE)


# --- command lines --------------------------------------------------------------------------------------------------


UsageError: type[Exception] = typer.BadParameter.__mro__[2]
"""Of Typer's own copy of Click, which has no public name for it."""


@cache
def _commands() -> Any:
    return get_command(app)


def _arguments(text: str) -> None:
    """Parse a command line as far as the settings, without running the command."""
    given = normalized([encodable(word) for word in text.split("\n")])
    command = _commands()
    context = command.context_class(command, info_name="agentclinic")
    with suppress(typer.Exit):
        while hasattr(command, "resolve_command"):
            name, command, given = command.resolve_command(context, given or ["--help"])
        command.make_context(name, given, parent=context)


def _image(path: Path) -> None:
    """As the content of an image, and as its address."""
    with suppress(InputError):
        image_url(str(path))
    image_url(path.read_text("utf-8", "replace"))


# --- the table ------------------------------------------------------------------------------------------------------

POLICY = load_policy().file
AGENT = load_agent().settings


@cache
def _written_by_us() -> Mapping[str, bytes]:
    """The files of a small builtin run: judged again, learned from, recorded."""
    with tempfile.TemporaryDirectory() as place:
        return _files_of_a_run(Path(place))


def _files_of_a_run(place: Path) -> Mapping[str, bytes]:
    (place / "cases.jsonl").write_bytes(_json({**OSCE, **ANNOTATIONS}))
    run = ["--dataset", str(place / "cases.jsonl"), "--total-inferences", "2", "--output-dir", str(place / "runs")]
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        command_line(["run", *run, "--quiet", "--doctor", "uncertainty", "--record", str(place / "recording.jsonl")])
        (made,) = (place / "runs").iterdir()
        command_line(["regrade", str(made), "--quiet", "--name", "fuzz"])
        command_line(["learn", str(made), "--all", "--quiet", "-o", str(place / "experiences.jsonl")])
    (session,) = (made / "diagnosis_sessions").glob("*.json")
    write_split(place / "split.json", make_split(load_cases("OpenOSCE_Demo")[:4], 0))
    record = json.loads((made / "scenarios.jsonl").read_text(encoding="utf-8"))
    turns = [{**turn, "text": turn["text"][:60], "details": None} for turn in record["transcript"][:3]]
    small = {key: value for key, value in record.items() if value not in (None, "") and key != "doctor_hist"} | {
        "transcript": turns
    }
    (made / "scenarios.jsonl").write_bytes(_json({key: value for key, value in small.items() if key != "checksum"}))
    files = {
        path.name: path.read_bytes()
        for path in (*place.glob("*.json*"), *made.glob("*.json*"), made / "judgements" / "fuzz.jsonl")
    }
    return {**files, "session": session.read_bytes().replace(session.stem.encode(), b"session")}


def _in_run(name: str, read: Callable[[Path], object]) -> Callable[[bytes], object]:
    """A parser of one file of a run, beside its other files."""

    def parser(data: bytes) -> object:
        place = folder() / f"run-{name.replace('/', '-')}"
        if not place.exists():
            place.mkdir()
            for other in ("config.used.json", "scenarios.jsonl", "cases.jsonl"):
                (place / other).write_bytes(_written_by_us()[other])
        return in_file(f"{place.name}/{name}", read)(data)

    return parser


def shipped_prompt(name: str) -> bytes:
    """A prompt file as we ship it."""
    return (SHIPPED / f"{name}.json").read_bytes()


def parsers() -> dict[str, Parser]:
    """Every parser, by name."""
    ours = _written_by_us()
    record = json.loads(ours["scenarios.jsonl"])
    result = {
        "scenario_id": 0, "problem_info": OSCE, "correct_diagnosis": "Gout", "model_diagnosis": "DIAGNOSIS READY: Gout",
        "dialogue_history": ["Doctor: Any fever?", "Patient: No."], "correct": True, "dataset": "MedQA",
        "token_usage": {"doctor": {"total_tokens": 5, "prompt_tokens": 3, "completion_tokens": 2}},
    }  # fmt: skip
    older = {key: value for key, value in record.items() if key != "transcript"}
    older |= {"patient_hist": "Doctor: a\n\nPatient: b\n\n", "measurement_hist": "Doctor: a\n\nPatient: b\n\n"}
    judged = {key: value for key, value in json.loads(ours["fuzz.jsonl"]).items() if key != "checksum"}
    call = {"name": "f", "arguments": "{}"}
    chat = {"choices": [{"message": {"content": "Yes", "tool_calls": [{"id": "1", "function": call}]},
            "finish_reason": "stop"}], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}  # fmt: skip
    responses = {"output": [{"type": "message", "content": [{"type": "output_text", "text": "Yes"}]},
                 {"type": "function_call", "call_id": "1", **call}], "status": "completed",
                 "usage": {"input_tokens": 1, "input_tokens_details": {"cached_tokens": 0}}}  # fmt: skip
    error = {
        "error": {"message": "too many tokens", "type": "invalid_request_error", "code": "x", "param": "text.format"}
    }
    finding = {"finding": "red toe", "weight": 5, "expected": "present", "observed": "present"}
    plan = {"hypotheses": [{"diagnosis": name, "findings": [finding] * 4} for name in ("Gout", "Cellulitis")],
            "discriminators": [{"request": "REQUEST TEST: Uric acid", "tells_apart": ["Gout"]}],
            "utterance": "Any fever?"}  # fmt: skip
    doubts = [
        {"diagnosis": "Gout", "probability": 0.6, "reason": "x"},
        {"diagnosis": "Cellulitis", "probability": "30 %"},
    ]
    step = {"new_information": "x", "current_uncertainties": doubts, "next_step_action": "REQUEST TEST: Uric acid"}
    review = {"told": [1], "contradicted": [], "omitted": [2], "unasked": [3], "invented": ["x"], "diseases": ["gout"],
              "contradicts_earlier": []}  # fmt: skip
    sure = {"hypotheses": [{"diagnosis": "Gout", "probability": 0.5}]}
    experience = {"observation": "A red toe.", "suggestion": "Order uric acid.", "kind": "test", "what": "Uric acid"}
    learned = {"experiences": [experience]}
    told = {"objective": "Assess toe pain.", "history": "Toe pain for 3 days.", "primary_symptom": "Toe pain",
            "secondary_symptoms": ["Swelling"], "past_medical_history": "Hypertension", "medications": "lisinopril",
            "social_history": "", "family_history": "", "review_of_systems": ""}  # fmt: skip
    question = {"question": "A 54-year-old man has toe pain. What is the most likely diagnosis?", "answer": "Gout",
                "options": {"A": "Gout", "B": "Lupus"}, "answer_idx": "A"}  # fmt: skip
    generated = {**MIMIC, "digest": "cd", "made_with": {"model": "x"}, "draft": {}}
    root = Path(__file__).parents[1]
    words = tuple(text.encode() for text in (
        "DIAGNOSIS READY: Acute gout of the left big toe, probably due to hypertension (60 %)", "REQUEST TEST: CBC, CT",
        "Do you have a fever, or any pain in your toe or knee for 3 days?", "REQUEST IMAGES", "Yes. The same disease.",
        "RESULTS: Uric acid 9.1 mg/dL; temperature 37.9 °C", "No fever, but I have had chills since Monday.",
        "Gout vs. septic arthritis (or pseudogout)", "**Doctor:** Diagnosis ready: gout\nPatient: thanks"))  # fmt: skip
    policy = {"instructions": "Plan.", "constraints": {"prefer_low_cost_first": True, "finish_early_if_confident": 0.7},
              "categories": {"imaging": {"description": "x", "typical_tests": ["X-ray"], "cost_level": "mixed"}},
              "transitions": [{"from": "imaging", "to": ["imaging"], "conditions": "x"}], "synonyms": {"film": "X-ray"},
              "differential_settings": {"max_differentials": 5}}  # fmt: skip
    note = batch.Note(model="m", host="h", api="chat", parts=[batch.Part(token="t", requests={"u": "i"}, file_id="f")])
    finished = {"key": "u", "settled": True, "result": json.dumps(record)}
    sweep = {"name": "s", "run": {"num_scenarios": 1}, "matrix": {"doctor": ["plain", "uncertainty"], "seed": [0, 1]}}
    noted = {**OSCE, **ANNOTATIONS}
    refused = {
        "unit": "u",
        "key": "k",
        "n": 0,
        "request": {"purpose": "doctor"},
        "error": {"kind": "auth", "message": ""},
    }
    players = [{"player": "ann", "name": "Ann", "code": by_hash("abcd"), "experience": {"training": "resident"}},
               {"player": "ann", "session": by_hash("s")}]  # fmt: skip
    reply = {"unit": "u", "key": "k", "n": 0, "model": "human:ann", "request": {"purpose": "doctor"},
             "reply": {"text": "Fever?", "differential": {"source": "stated", "hypotheses": [
                 {"diagnosis": "Gout", "probability": 0.5}]}}}  # fmt: skip
    label = {"scenario_id": 0, "correct": True, "diagnosis": "Gout", "labeler": "ann", "relation": "same",
             "drawn_by": ["recorded"], "stratum": "judged right", "stratum_size": 3}  # fmt: skip
    sides = [{"diagnosis": "Gout", "probability": 0.4}, {"diagnosis": "Flu", "probability": 0.9}]
    move = {"turn": 2, "kind": "diagnosis", "text": "Acute gout", "differential": sides, "confidence": 0.7}
    joining = {"name": "Ann B.", "code": "abcd-efgh", "experience": {"training": "student", "specialty": "GP"}}
    vectors = {"data": [{"index": 1, "embedding": [0.1, 2]}, {"index": 0, "embedding": [1, 2]}]}
    agents = {"agents": {UNCERTAINTY: {"system_prompt": "x"}}}
    config, llm = ((root / name).read_bytes() for name in ("agentclinic.config.json", "llm.config.json"))
    # fmt: off
    files: dict[str, tuple[str, Callable[[Path], object], tuple[bytes, ...]]] = {
        "case file, OSCE": ("cases.jsonl", _cases, (_json(OSCE), _json(noted, OSCE))),
        "case file, NEJM": ("nejm.jsonl", _cases, (_json(NEJM), _json(NEJM, {**NEJM, "image_url": "a.png"}))),
        "case file, MIMIC-IV": ("mimic.jsonl", partial(_cases, name="MIMICIV"), (_json(MIMIC),)),
        "data check": ("check.jsonl", _data_check, (_json(noted),)),
        "agentclinic.config.json": ("agentclinic.config.json", _settings, (config, ours["config.used.json"])),
        "llm.config.json": ("llm.config.json", load_llm_file, (llm,)),
        "gen.config.json": ("gen.config.json", _generation, (GenFile().model_dump_json().encode(),)),
        "agent_config.yaml": ("agent.yaml", load_agent, (AGENTS.encode(), _json(agents))),
        "prompt files": ("prompts/any.json", _prompts, tuple(map(shipped_prompt, ROLES))),
        "test_policy.json": ("policy/test_policy.json", lambda path: load_policy("test_policy", path.parent),
                             (shipped_prompt("test_policy"), _json(policy))),
        "sweep file": ("sweep.json", lambda path: read_sweep(path, Settings()), (_json(sweep),)),
        ".env": (".env", _environment, (b"OPENAI_API_KEY=x\nexport A='b'\n",)),
        "scenarios.jsonl": ("journal/records.jsonl", _journal,
                            (ours["scenarios.jsonl"], _json(older), sealed(record) + b"\n")),
        "results of the original": ("results.jsonl", _results_of_the_original, (_json(result),)),
        "run: shards": ("sharded/shards/scenarios/one.jsonl", _shard,
                        (sealed(finished) + b"\n", ours["scenarios.jsonl"])),
        "batch: note": ("judge.batch.json", batch.read_note, (note.model_dump_json().encode(),)),
        "run: reviews": ("reviews.jsonl", reviewer._kept, (_json({"id": "a", "review": review}),)),
        "recording": ("recording.jsonl", _recording,
                      (ours["recording.jsonl"].splitlines(keepends=True)[0], _json(refused))),
        "experiences": ("experiences.jsonl", _store, (ours["experiences.jsonl"],)),
        "embeddings, kept": ("kept.npz", lambda path: retrieval._read_vectors(path, "m"), (_vectors(),)),
        "split": ("split.json", _split, (ours["split.json"],)),
        "players.jsonl": ("players/players.jsonl", _players, (_json(*players),)),
        "game: recording": ("games/1.jsonl", _game, (_json(reply),)),
        "game: times": ("games/1.times", _times, (_json({"turn": 1, "shown": 1e9}, {"turn": 1, "answered": 1e9 + 5}),)),
        "folder of the original": ("original/any.config.json", lambda path: check_folder(path.parent), (config, llm)),
        "questions, .json": ("q.json", select_questions, (json.dumps([question]).encode(), _json(question))),
        "questions, .jsonl": ("q.jsonl", select_questions, (_json(question, {**question, "options": [{"key": "A"}]}),)),
        "questions, .arrow": ("q.arrow", select_questions, (_arrow(question),)),
        "MIMIC-IV table, .csv": ("mimic/hosp/diagnoses_icd.csv", _table, (FULL.encode(),)),
        "MIMIC-IV table, .csv.gz": ("packed/hosp/diagnoses_icd.csv.gz", _table, (gzip.compress(FULL.encode()),)),
        "MIMIC-IV marker": ("marked/INVENTED.json", _marker, (_json({"tables": {"hosp/patients": "ab"}}),)),
        "generated files": ("out.jsonl", _generated, (_json(generated),)),
        "salt": ("salt", load_salt, (b"0123456789abcdef\n",)),
        "images": ("image", _image, (b"\x89PNG\r\n\x1a\n", b"RIFF0000WEBP", b"file:///x%20y")),
    }
    in_runs: dict[str, tuple[str, Callable[[Path], object], tuple[bytes, ...]]] = {
        "run: cases.jsonl": ("cases.jsonl", _run, (ours["cases.jsonl"],)),
        "run: config.used.json": ("config.used.json", _used, (ours["config.used.json"],)),
        "run: summary.json": ("summary.json", lambda path: list_runs(path.parent), (ours["summary.json"],)),
        "run: labels": ("labels/ann.jsonl", _labels, (_json(label, {**label, "undone": True}, label),)),
        "run: judgements": ("judgements/fuzz.jsonl", _judgements, (ours["fuzz.jsonl"], _json(judged))),
    }
    replies: dict[str, tuple[Callable[[Said], Coroutine[Any, Any, object]], tuple[bytes, ...]]] = {
        "utterances": (_encounter, words),
        "planner's replies": (_planner, (_json(plan),)),
        "tool calls": (_uncertainty, (_json(step), _json({"name": "diagnosis_step", "arguments": step}))),
        "patient's and laboratory's choices": (_simulated, (
            _json({"facts": ["f1", "f2"], "kind": "answer", "reply": "My toe hurts."}),
            _json({"items": ["r1"], "not_in_chart": ["CBC"]}), *words)),
        "judge's replies": (_judged, (b"Yes", b"**No.** Different.", _json({"relation": "same", "reason": "x"}))),
        "synthesis, confidence, picks, reviews": (_asked, (*map(_json, (review, sure, {"numbers": [1]})), *words)),
        "learner's replies": (_learned, (_json(learned),)),
    }
    texts: dict[str, tuple[Callable[[str], object], tuple[bytes, ...]]] = {
        "MIMIC-IV notes": (_note, (NOTE.encode(), b"chest pain, SOB; transfer")),
        "MIMIC-IV rows": (_results, (b"Lactate|Blood|Gas|1.2|1.2|mmol/L|0.5|2|abnormal|NEG.", b"98|80", b"M109")),
        "diagnosis, builtin judge": (_builtin, words),
        "answer key, builtin judge": (_diagnosis, words),
        "question, builtin patient": (_question, words),
        "order, builtin laboratory": (_order, words),
        "replies, builtin doctor and audit": (_heard, words),
        "--scenarios": (lambda text: parse_rows(text, 500), (b"3,7,10-20",)),
        "writer's replies": (_written, (_json(told),)),
        "command line": (_arguments, (b"run\n--doctor_llm\nbuiltin\n--num_scenarios=3", b"score\nruns/x\n--json",
                                      b"--agent_dataset\nMedQA", b"generate\nmimic\n--limit\n3")),
    }
    # fmt: on
    raised = (InputError, InvalidReplyError, UsageError)
    listed = {"data": [{"id": "a"}, {"id": "b", "metadata": {"agentclinic": "t"}}], "has_more": False}
    over = {"id": "b", "status": "completed", "output_file_id": "o", "error_file_id": "e", "errors": {"data": [
            {"message": "x"}]}, "request_counts": {"completed": 1, "failed": 0, "total": 1}}  # fmt: skip
    answered = {"custom_id": "id", "response": {"status_code": 200, "body": responses}, "error": None}
    unanswered = {"custom_id": "id", "response": None, "error": {"message": "expired"}}
    found = {
        **{name: Parser(in_file(file, read), seeds) for name, (file, read, seeds) in files.items()},
        **{name: Parser(_in_run(file, read), seeds) for name, (file, read, seeds) in in_runs.items()},
        "run: sessions": Parser(in_file("kept/session.json", _session), (ours["session"],), (SessionError,)),
        "browser: moves": Parser(_move, (_json(move), *(_json({**move, "kind": k}) for k in ("question", "test")))),
        "browser: joining": Parser(_joining, (_json(joining), _json({"name": "Ben"}))),
        "chat completions": Parser(partial(_body, "chat"), (_json(chat), _json(error)), (ModelError,)),
        "Responses API": Parser(partial(_body, "responses"), (_json(responses), _json(error)), (ModelError,)),
        "batch: answers": Parser(
            lambda data: _loop(os.getpid()).run(_batch(data.split(b"\n"))),
            tuple(_json(listed, over, each) for each in (answered, unanswered)),
            (ModelError, InputError),
        ),
        "embeddings": Parser(_embedding, (_json(vectors),), (ModelError,)),
        **{name: Parser(by_model(ask), seeds, (ModelError,)) for name, (ask, seeds) in replies.items()},
        **{
            name: Parser(of_text(read), seeds, raised, 4_600 if seeds[0].startswith(b"{") else 1_000)
            for name, (read, seeds) in texts.items()
        },
    }
    return {name: found[name]._replace(slow=name in SLOW) for name in sorted(found)}


SLOW = {
    "agent_config.yaml", "agentclinic.config.json", "case file, MIMIC-IV", "case file, OSCE", "data check",
    "patient's and laboratory's choices", "planner's replies", "prompt files", "question, builtin patient",
    "replies, builtin doctor and audit", "run: cases.jsonl", "run: config.used.json", "run: labels", "run: sessions",
    "run: summary.json", "scenarios.jsonl", "tool calls",
}  # fmt: skip
"""Parsers that take several milliseconds for an input."""


def _vectors() -> bytes:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "kept.npz")
        retrieval._write_vectors(path, "m", {"x": [1.0, 2.0]}, private=False)
        return path.read_bytes()


def _arrow(row: object) -> bytes:
    pa = import_module("pyarrow")
    table, sink = pa.Table.from_pylist([row]), pa.BufferOutputStream()
    with import_module("pyarrow.ipc").new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
