"""One unit from start to record: build the roles, run the encounter, judge it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime

from agentclinic.cases.facts import chart_text
from agentclinic.cases.model import Case, as_text
from agentclinic.clinic.doctor import Doctor, turn_of
from agentclinic.clinic.encounter import Clinic, Transcript, encounter
from agentclinic.clinic.judge import Judge
from agentclinic.clinic.laboratory import Laboratory
from agentclinic.clinic.patient import Patient, Simulator
from agentclinic.clinic.payloads import SilentSymptom
from agentclinic.config import ROLES
from agentclinic.doctors.confidence import elicit
from agentclinic.doctors.plain import PlainDoctor
from agentclinic.doctors.planner.doctor import PolicyDoctor
from agentclinic.doctors.planner.engine import DifferentialDiagnosisEngine
from agentclinic.doctors.planner.prompting import Baseline
from agentclinic.doctors.reference import chart_exchanges, reference_doctor, without_tests
from agentclinic.doctors.uncertainty.doctor import UncertaintyDoctor
from agentclinic.doctors.uncertainty.store import SessionStore, current_store, use_store
from agentclinic.memory.doctor import RememberingDoctor
from agentclinic.memory.retrieval import CaseMemory, Picker
from agentclinic.models.base import Model, ModelError, Reply, Request
from agentclinic.models.recording import enter_unit
from agentclinic.results.record import Fault, Record, Status, Verdict
from agentclinic.results.turn import Turn, Usage
from agentclinic.runs.build import Models, current
from agentclinic.runs.plan import Plan, Unit
from agentclinic.runs.undo import Tape
from agentclinic.scoring.economics import economics

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

    def get(self, name: str, endpoint: str | None = None) -> Model:
        """A model asked for by name: only a custom doctor does that, through `query_model`."""
        if endpoint is None and self._run.plays("doctor", name):
            return self.for_role("doctor")
        self._others.add("doctor")
        return Metered(self._run.get(name, endpoint), "doctor", self.usage, self.served)

    def for_role(self, role: str) -> Model:
        """The model that plays a role in this run."""
        model = Metered(self._run.for_role(role), role, self.usage, self.served)
        return self._tape.wrap(model, role) if self._tape else model

    def simulator(self, role: str, chosen: Simulator) -> Simulator:
        """How a role is played: builtin and people answer as they do, whatever was chosen for language models."""
        return chosen if self._run.simulates(role) else "free"

    def cost_usd(self, role: str, usage: Mapping[str, int | None]) -> float | None:
        """What a role's tokens cost; None if the role also used models of its own choice."""
        return None if role in self._others else self._run.cost_usd(role, usage)


class Metered:
    """A model whose usage is counted for a role, and whose name is noted as its endpoint gives it."""

    def __init__(
        self, model: Model, role: str, usage: dict[str, Usage], served: dict[str, set[str]] | None = None
    ) -> None:
        self.name = model.name
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


@dataclass
class _Played:
    """One encounter and its participants."""

    transcript: Transcript
    doctor: Doctor
    patient: Patient
    laboratory: Laboratory


async def play(plan: Plan, unit: Unit, run_models: Models, sessions: SessionStore | None = None) -> Record:
    """Play one unit and return its record; every failure of a model is in it."""
    started = datetime.now(UTC)
    clock = time.perf_counter()
    enter_unit(unit.recording)
    tape = Tape() if plan.people and plan.custom_doctor is None else None
    models = UnitModels(run_models, tape)
    current.set(models)
    if sessions:
        use_store(sessions)
    played = await (
        tape.play(lambda: _encounter(plan, unit, models, sessions))
        if tape
        else _encounter(plan, unit, models, sessions)
    )
    transcript, relation = played.transcript, plan.settings.judge.relation
    judge = Judge(models.for_role("moderator"), plan.prompts["moderator"], relation=relation)
    verdict = await judged(transcript, unit, judge)
    if plan.custom_doctor:
        models.usage.setdefault("doctor", Usage(requests=0))  # what it did on its own is not known
    record = make_record(plan, unit, transcript, verdict)
    record.usage = {role: asdict(models.usage[role]) for role in METERED if role in models.usage}
    record.cost_usd = {role: models.cost_usd(role, used) for role, used in (record.usage or {}).items()}
    record.simulator = _simulators(plan, models)
    record.test_economics_log, record.test_economics_totals = economics(record)
    record.doctor_hist = played.doctor.history
    record.patient_hist = played.patient.history.text
    record.measurement_hist = played.laboratory.history.text
    record.timing = {"started_at": started.isoformat(), "seconds": round(time.perf_counter() - clock, 3)}
    record.timing["turns"] = transcript.seconds
    if models.served:  # what is behind a name may change from one run to the next
        record.timing["models"] = {role: sorted(names) for role, names in models.served.items()}
    return record


