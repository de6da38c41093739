"""The record of one scenario: a line of `scenarios.jsonl`, all that scoring and reports need."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from agentclinic.privacy import DataClass
from agentclinic.results.differential import Differential


class FaultRecord(BaseModel):
    """Who failed, and how."""

    role: str
    error: str
    message: str = ""


class JudgementRecord(BaseModel):
    """What the judge said."""

    relation: str | None = None
    reason: str | None = None
    correct_lenient: bool | None = None


class DisclosureRecord(BaseModel):
    """One part of a reply and where it comes from."""

    topic: str
    provenance: str
    paths: list[str] = Field(default_factory=list)


class TurnRecord(BaseModel):
    """One utterance."""

    turn: int
    role: str
    text: str
    action: str | None = None
    disclosures: list[DisclosureRecord] = Field(default_factory=list)
    differential: Differential | None = None
    usage: dict[str, int | None] | None = None
    notes: list[str] = Field(default_factory=list)
    details: dict[str, Any] | None = None
    """Numbers behind it: a plan's scores, a session's step."""


class DoorRecord(BaseModel):
    """What every doctor knew at the start."""

    objective: str
    demographics: str


class Record(BaseModel):
    """One scenario's outcome. The seed's fields come first; records that have only those can be read."""

    model_config = ConfigDict(extra="allow")

    scenario_id: int
    dataset: str | None = None
    status: str
    num_turns: int | None = None
    correct: bool | None = None
    """Right by the strict rule; null when nobody could judge (endpoint, patient, laboratory or judge failed)."""
    ground_truth: str | None = None
    diagnosis_text: str | None = None
    final_doctor_dialogue: str | None = None
    doctor_llm: str | None = None
    patient_llm: str | None = None
    measurement_llm: str | None = None
    moderator_llm: str | None = None
    max_infs: int | None = None
    image_request_enabled: bool | None = None
    doctor_hist: str = ""
    patient_hist: str = ""
    measurement_hist: str = ""
    llm_responses_config: dict[str, Any] | None = None
    llm_runtime_config: dict[str, Any] | None = None
    resource_level: str | None = None
    test_economics_log: list[Any] | None = None
    test_economics_totals: dict[str, Any] | None = None

    case_hash: str | None = None
    """The case's identity: equal for copies in other data sets."""
    data_class: DataClass | None = None
    """Of the data the run works on; the strictest where its cases differ. Null in records of older versions."""
    door: DoorRecord | None = None
    repeat: int = 0
    seed: int | None = None
    """This unit's own seed, derived from the run's seed, the case and the repeat."""
    doctor: str | None = None
    test_policy: str | None = None
    """Name of the test policy the doctor planned with."""
    planner_baseline: str | None = None
    """What its planner knew at first: the door, or the patient's full script."""
    session_id: str | None = None
    """Name of the file in the run's `diagnosis_sessions/`, for a doctor that keeps one."""
    doctor_bias: str | None = None
    patient_bias: str | None = None
    missing_test: str | None = None
    silent_symptom: str | None = None
    fault: FaultRecord | None = None
    judgement: JudgementRecord | None = None
    differential: Differential | None = None
    """The doctor's last one."""
    transcript: list[TurnRecord] | None = None
    usage: dict[str, dict[str, int | None]] | None = None
    """Tokens by role; null where the endpoint told nothing."""
    cost_usd: dict[str, float | None] | None = None
    """Money by role, where a price is known; null where not."""
    annotations: dict[str, Any] | None = None
    """What the case's author wrote for scoring: answer key, key findings, harm, ..."""
    timing: dict[str, Any] | None = None
    """The only thing in which two runs with the same seed may differ."""

    @property
    def unit(self) -> str:
        """Identity of the unit within its run: case and repeat."""
        return f"{self.scenario_id}:{self.case_hash or ''}:{self.repeat}"
