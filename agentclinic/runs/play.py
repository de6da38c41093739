"""One unit from start to record: build the roles, run the encounter, judge it, count what each role spends."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from agentclinic.cases.facts import chart_text
from agentclinic.cases.model import Case, as_text
from agentclinic.clinic.desk import EXACT, Desk, by_name
from agentclinic.clinic.doctor import Assignment, Doctor, Speaker
from agentclinic.clinic.encounter import Clinic, Seat, Transcript, encounter
from agentclinic.clinic.judge import Judge
from agentclinic.clinic.laboratory import Laboratory
from agentclinic.clinic.patient import Patient, Simulator
from agentclinic.clinic.payloads import JudgePayload, PatientTraits, SilentSymptom
from agentclinic.config import ROLES, is_at_endpoint
from agentclinic.doctors.plain import PlainDoctor, elicit
from agentclinic.doctors.reference import REFERENCES, CommittingDoctor, chart_exchanges, without_tests
from agentclinic.doctors.solvable import WorldDoctor
from agentclinic.doctors.uncertainty.store import SessionStore, current_store, use_store
from agentclinic.models.base import Model, ModelError, Reply, Request, reads_prompts
from agentclinic.models.recording import enter_unit
from agentclinic.results.record import Fault, Record, Status, Verdict
from agentclinic.results.turn import NOTHING_ASKED, Usage
from agentclinic.results.utterance import DIAGNOSIS_READY
from agentclinic.runs.build import Models, current
from agentclinic.runs.human import Tape
from agentclinic.runs.limits import Prices, limits_of
from agentclinic.runs.plan import PLAIN, Plan, Unit
from agentclinic.scoring.orders import economics
from agentclinic.scoring.regret import regret_of

METERED = (*ROLES, "planner", "synthesis", "memory", "embedding")
"""Parts whose use is counted, each separately."""


class UnitModels:
    """A run's models as one unit uses them: usage is counted by role, failed requests included.

    With a `tape`, replies are kept so that a person can go back.
    """

    def __init__(self, run: Models, tape: Tape | None = None) -> None:
        self.usage: dict[str, Usage] = {}
        self.served: dict[str, set[str]] = {}
        """The models that answered for each role, by the names that their endpoints gave."""
        self._run = run
        self._tape = tape
        self._others: set[str] = set()
        self._started, self._clock = datetime.now(UTC), time.perf_counter()

    def get(self, name: str, endpoint: str | None = None) -> Model:
        """A model asked for by name: only a custom doctor does that, through `query_model`."""
        if endpoint is None and self._run.model_for("doctor").name == name:
            return self.for_role("doctor")
        self._others.add("doctor")
        return Metered(self._run.get(name, endpoint), "doctor", self.usage, self.served)

    def for_role(self, role: str) -> Model:
        model = Metered(self._run.for_role(role), role, self.usage, self.served)
        return self._tape.wrap(model, role) if self._tape else model

    def simulator(self, role: str, chosen: Simulator) -> Simulator:
        """How a role is played: the choice is for language models only, and builtin and people answer freely."""
        return chosen if self.simulates(role) else "free"

    def simulates(self, role: str) -> bool:
        """Whether a language model plays a role: not builtin, and not a person."""
        return self._run.simulates(role)

    def cost_usd(self, role: str, usage: Mapping[str, int | None]) -> float | None:
        """What a role's tokens cost; None if the role also used models of its own choice."""
        return None if role in self._others else self._run.cost_usd(role, usage)

    def timing(self, turns: Sequence[float | None]) -> dict[str, Any]:
        """When the unit began, how long it and its turns took, and which models answered."""
        timing: dict[str, Any] = {
            "started_at": self._started.isoformat(),
            "seconds": round(time.perf_counter() - self._clock, 3),
            "turns": turns,
        }
        if self.served:  # what is behind a name may change from one run to the next
            timing["models"] = {role: sorted(names) for role, names in self.served.items()}
        return timing


class Metered:
    """A model whose usage is counted for a role, and whose name is noted as its endpoint gives it."""

    def __init__(
        self, model: Model, role: str, usage: dict[str, Usage], served: dict[str, set[str]] | None = None
    ) -> None:
        self.name = model.name
        self.reads_prompts = reads_prompts(model)
        self._model = model
        self._role = role
        self._usage = usage
        self._served = served

    async def reply(self, request: Request) -> Reply:
        """Ask the model and count what the reply, or the failure, cost."""
        try:
            reply = await self._model.reply(request)
        except ModelError as error:
            if error.usage is not None:
                self._count(error.usage)
            raise
        self._count(reply.usage)
        if reply.model and self._served is not None:
            self._served.setdefault(self._role, set()).add(reply.model)
        return reply

    def _count(self, usage: Usage) -> None:
        self._usage[self._role] = self._usage[self._role] + usage if self._role in self._usage else usage


