"""How an encounter ended, and its record: a line of `scenarios.jsonl`, with all that scoring and reports need."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_core.core_schema import CoreSchema, none_schema, with_default_schema

from agentclinic.cases.formats import answer_key_of
from agentclinic.cases.model import Door, case_name
from agentclinic.config import MOST_TURNS
from agentclinic.privacy import DataClass
from agentclinic.results.regret import Regret
from agentclinic.results.turn import Differential, Turn


class Status(StrEnum):
    DIAGNOSED = "diagnosed"
    MAX_INFS_REACHED = "max_infs_reached"
    DOCTOR_FAILED = "doctor_failed"
    MODEL_FAILED = "model_failed"
    JUDGE_FAILED = "judge_failed"
    NOT_READABLE = "not_readable"


MISSING = frozenset({Status.MODEL_FAILED.value, Status.JUDGE_FAILED.value})
"""There is no verdict, through no fault of the doctor's: missing data, never a wrong answer."""
JUDGEABLE = frozenset({Status.DIAGNOSED.value, Status.JUDGE_FAILED.value, Status.NOT_READABLE.value})
"""Statuses that leave a diagnosis to be judged."""


@dataclass(frozen=True)
class Fault:
    role: str
    error: str
    """Kind of a `ModelError`, or the name of an exception raised by a custom doctor."""
    message: str = ""
    traceback: str | None = None
    """Where a custom doctor's program failed."""


@dataclass(frozen=True)
class Verdict:
    correct: bool | None = None
    """Yes or No by the strict rule; None if the diagnosis was not judged or could not be read."""
    relation: str | None = None
    """How the diagnosis relates to the truth, if the judge says so."""
    reason: str | None = None
    """Why; for a diagnosis that was not judged, why not."""
    correct_lenient: bool | None = None
    """Right by the lenient rule: strictly right, or accepted in part by the case's answer key."""
    decided_by: Literal["code", "model", "person"] | None = None
    """Who decided; None if no one did, and in records from before this was kept."""


@dataclass(frozen=True)
class OwnPrice:
    """What a user's own table says about a test."""

    name: str
    """In the table."""
    usd: float
    wait_minutes: float
    duration_minutes: float


class PriceTable(BaseModel):
    """Prices other than those of our table of tests, as far as one encounter needs them.

    They are a user's own, those of a limited setting, or under a budget, estimates for tests that have none.
    """

    model_config = ConfigDict(frozen=True)

    file: str
    """The user's file, or what the prices are."""
    digest: str
    """Start of the file's SHA-256; empty if there is no file."""
    waiting: float
    """Factor on waiting times at the run's resource level."""
    waiting_known: bool
    """Whether the table gives that factor; otherwise it is ours."""
    tests: dict[str, OwnPrice] = {}
    """By name, as ordered; a test that the table lacks is not here."""

    def __str__(self) -> str:
        return f"{self.file} {self.digest}".strip()

    @property
    def source(self) -> str:
        """Where its prices come from, in words."""
        return f"the middle of its range in {self}" if self.digest else str(self)


