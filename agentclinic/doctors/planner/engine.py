"""The planning engine: each turn a weighted differential from the doctor's own model, scored and decided upon by us.

One place decides what happens to a reply that is not good enough (`_plan`): it is sent back once; if it then lists too
few findings the requirement is relaxed by one, down to three; if there is still no plan the turn falls back to an open
question. The next turn tries again, and every turn that succeeds brings a relaxed requirement one step back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import add
from typing import Any, Literal

from pydantic import BaseModel

from agentclinic.cases.model import Door
from agentclinic.clinic.doctor import Incoming, door_text
from agentclinic.clinic.payloads import DiscriminatorPayload, PlannerPayload
from agentclinic.clinic.prompts import fill, joined
from agentclinic.doctors.planner.notes import fallback_notes, plan_notes
from agentclinic.doctors.planner.schema import (
    Discriminator,
    Discriminators,
    PlannedHypothesis,
    PlannerReply,
    WeightedDifferential,
)
from agentclinic.doctors.planner.settings import FEWEST, PolicyFile
from agentclinic.doctors.planner.weighing import Sifted, Weighed, ranked, sift, weigh
from agentclinic.models.base import (
    ContextTooLongError,
    Image,
    MalformedError,
    Message,
    Model,
    ModelError,
    Purpose,
    RefusedError,
    Reply,
    Request,
)
from agentclinic.models.structured import InvalidReplyError, parse
from agentclinic.results.differential import Differential, Hypothesis, Source, as_differential
from agentclinic.results.turn import Exchange, Usage

COVERAGE_TO_FINISH = 0.6
"""Below this, one lucky finding could end the encounter (seeds/000, step 4)."""
TRIES = 2
"""Planner requests a turn may cost: more would double the price of a turn for a planner that cannot do it."""
MOST_DISCRIMINATORS = 3
"""As many as the planner is asked for; a longer list would not be read."""


@dataclass(frozen=True)
class Baseline:
    """What the planner knows of the patient before the dialogue."""

    kind: Literal["door", "full"] = "door"
    text: str = ""
    """The patient's script, where the planner is given all of it."""
    told: tuple[Exchange, ...] = ()
    """The same as if it had been asked, for models that read no prompts."""


@dataclass(frozen=True)
class Decision:
    """What the engine makes of a turn."""

    kind: Literal["plan", "finish", "fallback"]
    notes: str
    """What the doctor is shown."""
    hypotheses: tuple[Weighed, ...] = ()
    close: tuple[Weighed, ...] = ()
    discriminators: tuple[Discriminator, ...] = ()
    requirement: int = 0
    """Findings each hypothesis had to list when the planner was asked."""
    next_requirement: int = 0
    """Findings it will have to list on the next turn, after relaxing or restoring."""
    remarks: tuple[str, ...] = ()
    """What had to be mended, relaxed or given up, and what the endpoint said: for the record."""
    usage: Usage = field(default_factory=lambda: Usage(requests=0))

    @property
    def diagnosis(self) -> str | None:
        """What to commit to, when it is time."""
        return self.hypotheses[0].diagnosis if self.kind == "finish" else None

    @property
    def differential(self) -> Differential | None:
        """The scores, for the record."""
        return as_differential(
            Source.PLANNER_SCORE,
            (
                Hypothesis(diagnosis=h.diagnosis, score=round(h.confidence, 4), reason=f"coverage {h.coverage:.2f}")
                for h in self.hypotheses
            ),
        )

    @property
    def details(self) -> dict[str, Any]:
        """Every number, for the record."""
        return {
            "decision": self.kind,
            "requirement": self.requirement,
            "next_requirement": self.next_requirement,
            "margin": _margin(self.hypotheses) if self.hypotheses else None,
            "close": [hypothesis.diagnosis for hypothesis in self.close],
            "hypotheses": [
                {
                    "diagnosis": h.diagnosis,
                    "confidence": round(h.confidence, 4),
                    "coverage": round(h.coverage, 4),
                    "support": h.support,
                    "contradiction": h.contradiction,
                    "unknown": h.unknown,
                    "findings": [[f.finding, f.weight, f.expected, f.observed] for f in h.findings],
                }
                for h in self.hypotheses
            ],
            "discriminators": [found.model_dump() for found in self.discriminators],
        }