async def _encounter(plan: Plan, unit: Unit, models: UnitModels, sessions: SessionStore | None) -> _Played:
    """Build the roles and run the encounter."""
    run, prompts, case = plan.settings.run, plan.prompts, unit.case
    patient = Patient(
        case,
        models.for_role("patient"),
        prompts["patient"],
        bias=run.patient_bias,
        silent_symptom=_silence(plan, case),
        simulator=models.simulator("patient", plan.roles.patient),
        dialogue=plan.roles.dialogue_of("patient"),
    )
    charted = without_tests(case) if run.doctor == "history_only" else case
    laboratory = Laboratory(
        charted,
        models.for_role("measurement"),
        prompts["measurement"],
        missing_test=plan.roles.missing_test,
        simulator=models.simulator("measurement", plan.roles.laboratory),
        dialogue=plan.roles.dialogue_of("measurement"),
    )
    clinic = Clinic(case, patient, laboratory, prompts["doctor"], images=run.doctor_image_request)
    speaker = _doctor(plan, unit, models, sessions or current_store())
    doctor = _remembering(plan, unit, models, _planned(plan, unit, models, speaker))
    transcript = await encounter(
        clinic,
        doctor,
        run.total_inferences,
        seconds=plan.settings.llm.runtime.encounter_timeout,
        own_time=plan.custom_doctor is not None,
    )
    if run.elicit_confidence and transcript.status is Status.DIAGNOSED and isinstance(speaker, PlainDoctor):
        transcript.add(await _asked_how_sure(plan, unit, speaker, transcript))
    return _Played(transcript, doctor, patient, laboratory)


def _silence(plan: Plan, case: Case) -> SilentSymptom:
    """What the patient says if the chart is silent; without any symptoms on record, a denial would be invented."""
    return plan.roles.silent_symptom if case.symptoms_on_record else "unknown"


async def _asked_how_sure(plan: Plan, unit: Unit, doctor: PlainDoctor, transcript: Transcript) -> Turn:
    """The differential the doctor states when asked, as a turn that is not part of the dialogue.

    A failure is noted and does not count against the doctor.
    """
    number, said = transcript.num_turns, tuple(transcript.exchanges)
    try:
        differential, reply = await elicit(
            doctor, plan.prompts["doctor"], unit.case.door, said, transcript.diagnosis or ""
        )
    except ModelError as error:
        return Turn(turn=number, role="confidence", text="", notes=(f"confidence not stated: {error.kind}",))
    return turn_of(replace(reply, differential=differential), turn=number, role="confidence")


def _planned(plan: Plan, unit: Unit, models: UnitModels, doctor: Doctor) -> Doctor:
    """The doctor with a planner, if the run has one."""
    planner, run, case = plan.settings.planner, plan.settings.run, unit.case
    if planner is None or plan.policy is None:
        return doctor
    inline = doctor if planner.inline and isinstance(doctor, PlainDoctor) else None
    engine = DifferentialDiagnosisEngine(
        models.for_role("doctor" if inline else "planner"),
        plan.policy.file,
        case.door,
        limit=run.total_inferences,
        baseline=Baseline("full", as_text(case.patient), chart_exchanges(replace(case, facts=case.patient_facts)))
        if planner.baseline == "full"
        else None,
        bias=plan.prompts["doctor"].bias(run.doctor_bias),
        dialogue=plan.roles.dialogue_of("doctor"),
    )
    return PolicyDoctor(doctor, engine, inline=inline)


def _remembering(plan: Plan, unit: Unit, models: UnitModels, doctor: Doctor) -> Doctor:
    """The doctor with a memory, if the run has one."""
    memory = plan.settings.memory
    if memory is None or plan.memory is None:
        return doctor
    prompt = plan.prompts["memory"]
    index = plan.memory.by_meaning(models.for_role("embedding")) if memory.embedding else None
    picker = Picker(models.for_role("memory"), prompt) if memory.picker else None
    return RememberingDoctor(doctor, CaseMemory(plan.memory, unit.case, index, picker, seed=unit.seed), prompt)


