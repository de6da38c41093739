"""The planning engine: each turn a weighted differential from the doctor's own model, scored and decided upon by us.

One place decides what happens to a reply that is not good enough (`_plan`): it is sent back once; if it then lists too
few findings the requirement is relaxed by one, down to three; if there is still no plan the turn falls back to an open
question. The next turn tries again, and every turn that succeeds brings a relaxed requirement one step back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any, Literal

from agentclinic.agents.doctor import Heard, door_text
from agentclinic.agents.prompts import fill, joined
from agentclinic.cases.model import Door
from agentclinic.differential import Differential
from agentclinic.models.base import (
    ContextTooLongError,
    Image,
    MalformedError,
    Message,
    Model,
    Purpose,
    RefusedError,
    Request,
    Usage,
)
from agentclinic.models.payloads import (
    Discriminator,
    DiscriminatorPayload,
    Discriminators,
    Exchange,
    PlannedHypothesis,
    PlannerPayload,
    PlannerReply,
)
from agentclinic.policy.notes import fallback_notes, plan_notes
from agentclinic.policy.settings import FEWEST, PolicyFile
from agentclinic.policy.weighing import Weighed, as_differential, ranked, sift, weigh

COVERAGE_TO_FINISH = 0.6
"""Below this, one lucky finding could end the encounter (seeds/000, step 4)."""
TRIES = 2
"""Planner requests a turn may cost: more would double the price of a turn for a planner that cannot do it."""


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
    """Findings each hypothesis had to list."""
    remarks: tuple[str, ...] = ()
    usage: Usage = field(default_factory=lambda: Usage(requests=0))

    @property
    def diagnosis(self) -> str | None:
        """What to commit to, when it is time."""
        return self.hypotheses[0].diagnosis if self.kind == "finish" else None

    @property
    def differential(self) -> Differential | None:
        """The scores, for the record."""
        return as_differential(self.hypotheses)

    @property
    def details(self) -> dict[str, Any]:
        """Every number, for the record."""
        return {
            "decision": self.kind,
            "requirement": self.requirement,
            "margin": _margin(self.hypotheses),
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

    heard: Heard
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

    async def decide(self, heard: Heard, exchanges: tuple[Exchange, ...], *, turn: int) -> Decision:
        """Plan a turn: finish, advise, or fall back."""
        now = _Moment(heard, exchanges, turn)
        self._images = tuple(dict.fromkeys((*self._images, *heard.images)))
        asked = self.requirement
        attempt = await self._plan(now)
        if not attempt.hypotheses:
            notes = fallback_notes(self.policy, attempt.problem, attempt.remarks)
            remarks = (*attempt.remarks, f"planner unavailable: {attempt.problem}")
            return Decision("fallback", notes, requirement=asked, remarks=remarks, usage=attempt.usage)
        hypotheses = ranked([weigh(hypothesis) for hypothesis in attempt.hypotheses])
        if self._may_finish(hypotheses, now):
            remarks = (*attempt.remarks, _why_finished(hypotheses))
            return Decision("finish", remarks[-1], hypotheses, requirement=asked, remarks=remarks, usage=attempt.usage)
        close = self._close(hypotheses)
        found, usage, remarks = await self._discriminators(now, close, attempt)
        notes = plan_notes(self.policy, self._baseline.kind, hypotheses, close, found, remarks)
        return Decision("plan", notes, hypotheses, close, found, asked, remarks, usage)

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
        # 1e-9: 0.62 - 0.5 is a little more than 0.12 in binary.
        within = tuple(h for h in hypotheses if hypotheses[0].confidence - h.confidence <= gap + 1e-9)
        return within if len(within) > 1 else ()

    async def _plan(self, now: _Moment) -> _Attempt:
        """Ask for a plan; the one place that decides about trying again, relaxing and giving up."""
        settings = self.policy.differential_settings
        configured = settings.min_symptoms_per_disease
        attempt = _Attempt()
        messages = self._messages(self.policy.user_prompt_template, now)
        for tries_left in reversed(range(TRIES)):
            said = await self._ask(messages, now, attempt)
            if said is None:
                return attempt
            if isinstance(said, PlannerReply):
                sifted = sift(said.hypotheses, settings.max_differentials)
                enough = _with_findings(sifted.hypotheses, self.requirement)
                short = len(sifted.hypotheses) - len(enough)
                if sifted.hypotheses and not short:
                    attempt.accept(enough, sifted.remarks, said.discriminators)
                    if self.requirement < configured:
                        self.requirement += 1
                        attempt.remarks += (
                            f"{self.requirement} findings per diagnosis are asked for again from now on",
                        )
                    return attempt
                attempt.problem = (
                    f"{short} of {len(sifted.hypotheses)} diagnoses list fewer than {self.requirement} findings"
                    if sifted.hypotheses
                    else "no diagnosis was named"
                )
                if not tries_left and sifted.hypotheses:
                    return self._relaxed(attempt, sifted.hypotheses, sifted.remarks, said.discriminators)
            if tries_left:
                attempt.remarks += (f"plan sent back once: {attempt.problem}",)
                messages = self._sent_back(messages, attempt)
        return attempt

    def _relaxed(
        self,
        attempt: _Attempt,
        hypotheses: Sequence[PlannedHypothesis],
        remarks: tuple[str, ...],
        discriminators: Sequence[Discriminator],
    ) -> _Attempt:
        """Step 6: one finding fewer is enough, never fewer than three; those with still fewer are left out."""
        if self.requirement > FEWEST:
            self.requirement -= 1
            attempt.remarks += (
                f"requirement relaxed from {self.requirement + 1} to {self.requirement} findings per diagnosis, "
                f"because {attempt.problem}",
            )
        enough = _with_findings(hypotheses, self.requirement)
        if enough:
            left_out = len(hypotheses) - len(enough)
            if left_out:
                remarks = (*remarks, f"{left_out} diagnoses with fewer than {self.requirement} findings were left out")
            attempt.accept(enough, remarks, discriminators)
        return attempt

    async def _ask(self, messages: tuple[Message, ...], now: _Moment, attempt: _Attempt) -> PlannerReply | str | None:
        """One request: a plan, or the words that were none, or None where asking again would not help."""
        settings = self.policy.differential_settings
        request = Request(
            Purpose.PLANNER,
            messages,
            schema=PlannerReply,
            payload=PlannerPayload(
                self.door, now.exchanges, self.requirement, settings.max_differentials, self._baseline.told
            ),
            repair=False,
        )
        try:
            reply = await self.model.reply(request)
        except MalformedError as error:
            attempt.count(error.usage)
            attempt.problem, attempt.said = "no valid JSON came back", error.text
            return error.text
        except (RefusedError, ContextTooLongError) as error:
            attempt.count(error.usage)
            attempt.problem = f"the model {'refused' if error.kind == 'refused' else 'found the case too long'}"
            return None
        attempt.count(reply.usage)
        attempt.said = reply.text
        if not isinstance(reply.parsed, PlannerReply):
            attempt.problem = "no valid JSON came back"
            return reply.text
        return reply.parsed

    def _sent_back(self, messages: tuple[Message, ...], attempt: _Attempt) -> tuple[Message, ...]:
        told = fill(self.policy.retry, problem=attempt.problem, **self._numbers())
        # An empty answer cannot be sent back as one: some servers refuse that.
        said = (Message("assistant", attempt.said),) if attempt.said.strip() else ()
        return (*messages, *said, Message("user", told))

    async def _discriminators(
        self, now: _Moment, close: tuple[Weighed, ...], attempt: _Attempt
    ) -> tuple[tuple[Discriminator, ...], Usage, tuple[str, ...]]:
        """Step 5: what tells close hypotheses apart, from the plan itself or asked for on its own."""
        how = self.policy.differential_settings.discriminators
        if not close or how == "off":
            return (), attempt.usage, attempt.remarks
        if how == "with_plan":
            none = () if attempt.discriminators else ("the planner named nothing that tells them apart",)
            return attempt.discriminators, attempt.usage, (*attempt.remarks, *none)
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
            attempt.count(error.usage)
            return (), attempt.usage, (*attempt.remarks, f"no discriminators: {error.kind}")
        attempt.count(reply.usage)
        found = tuple(reply.parsed.discriminators) if isinstance(reply.parsed, Discriminators) else ()
        return found, attempt.usage, attempt.remarks

    def _messages(self, template: str, now: _Moment, **more: object) -> tuple[Message, ...]:
        settings = self.policy.differential_settings
        user = fill(
            template,
            door=door_text(self.door),
            baseline=f"[The patient's script]\n{self._baseline.text}" if self._baseline.text else "",
            transcript=_transcript(now.exchanges) or "(nothing has been said yet)",
            reply=now.heard.text if now.exchanges else "(none yet)",
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
        self._usages: list[Usage] = []

    @property
    def usage(self) -> Usage:
        return reduce(add, self._usages) if self._usages else Usage(requests=0)

    def count(self, usage: Usage | None) -> None:
        self._usages.append(usage or Usage(requests=1))

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


def _margin(hypotheses: Sequence[Weighed]) -> float:
    """How far the leader is ahead; its whole confidence when there is nobody else."""
    if not hypotheses:
        return 0.0
    second = hypotheses[1].confidence if len(hypotheses) > 1 else 0.0
    return round(hypotheses[0].confidence - second, 9)


def _why_finished(hypotheses: Sequence[Weighed]) -> str:
    top = hypotheses[0]
    return (
        f"early finish: {top.diagnosis} with confidence {top.confidence:.2f}, margin {_margin(hypotheses):.2f}, "
        f"coverage {top.coverage:.2f}"
    )


def _transcript(exchanges: Sequence[Exchange]) -> str:
    """The dialogue up to the latest reply, oldest first; it only grows, so that a prompt cache can reuse it."""
    lines = []
    for exchange in exchanges:
        asked = f"REQUEST TEST: {exchange.content}" if exchange.kind == "test" else exchange.content
        lines += [f"Doctor: {asked}", exchange.reply]
    return "\n".join(lines[:-1])