@dataclass(frozen=True)
class _Moment:
    """The case as it stands at a turn."""

    incoming: Incoming
    exchanges: tuple[Exchange, ...]
    turn: int


class DifferentialDiagnosisEngine:
    """Plans one encounter."""

    def __init__(
        self,
        model: Model,
        policy: PolicyFile,
        door: Door,
        *,
        limit: int,
        baseline: Baseline | None = None,
        bias: str = "",
    ) -> None:
        self.model = model
        self.policy = policy
        self.door = door
        self.requirement = policy.differential_settings.min_symptoms_per_disease
        """Findings each hypothesis has to list now; relaxed and restored turn by turn."""
        self._limit = limit
        self._baseline = baseline or Baseline()
        self._images: tuple[Image, ...] = ()
        # A biased doctor plans with its bias, too: notes without it would talk the doctor out of it.
        self.system_prompt = joined(policy.system_base.strip(), bias)

    async def decide(
        self, incoming: Incoming, exchanges: tuple[Exchange, ...], *, turn: int, broken: Sequence[str] = ()
    ) -> Decision:
        """Plan a turn: finish, advise, or fall back. `broken` are rules the last order broke, for the notes."""
        now = _Moment(incoming, exchanges, turn)
        self._images = tuple(dict.fromkeys((*self._images, *incoming.images)))
        asked = self.requirement
        attempt = await self._plan(now)
        decided = partial(Decision, requirement=asked, next_requirement=self.requirement)
        if not attempt.hypotheses:
            notes = fallback_notes(self.policy, attempt.problem, attempt.remarks, broken)
            attempt.remarks += (f"planner unavailable: {attempt.problem}",)
            return decided("fallback", notes, remarks=attempt.for_the_record, usage=attempt.usage)
        hypotheses = ranked([weigh(hypothesis) for hypothesis in attempt.hypotheses])
        if self._may_finish(hypotheses, now):
            why = _why_finished(hypotheses)
            attempt.remarks += (why,)
            return decided("finish", why, hypotheses, remarks=attempt.for_the_record, usage=attempt.usage)
        close = self._close(hypotheses)
        found = await self._discriminators(now, close, attempt)
        notes = plan_notes(self.policy, self._baseline.kind, hypotheses, close, found, attempt.remarks, broken)
        return decided("plan", notes, hypotheses, close, found, remarks=attempt.for_the_record, usage=attempt.usage)

    def _may_finish(self, hypotheses: Sequence[Weighed], now: _Moment) -> bool:
        """Step 4: sure enough, far enough ahead, known well enough, and not before anything was said."""
        top, settings = hypotheses[0], self.policy
        return (
            top.confidence >= settings.constraints.finish_early_if_confident
            and _margin(hypotheses) > settings.differential_settings.confidence_close_threshold
            and top.coverage >= COVERAGE_TO_FINISH
            and bool(now.exchanges)
            and now.turn > 1
        )

    def _close(self, hypotheses: Sequence[Weighed]) -> tuple[Weighed, ...]:
        """The leader and whoever lies within the margin of it; nobody when the leader stands alone."""
        gap = self.policy.differential_settings.confidence_close_threshold
        within = tuple(h for h in hypotheses if _ahead(hypotheses[0].confidence, h.confidence) <= gap)
        return within if len(within) > 1 else ()

    async def _plan(self, now: _Moment) -> _Attempt:
        """Ask for a plan; the one place that decides about trying again, relaxing and giving up."""
        attempt = _Attempt()
        messages = self._messages(self.policy.user_prompt_template, now)
        for tries_left in reversed(range(TRIES)):
            reply = await self._ask(messages, now, attempt)
            if attempt.hopeless:
                break
            if reply is not None:
                sifted = sift(reply.hypotheses, self.policy.differential_settings.max_differentials)
                short = len(sifted.hypotheses) - len(_with_findings(sifted.hypotheses, self.requirement))
                told_apart = reply.discriminators if isinstance(reply, PlannerReply) else ()
                if sifted.hypotheses and not short:
                    self._restore_one(attempt)
                    attempt.accept(sifted.hypotheses, sifted.remarks, told_apart)
                    break
                attempt.problem = (
                    f"{short} of {len(sifted.hypotheses)} diagnoses list fewer than {self.requirement} findings"
                    if sifted.hypotheses
                    else "no diagnosis was named"
                )
                if sifted.hypotheses and not tries_left:
                    self._relax(attempt, sifted, told_apart)
            if tries_left:
                attempt.remarks += (f"plan sent back once: {attempt.problem}",)
                messages = self._sent_back(messages, attempt)
        return attempt

    def _restore_one(self, attempt: _Attempt) -> None:
        """Step 6, the way back: a turn that succeeds brings a relaxed requirement one step back."""
        if self.requirement < self.policy.differential_settings.min_symptoms_per_disease:
            self.requirement += 1
            attempt.remarks += (f"{self.requirement} findings per diagnosis are asked for again from now on",)

    def _relax(self, attempt: _Attempt, sifted: Sifted, told_apart: Sequence[Discriminator]) -> None:
        """Step 6: one finding fewer is enough, never fewer than three; those with still fewer are left out."""
        if self.requirement > FEWEST:
            self.requirement -= 1
            attempt.remarks += (
                f"requirement relaxed from {self.requirement + 1} to {self.requirement} findings per diagnosis, "
                f"because {attempt.problem}",
            )
        enough = _with_findings(sifted.hypotheses, self.requirement)
        if enough:
            left_out = [h.diagnosis for h in sifted.hypotheses if h not in enough]
            attempt.remarks += tuple(f"{name}: left out, fewer than {self.requirement} findings" for name in left_out)
            attempt.accept(enough, sifted.remarks, told_apart)

    async def _ask(self, messages: tuple[Message, ...], now: _Moment, attempt: _Attempt) -> WeightedDifferential | None:
        """One request: a plan, or None and in the attempt what is the matter."""
        settings = self.policy.differential_settings
        shape = PlannerReply if settings.discriminators == "with_plan" else WeightedDifferential
        request = Request(
            Purpose.PLANNER,
            messages,
            schema=shape,
            payload=PlannerPayload(
                self.door, now.exchanges, self.requirement, settings.max_differentials, self._baseline.told
            ),
            repair=False,
        )
        try:
            reply = await self.model.reply(request)
        except MalformedError as error:
            attempt.failed(error, f"no valid plan came back ({_what_is_wrong(error.text, shape)})")
            attempt.said = error.text
            return None
        except (RefusedError, ContextTooLongError) as error:
            attempt.failed(error, f"the model {'refused' if error.kind == 'refused' else 'found the case too long'}")
            attempt.hopeless = True  # asking the same again would not help
            return None
        attempt.heard(reply)
        attempt.said = reply.text
        if not isinstance(reply.parsed, WeightedDifferential):
            attempt.problem = f"no valid plan came back ({_what_is_wrong(reply.text, shape)})"
            return None
        return reply.parsed

    def _sent_back(self, messages: tuple[Message, ...], attempt: _Attempt) -> tuple[Message, ...]:
        told = fill(self.policy.retry, problem=attempt.problem, **self._numbers())
        # An empty answer cannot be sent back as one: some servers refuse that.
        said = (Message("assistant", attempt.said),) if attempt.said.strip() else ()
        return (*messages, *said, Message("user", told))

    async def _discriminators(
        self, now: _Moment, close: tuple[Weighed, ...], attempt: _Attempt
    ) -> tuple[Discriminator, ...]:
        """Step 5: what tells close hypotheses apart, from the plan itself or asked for on its own."""
        how = self.policy.differential_settings.discriminators
        if not close or how == "off":
            return ()
        found = attempt.discriminators if how == "with_plan" else await self._ask_apart(now, close, attempt)
        if found == ():
            attempt.remarks += ("the planner named nothing that tells them apart",)
        return tuple(found or ())[:MOST_DISCRIMINATORS]

    async def _ask_apart(
        self, now: _Moment, close: tuple[Weighed, ...], attempt: _Attempt
    ) -> tuple[Discriminator, ...] | None:
        """A request for discriminators alone; None where no answer came. It is not worth another try."""
        names = tuple(hypothesis.diagnosis for hypothesis in close)
        request = Request(
            Purpose.DISCRIMINATOR,
            self._messages(self.policy.discriminator_template, now, close=", ".join(names)),
            schema=Discriminators,
            payload=DiscriminatorPayload(self.door, (*self._baseline.told, *now.exchanges), names),
            repair=False,
        )
        try:
            reply = await self.model.reply(request)
        except (MalformedError, RefusedError, ContextTooLongError) as error:
            attempt.failed(error, attempt.problem)
            attempt.remarks += (f"no discriminators: {error.kind}",)
            return None
        attempt.heard(reply)
        return tuple(reply.parsed.discriminators) if isinstance(reply.parsed, Discriminators) else ()

    def _messages(self, template: str, now: _Moment, **more: object) -> tuple[Message, ...]:
        settings = self.policy.differential_settings
        user = fill(
            template,
            door=door_text(self.door),
            baseline=f"[The patient's script]\n{self._baseline.text}" if self._baseline.text else "",
            transcript=_transcript(now.exchanges) or "(nothing has been said yet)",
            reply=now.incoming.line if now.exchanges else "(none yet)",
            turn=now.turn,
            max_infs=self._limit,
            discriminators=self.policy.discriminators_with_plan if settings.discriminators == "with_plan" else "",
            **self._numbers(),
            **more,
        )
        return Message("system", self.system_prompt), Message("user", user, images=self._images)

    def _numbers(self) -> dict[str, int]:
        return {
            "min_findings": self.requirement,
            "max_differentials": self.policy.differential_settings.max_differentials,
        }