def open_unit(unit: Unit, run_models: Models, tape: Tape | None = None) -> UnitModels:
    """The models for one unit, which code called in this task also uses from now on."""
    enter_unit(unit.recording)
    models = UnitModels(run_models, tape)
    current.set(models)
    return models


def _roles(
    plan: Plan, unit: Unit, models: UnitModels, simulators: Mapping[str, Simulator], silent: SilentSymptom
) -> tuple[Patient | Desk, Laboratory | Desk]:
    """The patient and the laboratory of a unit."""
    run, prompts, roles, case = plan.settings.run, plan.prompts, plan.roles, unit.case
    if case.drawn:
        return Desk(case.drawn), Desk(case.drawn)
    patient = Patient(
        case,
        models.for_role("patient"),
        prompts["patient"],
        bias=run.patient_bias,
        traits=PatientTraits(**run.patient_traits, seed=unit.seed),
        silent_symptom=silent,
        simulator=simulators["patient"],
        dialogue=roles.dialogue["patient"],
    )
    laboratory = Laboratory(
        case if run.doctor not in REFERENCES or REFERENCES[run.doctor].tests else without_tests(case),
        models.for_role("measurement"),
        prompts["measurement"],
        missing_test=roles.missing_test or run.missing_test or "unavailable",
        simulator=simulators["measurement"],
        dialogue=roles.dialogue["measurement"],
        pending_results=bool(run.pending_results),
        limits=limits_of(run, case, plan.costs),
    )
    return patient, laboratory


class UnitSeat(Seat):
    """The doctor's seat in one unit of a run.

    The run's own doctor takes it in `play`. A program can take its place: build the seat, `observe()` and `act(...)`
    while it is not `done`, and then ask for the `record()`.
    """

    def __init__(self, plan: Plan, unit: Unit, models: UnitModels) -> None:
        run, prompts, roles, case = plan.settings.run, plan.prompts, plan.roles, unit.case
        # Without any symptoms on record, a denial would be invented.
        self._silent: SilentSymptom = run.silent_symptom if case.symptoms_on_record else "unknown"
        chosen: dict[str, Simulator] = {"patient": roles.patient, "measurement": roles.laboratory}
        self._simulators = {role: models.simulator(role, how) for role, how in chosen.items()}
        self._patient, self._laboratory = _roles(plan, unit, models, self._simulators, self._silent)
        clinic = Clinic(case, self._patient, self._laboratory, prompts["doctor"], images=run.doctor_image_request)
        # A reference doctor that commits at once has one turn: a model that asks instead is told nothing.
        at_once = run.doctor in REFERENCES and not REFERENCES[run.doctor].turns
        super().__init__(clinic, 1 if at_once else run.total_inferences, roles.dialogue["doctor"])
        self._plan, self._unit, self._models = plan, unit, models

    async def record(self, doctor: Speaker | None = None) -> Record:
        """Judge the encounter and make its record; without one of our doctors, its history is what was heard here."""
        plan, unit, models, transcript = self._plan, self._unit, self._models, self.transcript
        run, planner, case, named = plan.settings.run, plan.settings.planner, unit.case, plan.settings.models
        judge = Judge(models.for_role("moderator"), plan.prompts["moderator"], plan.roles.judge)
        verdict = await judged(transcript, case, judge)
        undecided = False if transcript.status in (Status.MAX_INFS_REACHED, Status.DOCTOR_FAILED) else None
        if doctor is None or plan.custom_doctor:
            models.usage.setdefault("doctor", Usage(requests=0))  # what it did on its own is not known
        elif isinstance(doctor, WorldDoctor):
            models.usage["doctor"] = NOTHING_ASKED
        usage = {role: dict(vars(models.usage[role])) for role in METERED if role in models.usage}
        record = Record.model_validate(
            {
                "scenario_id": case.scenario_id,
                "dataset": plan.dataset,
                "status": transcript.status.value,
                "num_turns": transcript.num_turns,
                "correct": verdict.correct if verdict else undecided,
                "ground_truth": case.diagnosis,
                "diagnosis_text": _diagnosis_text(transcript, run.preset),
                "final_doctor_dialogue": _last_words(transcript) or None,
                **{f"{role}_llm": named[role].name for role in ROLES},
                **({f"{role}_llm": EXACT for role in ROLES if role != "doctor"} if case.drawn else {}),
                "max_infs": run.total_inferences,
                "image_request_enabled": run.doctor_image_request,
                "doctor_hist": doctor.history if doctor else self.history.text,
                "patient_hist": self._patient.history.text,
                "measurement_hist": self._laboratory.history.text,
                "llm_responses_config": plan.settings.llm.responses,
                "llm_runtime_config": plan.settings.llm.runtime.model_dump(mode="json"),
                "resource_level": run.resource_level,
                "case_hash": case.id,
                "data_class": plan.data_class,
                "door": replace(case.door, terms=""),
                "repeat": unit.repeat,
                "seed": unit.seed,
                "doctor": run.doctor,
                "test_policy": planner.policy if planner else None,
                "planner_baseline": planner.baseline if planner else None,
                "policy_in_prompt": _policy_in_prompt(plan) if planner else None,
                "memory": plan.memory.label if plan.memory else None,
                "session_id": unit.session_id if plan.agent else None,
                "generation": run.generation or None,
                "doctor_bias": run.doctor_bias,
                "patient_bias": run.patient_bias,
                "patient_traits": run.patient_traits or None,
                "traits_controlled": _controls_traits(self._patient, run.patient_traits),
                "unsupported_bias": dict(plan.unsupported_bias) or None,
                "simulator": None if case.drawn else self._simulators,
                "dialogue": plan.roles.dialogue["doctor"],
                "missing_test": plan.roles.missing_test,
                "pending_results": run.pending_results,
                "silent_symptom": self._silent if plan.roles.silent_symptom else None,
                "fault": transcript.fault,
                "judgement": verdict,
                "differential": transcript.differential,
                "transcript": transcript.turns,
                "usage": usage,
                "cost_usd": {role: models.cost_usd(role, used) for role, used in usage.items()},
                "annotations": dict(case.annotations),
                "timing": models.timing(transcript.seconds),
            }
        )
        world = case.drawn.world if case.drawn else None
        # What a record says about itself.
        record.price_table = None if world else Prices(run, case, plan.costs).used_in(record)
        record.test_economics_log, record.test_economics_totals = economics(record, world)
        record.regret = regret_of(case.drawn, record) if case.drawn else None
        return record


