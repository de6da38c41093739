"""How a plan becomes ranked hypotheses and a verdict on finishing: by weights, as in the original, or by Bayes' rule.

The engine asks, tries again, relaxes and gives up in the same way for both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from agentclinic.doctors.planner.schema import (
    Discriminator,
    PlannedHypothesis,
    PlannerReply,
    PlanThenSpeak,
    Prior,
    TableReply,
    TableThenSpeak,
    WeightedDifferential,
    WeighThenSpeak,
    sized,
    sized_table,
)
from agentclinic.doctors.planner.settings import FEWEST, PolicyFile
from agentclinic.doctors.planner.table import OTHER, OTHER_NAME, Belief, Table, identity
from agentclinic.doctors.planner.weighing import Weighed, ahead, ranked, sift, weigh
from agentclinic.results.turn import Differential, Hypothesis, Source, as_differential

COVERAGE_TO_FINISH = 0.6
"""Below this, one lucky finding could end the encounter; the original's value."""

WORTH_A_TEST = 0.01
"""How probable a rival, or something else, must be for a test to be needed against it. A danger that the planner names
is one of these, and a leader at more than 0.99 leaves none."""

Scored = Weighed | Belief
"""A hypothesis with its number, `confidence`: a score or a probability."""
AnyPlan = WeightedDifferential | TableReply
"""What a planner answers."""


@dataclass(frozen=True)
class Reading:
    """What a plan says."""

    counts: tuple[int, ...]
    """How many findings each diagnosis lists, or the table; empty if no diagnosis is named."""
    hypotheses: tuple[Scored, ...]
    """Those that can be used, the leader first."""
    remarks: tuple[str, ...]
    """What was corrected or left out, for the record."""
    discriminators: tuple[Discriminator, ...] = ()
    danger: str = ""
    table: Table | None = None
    left_out: tuple[str, ...] = ()
    """Diagnoses for which there was no room."""


class Weights:
    """Each plan is a whole weighted differential."""

    table: Table | None = None
    """There is none."""

    def __init__(self, policy: PolicyFile) -> None:
        self._settings = policy.differential_settings
        self.threshold = policy.finish_at

    def shape(self, *, inline: bool) -> type[BaseModel]:
        """What the planner is asked for."""
        settings = self._settings
        with_plan = settings.discriminators == "with_plan"
        # Not the relaxed requirement: the schema is part of the prompt, and a prompt cache needs it unchanged.
        numbers = (settings.min_diagnoses, settings.max_differentials), settings.min_symptoms_per_disease
        if inline:
            return sized(PlanThenSpeak if with_plan else WeighThenSpeak, *numbers)
        return sized(PlannerReply if with_plan else WeightedDifferential, *numbers)

    def read(self, plan: AnyPlan) -> Reading:
        assert isinstance(plan, WeightedDifferential)
        hypotheses, remarks = sift(plan.hypotheses, self._settings.max_differentials)
        enough = [hypothesis for hypothesis in hypotheses if len(hypothesis.findings) >= FEWEST]
        left_out = [f"{h.diagnosis}: left out, fewer than {FEWEST} findings" for h in hypotheses if h not in enough]
        return Reading(
            tuple(len(hypothesis.findings) for hypothesis in hypotheses),
            ranked([weigh(hypothesis) for hypothesis in enough]),
            (*left_out, *remarks),
            tuple(plan.discriminators) if isinstance(plan, PlannerReply) else (),
            plan.danger,
            left_out=_missing(plan.hypotheses, [hypothesis.diagnosis for hypothesis in hypotheses]),
        )

    def shortage(self, counts: Sequence[int], requirement: int) -> str:
        """In what a plan falls short of the requirement; empty if in nothing."""
        short = sum(count < requirement for count in counts)
        return f"{short} of {len(counts)} diagnoses list fewer than {requirement} findings" if short else ""

    def keep(self, reading: Reading) -> None:
        """Nothing is kept: the next plan starts again."""

    def sure(self, hypotheses: Sequence[Scored]) -> bool:
        """Whether the leader is confident enough, far enough ahead and covered well enough."""
        top = hypotheses[0]
        return (
            top.confidence >= self.threshold
            and margin(hypotheses) > self._settings.confidence_close_threshold
            and top.coverage >= COVERAGE_TO_FINISH
        )

    def doubt(self, _is_done: Callable[[str], bool]) -> str:
        """What else speaks against finishing: nothing."""
        return ""

    def differential(self, hypotheses: Sequence[Scored]) -> Differential | None:
        """The scores, for the record."""
        return as_differential(
            Source.PLANNER_SCORE,
            (
                Hypothesis(diagnosis=h.diagnosis, score=round(h.confidence, 4), reason=f"coverage {h.coverage:.2f}")
                for h in hypotheses
            ),
        )