class _Attempt:
    """What came of asking for a plan."""

    def __init__(self) -> None:
        self.hypotheses: tuple[PlannedHypothesis, ...] = ()
        self.discriminators: tuple[Discriminator, ...] = ()
        self.remarks: tuple[str, ...] = ()
        self.problem = ""
        self.said = ""
        """The planner's own words, for sending them back."""
        self.hopeless = False
        """Whether asking again this turn is in vain."""
        self._usages: list[Usage] = []
        self._technical: tuple[str, ...] = ()

    @property
    def usage(self) -> Usage:
        return reduce(add, self._usages) if self._usages else Usage(requests=0)

    @property
    def for_the_record(self) -> tuple[str, ...]:
        """The remarks, and what the endpoint had to say, which is no business of the doctor's."""
        return (*self.remarks, *dict.fromkeys(self._technical))

    def heard(self, reply: Reply) -> None:
        self._usages.append(reply.usage)
        self._technical += reply.notes

    def failed(self, error: ModelError, problem: str) -> None:
        self._usages.append(error.usage or Usage())
        self.problem = problem

    def accept(
        self,
        hypotheses: Sequence[PlannedHypothesis],
        remarks: Sequence[str],
        discriminators: Sequence[Discriminator],
    ) -> None:
        self.hypotheses, self.discriminators = tuple(hypotheses), tuple(discriminators)
        self.remarks = (*self.remarks, *remarks)