def _controls_traits(patient: Patient | Desk, traits: Mapping[str, int]) -> bool | None:
    return patient.controls_traits if traits and isinstance(patient, Patient) else None


async def play(plan: Plan, unit: Unit, run_models: Models, sessions: SessionStore | None = None) -> Record:
    """Play one unit and return its record; every failure of a model is in it."""
    tape = Tape() if plan.people and plan.custom_doctor is None else None
    models = open_unit(unit, run_models, tape)
    if sessions:
        use_store(sessions)

    async def once() -> tuple[UnitSeat, Speaker]:
        seat = UnitSeat(plan, unit, models)
        return seat, await _encounter(plan, unit, models, seat)

    seat, doctor = await (tape.play(once) if tape else once())
    return await seat.record(doctor)


async def _encounter(plan: Plan, unit: Unit, models: UnitModels, seat: Seat) -> Speaker:
    """Let the run's doctor act from the seat, with its memory and its planner, if it has them."""
    run, planner, memory, case = plan.settings.run, plan.settings.planner, plan.settings.memory, unit.case
    committing = plan.roles.dialogue["doctor"] == "chat" and run.preset != "original"
    assignment = Assignment(
        case.door,
        models.for_role("doctor"),
        plan.prompts,
        limit=run.total_inferences,
        bias=run.doctor_bias,
        images=run.doctor_image_request,
        dialogue=plan.roles.dialogue["doctor"],
        clarify=committing and models.simulates("synthesis" if plan.agent else "doctor"),
        policy=_policy_text(plan),
    )
    speaker = _speaker(plan, unit, models, assignment)
    doctor: Doctor = speaker
    if planner and plan.policy:
        from agentclinic.doctors.planner.engine import DifferentialDiagnosisEngine, PolicyDoctor
        from agentclinic.doctors.planner.prompting import Baseline

        inline = speaker if planner.inline and isinstance(speaker, PlainDoctor) else None
        baseline = None
        if planner.baseline == "full":
            script = chart_exchanges(replace(case, facts=case.patient_facts))
            baseline = Baseline("full", as_text(case.patient), script)
        planning = assignment if inline else replace(assignment, model=models.for_role("planner"))
        rules = not _rules_in_prompt(plan)
        engine = DifferentialDiagnosisEngine(planning, plan.policy.file, baseline, rules=rules)
        doctor = PolicyDoctor(speaker, engine, inline=inline)
    if memory and plan.memory:
        from agentclinic.memory.retrieval import CaseMemory, Picker, RememberingDoctor

        prompt = plan.prompts["memory"]
        index = plan.memory.by_meaning(models.for_role("embedding")) if memory.embedding else None
        picker = Picker(models.for_role("memory"), prompt) if memory.picker else None
        doctor = RememberingDoctor(doctor, CaseMemory(plan.memory, case, index, picker, seed=unit.seed), prompt)
    seconds = plan.settings.llm.runtime.encounter_timeout
    said = await encounter(seat, doctor, seconds=seconds, own_time=plan.custom_doctor is not None)
    if assignment.clarify and said.status is Status.DIAGNOSED and isinstance(speaker, PlainDoctor | CommittingDoctor):
        said.amend(await speaker.clarified(said.turns[-1]))
    if run.elicit_confidence and said.status is Status.DIAGNOSED and isinstance(speaker, PlainDoctor):
        said.add(await elicit(speaker, tuple(said.exchanges), said.diagnosis or "", turn=said.num_turns))
    return speaker