def _doctor(plan: Plan, unit: Unit, models: UnitModels, sessions: SessionStore) -> Doctor:
    run, case = plan.settings.run, unit.case
    if plan.agent:
        return UncertaintyDoctor(
            case.door,
            models.for_role("doctor"),
            models.for_role("synthesis"),
            plan.agent.settings,
            plan.prompts,
            limit=run.total_inferences,
            store=sessions,
            session_id=unit.session_id,
            bias=run.doctor_bias,
            images=run.doctor_image_request,
            dialogue=plan.roles.dialogue_of("doctor"),
        )
    if plan.custom_doctor:
        return plan.custom_doctor.make(
            case,
            backend=run.doctor_llm,
            limit=run.total_inferences,
            bias=run.doctor_bias,
            images=run.doctor_image_request,
            dialogue=plan.roles.dialogue_of("doctor"),
        )
    if run.doctor != "plain":
        return reference_doctor(
            run.doctor,
            case,
            models.for_role("doctor"),
            plan.prompts["doctor"],
            limit=run.total_inferences,
            bias=run.doctor_bias,
            images=run.doctor_image_request,
            seed=unit.seed,
            dialogue=plan.roles.dialogue_of("doctor"),
        )
    return PlainDoctor(
        case.door,
        models.for_role("doctor"),
        plan.prompts["doctor"],
        limit=run.total_inferences,
        bias=run.doctor_bias,
        images=run.doctor_image_request,
        dialogue=plan.roles.dialogue_of("doctor"),
    )


async def judged(transcript: Transcript, unit: Unit, judge: Judge) -> Verdict | None:
    """Judge the diagnosis; a judge that fails makes the unit `judge_failed`, never wrong."""
    if transcript.status is not Status.DIAGNOSED:
        return None
    try:
        return await judge.judge(
            transcript.diagnosis or "", unit.case.diagnosis, unit.case.answer_key, chart_text(unit.case.facts)
        )
    except ModelError as error:
        transcript.status = Status.JUDGE_FAILED
        transcript.fault = Fault("moderator", error.kind, str(error))
        return None


def _simulators(plan: Plan, models: UnitModels) -> dict[str, str]:
    """How patient and laboratory were played, for the record: free text also stands for builtin and people."""
    chosen: dict[str, Simulator] = {"patient": plan.roles.patient, "measurement": plan.roles.laboratory}
    return {role: models.simulator(role, how) for role, how in chosen.items()}


def make_record(plan: Plan, unit: Unit, transcript: Transcript, verdict: Verdict | None) -> Record:
    """The record of an encounter, without the histories, what it cost and the time it took."""
    run, planner, case = plan.settings.run, plan.settings.planner, unit.case
    right = {Status.MAX_INFS_REACHED: False, Status.DOCTOR_FAILED: False}.get(transcript.status)
    said = [turn.text for turn in transcript.turns if turn.role == "doctor"]
    return Record.model_validate(
        {
            "scenario_id": case.scenario_id,
            "dataset": plan.dataset,
            "status": transcript.status.value,
            "num_turns": transcript.num_turns,
            "correct": verdict.correct if verdict else right,
            "ground_truth": case.diagnosis,
            "diagnosis_text": transcript.diagnosis,
            "final_doctor_dialogue": said[-1] if said else None,
            **{f"{role}_llm": plan.settings.models[role].name for role in ROLES},
            "max_infs": run.total_inferences,
            "image_request_enabled": run.doctor_image_request,
            "llm_responses_config": plan.settings.llm.responses,
            "llm_runtime_config": plan.settings.llm.runtime.model_dump(mode="json"),
            "resource_level": run.resource_level,
            "case_hash": case.id,
            "data_class": plan.data_class,
            "door": case.door,
            "repeat": unit.repeat,
            "seed": unit.seed,
            "doctor": run.doctor,
            "test_policy": planner.policy if planner else None,
            "planner_baseline": planner.baseline if planner else None,
            "session_id": unit.session_id if plan.agent else None,
            "memory": plan.memory.label if plan.memory else None,
            "doctor_bias": run.doctor_bias,
            "patient_bias": run.patient_bias,
            "unsupported_bias": dict(plan.unsupported_bias) or None,
            "dialogue": plan.roles.dialogue_of("doctor"),
            "missing_test": plan.roles.missing_test,
            "silent_symptom": _silence(plan, case),
            "fault": transcript.fault,
            "judgement": verdict,
            "differential": transcript.differential,
            "transcript": transcript.turns,
            "annotations": dict(case.annotations),
        }
    )