class Bayes:
    """A table is kept from plan to plan, and each plan adds to it."""

    def __init__(self, policy: PolicyFile) -> None:
        self._settings = policy.differential_settings
        self.threshold = policy.finish_at
        self.table = Table()
        self._leaders: tuple[str, ...] = ()
        """Of the plans so far."""

    def shape(self, *, inline: bool) -> type[BaseModel]:
        most = self._settings.max_differentials
        return sized_table(TableThenSpeak if inline else TableReply, most)

    def read(self, plan: AnyPlan) -> Reading:
        assert isinstance(plan, TableReply)
        most = self._settings.max_differentials
        given = plan.model_copy(update={"hypotheses": plan.hypotheses[:most]})
        table, remarks = self.table.added(given)
        if len(plan.hypotheses) > most:
            remarks.append(f"{len(plan.hypotheses)} new hypotheses, only the first {most} are kept")
        usable = table.priors and len(table.counting) >= FEWEST
        return Reading(
            (len(table.counting),) if table.priors else (),
            table.ranked if usable else (),
            tuple(remarks),
            danger=plan.danger,
            table=table,
            left_out=_missing(plan.hypotheses, [*table.priors, OTHER, OTHER_NAME]),
        )

    def shortage(self, counts: Sequence[int], requirement: int) -> str:
        return f"the table has {counts[0]} of at least {requirement} findings" if counts[0] < requirement else ""

    def keep(self, reading: Reading) -> None:
        assert reading.table is not None
        self.table = reading.table
        self._leaders = (*self._leaders, reading.hypotheses[0].diagnosis)

    def sure(self, hypotheses: Sequence[Scored]) -> bool:
        return hypotheses[0].confidence >= self.threshold

    def doubt(self, is_done: Callable[[str], bool]) -> str:
        """Why a leader that is probable enough is not taken: it is new, or the deciding test has not been done.

        The deciding test is the most informative one on the list that could still take the leader below the threshold.
        None is needed if nothing else is probable enough.
        """
        if len(set(self._leaders[-2:])) != 1 or len(self._leaders) < 2:
            return "the leader is new"
        leader = self._leaders[-1]
        if all(p < WORTH_A_TEST for name, p in self.table.posterior.items() if name != leader):
            return ""
        deciding = self.deciding(is_done)
        return f"the deciding test has not been done ({deciding})" if deciding else ""

    def deciding(self, is_done: Callable[[str], bool]) -> str:
        """The request for the deciding test; empty if there is none."""
        tests = (step for step in self.table.steps(is_done) if step.is_test and step.lowest < self.threshold)
        return next((step.request for step in tests), "")

    def differential(self, hypotheses: Sequence[Scored]) -> Differential:
        """The probabilities, for the record."""
        return Differential(
            source=Source.PLANNER_POSTERIOR,
            hypotheses=tuple(Hypothesis(diagnosis=h.diagnosis, probability=round(h.confidence, 6)) for h in hypotheses),
            other=round(self.table.posterior[OTHER], 6),
        )


Scoring = Weights | Bayes


def scoring_of(policy: PolicyFile) -> Scoring:
    """The policy's way of scoring, for one encounter."""
    return Bayes(policy) if policy.differential_settings.scoring == "bayes" else Weights(policy)


def margin(hypotheses: Sequence[Scored]) -> float:
    """How far the leader is ahead; its whole confidence if it is alone."""
    return ahead(hypotheses[0].confidence, hypotheses[1].confidence if len(hypotheses) > 1 else 0.0)


def close_to_leader(hypotheses: Sequence[Scored], gap: float) -> tuple[Scored, ...]:
    """The leader and those within the gap of it; empty if there are none."""
    leader = _printed(hypotheses[0])
    within = tuple(h for h in hypotheses if ahead(leader, _printed(h)) <= gap)
    return within if len(within) > 1 else ()


def _printed(hypothesis: Scored) -> float:
    """A probability as it is printed, so that the numbers never contradict who is close; a score as it is."""
    return round(hypothesis.confidence, 2) if isinstance(hypothesis, Belief) else hypothesis.confidence


def _missing(named: Sequence[PlannedHypothesis | Prior], taken: Sequence[str]) -> tuple[str, ...]:
    """The diagnoses of a plan that were not taken."""
    known = set(map(identity, taken))
    return tuple(hypothesis.diagnosis for hypothesis in named if identity(hypothesis.diagnosis) not in known)