def _speaker(plan: Plan, unit: Unit, models: UnitModels, assignment: Assignment) -> Speaker:
    run = plan.settings.run
    if plan.agent:
        from agentclinic.doctors.uncertainty.doctor import UncertaintyDoctor

        synthesis = models.for_role("synthesis")
        return UncertaintyDoctor(assignment, plan.agent.settings, synthesis, current_store(), unit.session_id)
    if plan.custom_doctor:
        return plan.custom_doctor.make(unit.case, assignment, run.doctor_llm)
    if run.doctor in REFERENCES:
        return REFERENCES[run.doctor].make(unit.case, assignment, unit.seed)
    return PlainDoctor(assignment)


def _last_words(transcript: Transcript) -> str:
    """The doctor's last utterance; empty if it said nothing."""
    return next((turn.text for turn in reversed(transcript.turns) if turn.role == "doctor"), "")


def _policy_text(plan: Plan) -> str:
    """What the doctor's system prompt says of the policy: all of it, the planning rules, or nothing.

    Inline, the request for plan and utterance has the rules.
    """
    planner = plan.settings.planner
    if planner is None or plan.policy is None or planner.inline:
        return ""
    if plan.settings.run.policy_in_prompt and plan.settings.run.doctor in PLAIN:
        return plan.policy.file.for_doctor
    from agentclinic.doctors.planner.prompting import rules_line

    return rules_line(plan.policy.file) if _rules_in_prompt(plan) else ""


def _rules_in_prompt(plan: Plan) -> bool:
    """Whether the doctor's system prompt has the planning rules; otherwise the notes have them.

    A custom doctor has a prompt of its own, or none. In the transcript form, system prompts are as in the original.
    """
    return plan.custom_doctor is None and plan.roles.dialogue["doctor"] == "chat"


def _policy_in_prompt(plan: Plan) -> bool:
    """Whether the doctor reads the policy in its prompt: a program or a person reads none."""
    run = plan.settings.run
    return run.policy_in_prompt and run.doctor in PLAIN and is_at_endpoint(run.doctor_llm)


def _diagnosis_text(transcript: Transcript, preset: str | None) -> str | None:
    """The diagnosis; under the original's preset, the whole utterance with its token, as the original writes it."""
    words = _last_words(transcript)
    return words if preset == "original" and transcript.diagnosis and DIAGNOSIS_READY in words else transcript.diagnosis


async def judged(transcript: Transcript, case: Case, judge: Judge) -> Verdict | None:
    """Judge the diagnosis; a judge that fails makes the unit `judge_failed`, never wrong."""
    if transcript.status is not Status.DIAGNOSED:
        return None
    if case.drawn:
        return by_name(case.drawn, case.diagnosis, transcript.diagnosis or "")
    try:
        verdict = await judge.judge(
            JudgePayload(
                transcript.diagnosis or "",
                case.diagnosis,
                case.answer_key,
                chart_text(case.facts),
                _last_words(transcript),
            )
        )
    except ModelError as error:
        transcript.status = Status.JUDGE_FAILED
        transcript.fault = Fault("moderator", error.kind, str(error))
        return None
    if verdict.correct is None:
        transcript.status = Status.NOT_READABLE
    return verdict
