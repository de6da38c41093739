"""The original's `policy_engine`: the planning engine with the original's arguments, called synchronously."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from agentclinic import sync_bridge
from agentclinic.cases.model import Door
from agentclinic.clinic.doctor import Assignment, Incoming, Observation
from agentclinic.clinic.prompts import Prompts, load_prompt, user_prompts
from agentclinic.doctors.planner import engine
from agentclinic.doctors.planner.prompting import Baseline, Speak
from agentclinic.doctors.planner.scoring import Scored
from agentclinic.doctors.planner.settings import PolicyFile, policy_of
from agentclinic.doctors.planner.weighing import Weighed
from agentclinic.results.turn import Exchange
from agentclinic.runs.build import LazyModel


class DiseaseHypothesis(NamedTuple):
    """A diagnosis of the differential, and its numbers (docs/test-policy.md)."""

    name: str
    confidence: float
    coverage: float
    support_weight: int
    contradiction_weight: int
    unknown_weight: int


class PlannerDecision(NamedTuple):
    """What the engine decides for a turn."""

    hypotheses: list[DiseaseHypothesis]
    """The leading one first."""
    finish_threshold: float
    close_gap: float
    should_finish: bool
    chosen_diagnosis: str | None
    finish_reason: str | None
    close_competitors: list[DiseaseHypothesis]
    """Those that are too close to the leading one."""
    discriminators: list[dict[str, Any]]
    """What would tell them apart: `focus`, and `targets`, the diagnoses."""
    action_summary: str | None
    guidance: str
    """What the doctor is shown."""

    def top_hypothesis(self) -> DiseaseHypothesis | None:
        return self.hypotheses[0] if self.hypotheses else None


class DifferentialDiagnosisEngine(engine.DifferentialDiagnosisEngine):
    """Plans with a model, by a policy that is given as data.

    `patient_overview` is what the planner knows of the patient before the dialogue. `assignment` takes the place of
    `llm_model` and `case_overview`.
    """

    def __init__(
        self,
        *,
        llm_model: str = "builtin",
        policy: Mapping[str, Any] | PolicyFile | None = None,
        finish_threshold: float | None = None,
        case_overview: str = "",
        patient_overview: str = "",
        assignment: Assignment | None = None,
    ) -> None:
        file = policy if isinstance(policy, PolicyFile) else policy_of(policy or {}, "policy")
        if finish_threshold is not None:
            by_table = file.differential_settings.scoring == "bayes"
            key = "probability_to_finish" if by_table else "finish_early_if_confident"
            known = file.constraints.model_dump() | {key: finish_threshold}
            file = file.model_copy(update={"constraints": type(file.constraints).model_validate(known)})
        alone = assignment is None  # no doctor of ours has the rules in its prompt
        if assignment is None:
            prompts = Prompts({"doctor": load_prompt("doctor", user_prompts())})
            assignment = Assignment(Door(case_overview.strip(), ""), LazyModel(llm_model), prompts, limit=20)
        told = patient_overview.strip()
        super().__init__(assignment, file, Baseline("full", told) if told else None, rules=alone)
        self.llm_model = assignment.model.name
        self.finish_threshold = file.finish_at
        self.close_gap = file.differential_settings.confidence_close_threshold
        self.last_decision: PlannerDecision | None = None

    def analyze(self, agent_hist: str, latest_turn: str) -> PlannerDecision:
        """Plan from the dialogue as text and the latest reply."""
        spoken = bool(agent_hist.strip())
        exchanges = (Exchange("question", as_question(agent_hist), latest_turn),) if spoken or latest_turn else ()
        seen = Observation(Incoming("Patient", latest_turn), exchanges, turn=2 if spoken else 1)
        return self._noted(sync_bridge.call(self.decide, seen))

    def render_guidance(self, decision: PlannerDecision | None = None) -> str:
        """What the doctor is shown of a decision, by default the last one; empty before the first."""
        shown = decision or self.last_decision
        return shown.guidance if shown else ""

    async def decide(
        self, seen: Observation, *, broken: Sequence[str] = (), speak: Speak | None = None
    ) -> engine.Decision:
        decision = await super().decide(seen, broken=broken, speak=speak)
        self._noted(decision)
        return decision

    def _noted(self, made: engine.Decision) -> PlannerDecision:
        found = [{"focus": each.request, "targets": each.tells_apart} for each in made.discriminators]
        self.last_decision = PlannerDecision(
            hypotheses=_listed(made.hypotheses),
            finish_threshold=self.finish_threshold,
            close_gap=self.close_gap,
            should_finish=made.diagnosis is not None,
            chosen_diagnosis=made.diagnosis,
            finish_reason=made.notes if made.diagnosis else None,
            close_competitors=_listed(made.close[1:]),
            discriminators=found,
            action_summary="; ".join(each.request for each in made.discriminators) or None,
            guidance=made.notes,
        )
        return self.last_decision


def as_question(agent_hist: str) -> str:
    """A dialogue as text in the place of a doctor's question, which the planner reads after the label `Doctor:`."""
    return agent_hist.strip().removeprefix("Doctor: ")


def _listed(scored: Sequence[Scored]) -> list[DiseaseHypothesis]:
    """The hypotheses; those of a table have no weights."""
    weights = [(h.support, h.contradiction, h.unknown) if isinstance(h, Weighed) else (0, 0, 0) for h in scored]
    return [DiseaseHypothesis(h.diagnosis, h.confidence, h.coverage, *w) for h, w in zip(scored, weights, strict=True)]