def _with_findings(hypotheses: Sequence[PlannedHypothesis], fewest: int) -> list[PlannedHypothesis]:
    return [hypothesis for hypothesis in hypotheses if len(hypothesis.findings) >= fewest]


def _what_is_wrong(text: str, shape: type[BaseModel]) -> str:
    """Why a reply is no plan, in words the planner can act upon; read off the reply, so that a replay says the same."""
    try:
        parse(text, shape)
    except InvalidReplyError as problem:
        return str(problem)
    return "it is not the JSON object that was asked for"


def _margin(hypotheses: Sequence[Weighed]) -> float:
    """How far the leader is ahead; its whole confidence when there is nobody else."""
    return _ahead(hypotheses[0].confidence, hypotheses[1].confidence if len(hypotheses) > 1 else 0.0)


def _ahead(leader: float, other: float) -> float:
    # 0.62 - 0.5 is a little more than 0.12 in binary; what is exactly at the threshold must count as that.
    return round(leader - other, 9)


def _why_finished(hypotheses: Sequence[Weighed]) -> str:
    top = hypotheses[0]
    return (
        f"early finish: {top.diagnosis} with confidence {top.confidence:.2f}, margin {_margin(hypotheses):.2f}, "
        f"coverage {top.coverage:.2f}"
    )


_SPEAKERS = {"question": "Patient", "test": "Measurement", "images": "Clinic"}


def _transcript(exchanges: Sequence[Exchange]) -> str:
    """The dialogue up to the latest reply, oldest first; it only grows, so that a prompt cache can reuse it."""
    lines = []
    for exchange in exchanges:
        asked = f"REQUEST TEST: {exchange.content}" if exchange.kind == "test" else exchange.content
        lines += [f"Doctor: {asked}", f"{_SPEAKERS[exchange.kind]}: {exchange.reply}"]
    return "\n".join(lines[:-1])