class Record(BaseModel):
    """One scenario's outcome. The original's fields come first; records with only those can be read."""

    model_config = ConfigDict(extra="allow")

    scenario_id: int
    dataset: str | None = None
    status: str
    """How the encounter ended: a `Status`."""
    num_turns: int | None = Field(default=None, le=MOST_TURNS)
    correct: bool | None = None
    """Right by the strict rule; null if there is no verdict (endpoint, patient, laboratory or judge failed)."""
    ground_truth: str | None = None
    diagnosis_text: str | None = None
    final_doctor_dialogue: str | None = None
    doctor_llm: str | None = None
    patient_llm: str | None = None
    measurement_llm: str | None = None
    moderator_llm: str | None = None
    max_infs: int | None = Field(default=None, le=MOST_TURNS)
    image_request_enabled: bool | None = None
    doctor_hist: str = ""
    patient_hist: str = ""
    measurement_hist: str = ""
    llm_responses_config: dict[str, Any] | None = None
    llm_runtime_config: dict[str, Any] | None = None
    resource_level: str | None = None
    test_economics_log: list[Any] | None = None
    test_economics_totals: dict[str, Any] | None = None

    price_table: PriceTable | None = None
    """The user's own `measurement_cost.json`, if tests were priced by it; null: by our table of tests."""
    case_hash: str | None = None
    """The case's identity: the same for copies in other data sets."""
    data_class: DataClass | None = None
    """Data class of the run, the strictest among its cases; null in records of older versions."""
    door: Door | None = None
    repeat: int = 0
    seed: int | None = None
    """This unit's own seed, derived from the run's seed, the case and the repeat."""
    doctor: str | None = None
    test_policy: str | None = None
    """Name of the test policy the doctor planned with."""
    planner_baseline: str | None = None
    """What the planner knew at first: what is known at the door, or the patient's full script."""
    policy_in_prompt: bool | None = None
    """Whether the test policy was in the doctor's system prompt; null without a policy, and in older records."""
    memory: str | None = None
    """How experiences were found and the hash of their file, if the doctor had a memory: `bm25 0123456789abcdef`."""
    session_id: str | None = None
    """Name of the session file in the run's `diagnosis_sessions/`, if the doctor keeps one."""
    generation: dict[str, Any] | None = None
    """The generation settings of the run, e.g. temperature or doctor_temperature; null if none were set."""
    doctor_bias: str | None = None
    patient_bias: str | None = None
    patient_traits: dict[str, int] | None = None
    """Traits of a difficult patient by level; null if there are none."""
    traits_controlled: bool | None = None
    """Whether code decided what the traits did; false if they were only in the prompt (simulator free)."""
    unsupported_bias: dict[str, str] | None = None
    """Biases that were asked for and ignored because the prompt files do not have them, by setting."""
    simulator: dict[str, str] | None = None
    """How patient and laboratory were played: grounded, voiced, or free (also builtin and people); null before 0.3."""
    dialogue: str | None = None
    """How the doctor's model was shown the dialogue: chat or transcript; null in records of 0.2: transcript."""
    missing_test: str | None = None
    pending_results: bool | None = None
    silent_symptom: str | None = None
    fault: Fault | None = None
    judgement: Verdict | None = None
    differential: Differential | None = None
    """The doctor's last differential."""
    regret: Regret | None = None
    """Against the best play; null outside solvable worlds."""
    transcript: list[Turn] | None = None
    usage: dict[str, dict[str, int | None]] | None = None
    """Tokens by role; null if the endpoint does not report them."""
    cost_usd: dict[str, float | None] | None = None
    """Cost by role; null if the price is unknown."""
    annotations: dict[str, Any] | None = None
    """What the case's author provided for scoring: answer key, key findings, harm, ..."""
    timing: dict[str, Any] | None = None
    """The only field in which two runs with the same seed may differ."""

    @field_validator("correct", mode="before")
    @classmethod
    def _true_or_false(cls, correct: Any) -> Any:
        if isinstance(correct, str | int | float) and not isinstance(correct, bool):
            raise ValueError("must be true, false or null")
        return correct

    @field_validator("annotations")
    @classmethod
    def _readable_key(cls, annotations: dict[str, Any] | None) -> dict[str, Any] | None:
        answer_key_of((annotations or {}).get("Answer_Key"))
        return annotations

    @field_validator("status")
    @classmethod
    def _known(cls, status: str) -> str:
        if status not in tuple(Status):
            raise ValueError(f"must be one of {', '.join(Status)}")
        return status

    def setting(self, name: str) -> Any:
        """A field that says how the run was played.

        A label that says so for a bias that was ignored, and nothing for prices that are not the user's own.
        """
        if name == "price_table" and self.price_table and not self.price_table.digest:
            return None
        asked = (self.unsupported_bias or {}).get(name)
        return bias_label(asked) if asked else getattr(self, name)

    def __repr_args__(self) -> list[tuple[str | None, Any]]:
        """A list of records stays readable; `model_dump()` has everything."""
        shown = ("scenario_id", "repeat", "status", "correct", "diagnosis_text", "ground_truth")
        return [(name, getattr(self, name)) for name in shown]

    @property
    def case_name(self) -> str:
        """What people call the case: `osce-a01`, `MedQA/17`."""
        return case_name(self.annotations or {}, self.dataset, self.scenario_id)

    @property
    def unit_name(self) -> str:
        """The name of the case, with the repeat if it is not the first: `osce-a01, repeat 1`."""
        return f"{self.case_name}, repeat {self.repeat}" if self.repeat else self.case_name

    @property
    def unit(self) -> str:
        """Identity of the unit within its run: case and repeat."""
        return f"{self.scenario_id}:{self.case_hash or ''}:{self.repeat}"


class _NotRead:
    @classmethod
    def __get_pydantic_core_schema__(cls, *_: Any) -> CoreSchema:
        return with_default_schema(none_schema(), default=None, on_error="default")


class BriefRecord(Record):
    """A record without what takes long to read: enough to count outcomes and costs."""

    transcript: Annotated[None, _NotRead] = None
    differential: Annotated[None, _NotRead] = None
    test_economics_log: Annotated[None, _NotRead] = None


def bias_label(asked: str) -> str:
    return f"none (asked for: {asked}, not supported)"
