"""How the time to read a text grows with its length, for every function that reads text from outside.

python benchmarks/slow_text.py                  every function, every family, up to 100,000 characters; half an hour
python benchmarks/slow_text.py --only compare   the functions whose name contains a word
python benchmarks/slow_text.py --size 20000     up to another length
python benchmarks/slow_text.py --keep FILE      keep each function's result in a file, and skip those already in it

A family is one piece of text repeated, as a model stuck in a loop writes it: between words, with a different end, so
that a search that tries every way to match shows. Each family is read once at a thirtieth and at an eighth of the
length; those whose time grows fastest and the slowest are then measured up to the whole length, each length several
times, of which the quickest counts. The exponent is the slope of time over length, both as logarithms: 1 is linear, 2
is quadratic. The table shows each function with its worst family. Caches are emptied before each call.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import inspect
import json
import math
import pkgutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import _lru_cache_wrapper, cache, partial
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from agentclinic.audit.exact import exact_audit
from agentclinic.audit.model import AuditedReply
from agentclinic.builtin import doctor, planner, roles
from agentclinic.cases import facts, leaks, values
from agentclinic.cases.matcher import asked_of_measurement, asked_of_patient, orders, statements
from agentclinic.cases.model import AnswerKey, Case, Fact, Section
from agentclinic.cases.registry import load_cases
from agentclinic.clinic import findings, first_person, payloads, reply_checks
from agentclinic.doctors.planner import rules, schema, settings
from agentclinic.doctors.uncertainty import steps, synthesis, tools
from agentclinic.generate import checks, medqa, source
from agentclinic.generate.mimic import story
from agentclinic.jsonl import inert, loads
from agentclinic.lint.quality import check_quality
from agentclinic.memory import experience
from agentclinic.memory.experience import diagnosis_mark
from agentclinic.memory.retrieval import terms
from agentclinic.models import structured
from agentclinic.models.faults import Host
from agentclinic.privacy import holds_key
from agentclinic.results.original import turns_in_histories
from agentclinic.results.record import Record
from agentclinic.results.turn import Exchange
from agentclinic.results.utterance import parse_action, read_utterance
from agentclinic.scoring import information
from agentclinic.vocabulary.compare import compare
from agentclinic.vocabulary.disease_names import Names

Reader = Callable[[str], object]

ROOMS = ("audit", "cases", "clinic", "doctors", "generate", "lint", "results", "scoring", "vocabulary")
NOT_READERS = frozenset({
    "load_cases", "load_prompt", "load_session", "clear_session", "get_accumulated_notes", "get_all_new_information",
    "set_current_session", "own_words", "append_step", "table", "names_of", "bit", "original_name", "bias_label",
    "no_prices", "case_key", "closed", "error", "warning", "load_prompts", "same_site", "caregiver_voice",
})  # fmt: skip
"""Public functions of strings that take the name of something of ours, or touch files."""

PIECES = (
    " ", "\t", "\n", " \n", "x/", "x or ", "x, or ", "fever, ", "CBC, ", "(", ")", "(x) ", "[", "{", "- ", "-", "– ",
    "a", "a ", "A. ", "Ab ", "1", "1 ", "1,", "1.", "1. ", "0.5 ", "50% ", "12:", "120/80 ", "denies ", "no ", "not ",
    "nor ", "without ", "days ago ", "3 days ago ", "for 3 days ", "; ", ": ", ", ", ". ", "...", "*", "_", "\"", "'",
    "é", "ﬁ", "and ", "of ", "of the ", "the ", "CT ", "CT of the ", "x and ", "x vs ", "due to ", "due to x ",
    "likely ", "non-", "non ", "history of ", "patient ", "doctor\n", "Patient:\n", "know ", "not know ", "is ", "if ",
    "has ", "gout ", "acute gout, ", "hepatitis ", "blood pressure ", "x-ray of ", "with ", "and/or ", "one ", "two ",
    "twenty ", "year ", "test ", "request ", "diagnosis ", "was ", "pain in the ", "REQUEST TEST", "yes ", "\u2003",
)  # fmt: skip
FRAMES = (("Denies fever (", ") x?"), ("REQUEST TEST: CT", ": 1"), ("", ""))
"""What comes before and after the pieces: each piece is tried in one of these, in turn, and between words."""
DOUBLINGS = 3
"""The exponent is measured over the last doublings: for short texts, the fixed costs weigh more."""
TOO_QUICK = 0.002
"""Seconds; what takes less is measured too badly, and freezes nothing."""
TOO_SLOW = 5.0
"""Seconds after which a call is stopped and longer texts are not tried."""
AIM = 1.2
"""The largest exponent wanted: lists that no longer fit into the processor's caches already make 1.1 of linear work."""
SUSPECTS = 2
"""Families measured up to the whole length for each function: so many whose time grows fastest, and so many slowest."""
RUNS = 2
"""Calls for each length; as many again where the exponent is above the aim, because other work disturbs."""
TEXT_CACHE = 256
"""Entries; a smaller cache holds tables of ours, not texts that were read."""


class Growth(NamedTuple):
    """How the time of a function grows with the length of one family."""

    exponent: float
    seconds: float
    size: int
    family: str
    stopped: bool

    @property
    def bad(self) -> bool:
        """Whether the aim is missed."""
        return self.stopped or self.exponent > AIM


@cache
def families() -> dict[str, Callable[[int], str]]:
    """Texts of a given length, by name."""

    def repeated(piece: str, before: str, after: str, size: int) -> str:
        return before + piece * ((size - len(before) - len(after)) // len(piece)) + after

    def numbered(piece: str, size: int) -> str:
        return "".join(f"x{place}{piece}" for place in range(size // (len(piece) + 5)))

    made: dict[str, Callable[[int], str]] = {
        f"{before!r} + {piece!r} + {after!r}": partial(repeated, piece, before, after)
        for place, piece in enumerate(PIECES)
        for before, after in (("Gout ", "x"), FRAMES[place % len(FRAMES)])
    }
    return made | {f"numbered {piece!r}": partial(numbered, piece) for piece in (" ", ", ", " or ", ": ", ". ", "; ")}


def plain_readers() -> dict[str, Reader]:
    """Every public function that needs nothing but strings, once for each string it takes."""
    found: dict[str, Reader] = {}
    for room in ROOMS:
        package = importlib.import_module(f"agentclinic.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"agentclinic.{room}."):
            if module.name.startswith("agentclinic.generate.mimic.tables"):
                continue
            for name, given in vars(importlib.import_module(module.name)).items():
                function = inspect.unwrap(given) if callable(given) else given
                if name.startswith("_") or name in NOT_READERS or not inspect.isfunction(function):
                    continue
                needed = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
                plain = all(p.annotation == "str" and p.kind is p.POSITIONAL_OR_KEYWORD for p in needed)
                if function.__module__ != module.name or not needed or not plain:
                    continue
                for place, parameter in enumerate(needed):
                    label = f"{module.name.removeprefix('agentclinic.')}.{name}"
                    label += f"({parameter.name})" if len(needed) > 1 else ""
                    found[label] = partial(_given, given, place, len(needed))
    return found


def _given(function: Callable[..., object], place: int, count: int, text: str) -> object:
    arguments = ["gout"] * count
    arguments[place] = text
    return _drained(function(*arguments))


def _drained(value: object) -> object:
    return list(value) if isinstance(value, Iterator) else value


def readers() -> dict[str, Reader]:
    """Every reader, with those that need more than a string."""
    case = next(iter(load_cases("OpenOSCE")))
    policy = settings.load_policy().file
    names = Names("Gout", (), [])
    chart, exam, door = case.patient_facts, case.exam_facts, case.door
    no_gout = reply_checks.Told(words=("gout",), denied=("knee pain",), kept=(chart[0],), silent=True)
    host, note = (
        Host("http://localhost/v1", "a-secret-key"),
        "Medications on Admission:\n1. x\nHistory of Present Illness:\n",
    )

    def fact(text: str, section: Section = Section.HISTORY) -> Fact:
        return Fact("History", section, ("History",), text)

    def result(text: str) -> Fact:
        return Fact("Tests/CBC/Hemoglobin", Section.TESTS, ("CBC", "Hemoglobin"), text)

    def pressure(text: str) -> Fact:
        return replace(result(text), heads=("Blood pressure",))

    def headed(text: str) -> Fact:
        return Fact("Tests/x", Section.TESTS, (text,), "13 g/dL")

    def told(text: str) -> tuple[Exchange, ...]:
        return (Exchange("question", "Any fever?", text), Exchange("test", text, "RESULTS: normal."))

    def audited(text: str, asked: str = "Any fever or other pain?") -> AuditedReply:
        before = AuditedReply("patient", "Any fever?", "No fever. I have a cough.")
        return AuditedReply("patient", asked, text, (before, replace(before, asked=asked, text=text)))

    def measured(text: str) -> AuditedReply:
        before = AuditedReply("measurement", "CBC", text)
        return AuditedReply("measurement", text, text, (before,))

    def to_patient(question: str, given: tuple[Fact, ...]) -> payloads.PatientPayload:
        return payloads.PatientPayload(door, given, question, (), "deny", caregiver=False)

    def charted(text: str) -> Case:
        row = {"History": text, "Demographics": text}
        told_by = facts.patient_facts(row, "Patient_Actor")
        shown = facts.exam_facts(
            {"CBC": {"Hemoglobin": text}, "Vital Signs": {"Pulse": text}}, "Test_Results", Section.TESTS
        )
        return replace(
            case, facts=(*told_by, *shown), patient=row, door=replace(door, objective=text, demographics=text)
        )

    return plain_readers() | {
        "audit.exact.exact_audit(reply)": lambda t: exact_audit(audited(t), case, names),
        "audit.exact.exact_audit(asked)": lambda t: exact_audit(audited("No.", t), case, names),
        "audit.exact.exact_audit(result)": lambda t: exact_audit(measured(t), case, names),
        "builtin.doctor.act": lambda t: doctor.act(payloads.DoctorPayload(door, told(t), 3, 20, last=False)),
        "builtin.roles.judge": lambda t: roles.judge(payloads.JudgePayload(t, "Gout", AnswerKey(("Podagra",)), "Toe.")),
        "builtin.roles.judge(chart)": lambda t: roles.judge(
            payloads.JudgePayload("Acute gout of the toe with fever", "Gout", AnswerKey(), t)
        ),
        "builtin.roles.report": lambda t: roles.report(payloads.LaboratoryPayload(exam, t, "normal")),
        "builtin.roles.answer": lambda t: roles.answer(to_patient(t, chart)),
        "builtin.planner.synthesize": lambda t: planner.synthesize(synthesis.SynthesisPayload((t, "fever"))),
        "cases.facts.exam_facts": lambda t: facts.exam_facts({"CBC": {"Hemoglobin": t}}, "Tests", Section.TESTS),
        "cases.facts.patient_facts": lambda t: facts.patient_facts({"History": t}, "Patient_Actor"),
        "cases.facts.prose_facts": lambda t: facts.prose_facts(t, "patient_info", Section.HISTORY),
        "cases.facts.prose_facts(tests)": lambda t: facts.prose_facts(t, "physical_exams", Section.TESTS),
        "cases.leaks.leaks": lambda t: leaks.leaks(charted(t), names),
        "cases.leaks.names_of": lambda t: leaks.names_of(replace(case, diagnosis=t)),
        "cases.matcher.asked_of_measurement(order)": lambda t: asked_of_measurement(t, exam),
        "cases.matcher.asked_of_measurement(result)": lambda t: asked_of_measurement("Hemoglobin", (result(t),)),
        "cases.matcher.asked_of_measurement(heading)": lambda t: asked_of_measurement("Hemoglobin", (headed(t),)),
        "cases.matcher.asked_of_patient(question)": lambda t: asked_of_patient(t, chart),
        "cases.matcher.asked_of_patient(fact)": lambda t: asked_of_patient("Any fever or pain?", (fact(t),)),
        "cases.matcher.orders.charted_as": lambda t: orders.charted_as(headed(t)),
        "cases.matcher.statements.statement": lambda t: statements.statement(fact(t)),
        "cases.values.measured_in": lambda t: (values.measured_in([result(t)]), values.measured_in([headed(t)])),
        "cases.values.pressures_in": lambda t: list(values.pressures_in([pressure(t)])),
        "clinic.findings.gather": lambda t: findings.gather(door, told(t)),
        "clinic.findings.gather_facts": lambda t: findings.gather_facts([t], 40.0),
        "clinic.first_person.caregiver_voice": lambda t: first_person.caregiver_voice(t, "child", "she"),
        "clinic.first_person.own_voice": lambda t: first_person.own_voice(t, Section.HISTORY),
        "clinic.reply_checks.diseases_beyond": lambda t: reply_checks.diseases_beyond(t, ["gout"]),
        "clinic.reply_checks.problems(said)": lambda t: reply_checks.problems(t, no_gout, "Any fever?"),
        "clinic.reply_checks.problems(facts)": lambda t: reply_checks.problems(
            "Gout for 3 days.", replace(no_gout, words=(t,)), t
        ),
        "doctors.planner.rules.check_order": lambda t: rules.check_order(policy, door, t, told(t)),
        "doctors.planner.rules.named_tests": lambda t: rules.named_tests(policy, t),
        "doctors.planner.schema.read_state": schema.read_state,
        "doctors.uncertainty.steps.read_uncertainties": steps.read_uncertainties,
        "generate.checks.numbers": checks.numbers,
        "generate.medqa.split": lambda t: medqa.split([t]),
        "generate.source.problems": lambda t: list(source.problems(t, ["12345"], prose=True)),
        "generate.source.unfit": lambda t: source.unfit(t, ["12345"]),
        "lint.quality.check_quality": lambda t: check_quality(charted(t)),
        "models.structured.parse": lambda t: structured.written_call(t, ()),
        "results.actions.parse_action": lambda t: parse_action("DIAGNOSIS READY: " + t),
        "clinic.reply_checks.own_words": reply_checks.own_words,
        "doctors.uncertainty.tools.check_step": lambda t: tools.check_step(steps.NO_DOUBTS, t),
        "doctors.uncertainty.tools.salvage": lambda t: tools.salvage(
            json.dumps(dict.fromkeys(("new_information", "next_step_action"), t))
        ),
        "generate.mimic.story.note_story": lambda t: story.note_story(note + t, lambda _: False),
        "generate.mimic.story.note_drugs": lambda t: story.note_drugs(note + t, lambda _: False),
        "generate.mimic.story.complaints": lambda t: story.complaints(t, lambda _: False),
        "jsonl.loads": lambda t: loads(json.dumps([t, {t: t}])),
        "memory.experience.step_of": lambda t: (experience.step_of("test", t), experience.step_of("question", t)),
        "memory.fingerprint.diagnosis_mark": diagnosis_mark,
        "memory.retrieval.terms": terms,
        "models.faults.Host.quote": host.quote,
        "models.faults.Host.scrub": lambda t: host.scrub(t.encode() + b"\\u0020"),
        "privacy.holds_key": holds_key,
        "jsonl.inert": inert,
        "results.original.turns_in_histories": lambda t: turns_in_histories(
            Record(scenario_id=0, status="diagnosed", doctor_hist=t, patient_hist=t, measurement_hist=t)
        ),
        "results.utterance.read_utterance(earlier)": lambda t: read_utterance(t, ["x", t]),
        "results.utterance.read_utterance(diagnosis)": lambda t: read_utterance("DIAGNOSIS READY: " + t),
        "scoring.information.repeated": lambda t: information.repeated([t, t, "fever"]),
        "vocabulary.compare.compare(chart)": lambda t: compare("Acute gout of the toe with fever", "Gout", chart=t),
        "vocabulary.compare.compare(accept)": lambda t: compare("Gout", "Lupus", (t,), (t,), ((t, "no"),)),
        "vocabulary.disease_names.Names.find": lambda t: list(names.find(t, (t,), result=True)),
        "vocabulary.disease_names.Names": lambda t: Names(t, (t,), [t]),
    }  # fmt: skip


class _StoppedError(Exception):
    """A call took too long."""


def stop(_signal: int, _frame: FrameType | None) -> None:
    """End the call that is being timed."""
    raise _StoppedError


@cache
def _text_caches() -> list[Any]:
    found = [one for one in gc.get_objects() if isinstance(one, _lru_cache_wrapper)]
    return [one for one in found if (one.cache_parameters()["maxsize"] or 0) >= TEXT_CACHE]


def seconds(reader: Reader, text: str) -> float | None:
    """CPU time of one call, as for a text never read before; None if it took too long.

    The time of the thread: that of the process is kept to a few milliseconds only while a timer runs.
    """
    for one in _text_caches():
        one.cache_clear()
    gc.disable()
    started = time.thread_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, TOO_SLOW)
    try:
        reader(text)
    except _StoppedError:
        return None
    except Exception as error:  # noqa: BLE001
        _failures.setdefault(type(error).__name__, str(error)[:80])
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        taken = time.thread_time() - started
        gc.enable()
    return taken


_failures: dict[str, str] = {}
"""What readers raised, with an example: refusing a text is no freeze, but worth seeing."""


def growth(reader: Reader, family: str, sizes: Sequence[int], runs: int, quick: float = TOO_QUICK) -> Growth:
    """Read longer and longer texts of a family; a size for which a run took too long is the last."""
    made, quickest, stopped = families()[family], dict[int, float](), False
    for _ in range(runs):
        for size in sizes:
            taken = seconds(reader, made(size))
            stopped = taken is None
            quickest[size] = min(quickest.get(size, TOO_SLOW), TOO_SLOW if taken is None else taken)
            if stopped:
                break
        if stopped:
            break
    timed = [(math.log(size), math.log(taken)) for size, taken in quickest.items() if taken >= quick]
    exponent = 0.0
    if len(timed) > 1:
        middle = [sum(axis) / len(timed) for axis in zip(*timed, strict=True)]
        rise = sum((x - middle[0]) * (y - middle[1]) for x, y in timed)
        exponent = rise / sum((x - middle[0]) ** 2 for x, _ in timed)
    size = max(quickest)
    return Growth(exponent, quickest[size], size, family, stopped)


def worst(reader: Reader, largest: int) -> Growth:
    """The family with the largest exponent, or one that takes too long."""
    seen = [growth(reader, family, (largest // 32, largest // 8), 1, TOO_QUICK / 8) for family in families()]
    by_growth = sorted(seen, key=lambda one: (one.stopped, one.exponent), reverse=True)
    by_time = sorted(seen, key=lambda one: one.seconds, reverse=True)
    sizes = [largest >> halvings for halvings in range(DOUBLINGS, -1, -1)]
    found = []
    for one in dict.fromkeys(by_growth[:SUSPECTS] + by_time[:SUSPECTS]):
        full = one if one.stopped else growth(reader, one.family, sizes, RUNS)
        if full.bad and not full.stopped:
            full = min(full, growth(reader, one.family, sizes, 2 * RUNS))
        found.append(full)
        if full.stopped:
            break
    return max(found, key=lambda one: (one.stopped, one.exponent))


def quickest_first(chosen: dict[str, Reader]) -> list[tuple[str, Reader]]:
    """The readers, by the time they take for some ordinary text."""
    for reader in chosen.values():
        seconds(reader, "a first text")  # tables are loaded once
    text = "She denies fever and takes 5 mg of x (daily); BP 120/80, no gout or CT of the toe. " * 50
    return sorted(chosen.items(), key=lambda row: seconds(row[1], text) or TOO_SLOW)


def line(name: str, found: Growth) -> str:
    """A row of the table."""
    taken = f"> {found.seconds:.0f}" if found.stopped else f"{found.seconds:.3f}"
    return f"{name:52} {found.exponent:8.2f} {taken:>8} {found.size:8,}  {found.family}"


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="part of a function's name")
    parser.add_argument("--size", type=int, default=100_000, help="characters of the longest text")
    parser.add_argument("--keep", type=Path, help="file of results, to measure in several parts")
    given: Any = parser.parse_args()
    signal.signal(signal.SIGVTALRM, stop)
    kept = given.keep.read_text().splitlines() if given.keep and given.keep.exists() else ()
    table = {name: Growth(*values) for name, values in map(json.loads, kept)}
    print(f"{'function':52} {'exponent':>8} {'seconds':>8} {'at':>8}  worst family")
    table = {name: found for name, found in table.items() if given.only in name}
    for name, reader in quickest_first({name: one for name, one in readers().items() if given.only in name}):
        if name not in table:
            table[name] = worst(reader, given.size)
            if given.keep:
                with given.keep.open("a") as file:
                    file.write(json.dumps([name, table[name]]) + "\n")
        print(line(name, table[name]), flush=True)
    name, top = max(table.items(), key=lambda row: (row[1].stopped, row[1].exponent))
    print(f"raised: {_failures}" if _failures else "nothing raised")
    print(
        f"{len(table)} functions × {len(families())} families, {sum(one.bad for one in table.values())} over {AIM}; "
        f"worst exponent {top.exponent:.2f} ({name}, {top.family})"
    )


if __name__ == "__main__":
    main()
