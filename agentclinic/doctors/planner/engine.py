"""The planning engine: each turn the doctor's own model gives a weighted differential, and we score it and decide.

`_plan` alone decides what happens to a reply that is not good enough. It is sent back once. If it then still lists too
few findings, the requirement is relaxed as far as this plan needs, down to three. If there is still no plan, the turn
falls back to an open question. The next turn tries again, and each success restores a relaxed requirement by one.

If planning is inline, the doctor's request for this turn also asks for the plan, and the reply ends with the utterance.

Step numbers are those of docs/test-policy.md, "A turn, step by step".

`PolicyDoctor` plans before it speaks, and finishes early if the plan is sure enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import BaseModel

from agentclinic.clinic.doctor import Assignment, Observation, Speaker, utterance
from agentclinic.clinic.payloads import DoctorPayload
from agentclinic.clinic.prompts import fill, joined
from agentclinic.doctors.plain import PlainDoctor
from agentclinic.doctors.planner.prompting import Baseline, PlannerPrompts, Speak, fallback_notes, plan_notes
from agentclinic.doctors.planner.rules import check_order
from agentclinic.doctors.planner.schema import (
    MOST_DISCRIMINATORS,
    Discriminator,
    DiscriminatorPayload,
    Discriminators,
    InlinePayload,
    PlannedHypothesis,
    PlannerPayload,
    PlannerReply,
    PlanThenSpeak,
    Spoken,
    WeightedDifferential,
    WeighThenSpeak,
    sized,
)
from agentclinic.doctors.planner.settings import FEWEST, PolicyFile
from agentclinic.doctors.planner.weighing import Weighed, ranked, sift, weigh
from agentclinic.models.base import FATAL, Image, MalformedError, Message, ModelError, Purpose, Reply, Request
from agentclinic.models.structured import InvalidReplyError, parse
from agentclinic.results.turn import NOTHING_ASKED, Differential, Hypothesis, Source, Turn, Usage, as_differential
from agentclinic.results.utterance import DIAGNOSIS_READY, parse_action


class PolicyDoctor:
    """Gives the engine's notes to any doctor, and checks what it orders against the planning rules.

    With `inline` (the same doctor), plan and utterance come in one reply from its model. The doctor is then asked
    on its own, with the notes, only if no utterance came, or no diagnosis on the last turn or after it has repeated
    itself too often.
    """

    def __init__(
        self, doctor: Speaker, engine: DifferentialDiagnosisEngine, *, inline: PlainDoctor | None = None
    ) -> None:
        self.doctor = doctor
        self._inline = inline
        self._engine = engine
        self._broken: tuple[str, ...] = ()

    async def act(self, seen: Observation) -> tuple[Turn, ...]:
        """Plan, then finish or let the doctor speak, with the plan's notes if it has not spoken yet."""
        turn = seen.turn
        decision = await self._engine.decide(seen, broken=self._broken, speak=self._speak(seen))
        planned = Turn(
            turn=turn,
            role="planner",
            text=decision.notes,
            usage=decision.usage,
            differential=decision.differential,
            notes=decision.remarks,
            details=decision.details,
        )
        spoken = decision.spoken
        must_commit = seen.last or (self._inline is not None and self._inline.stuck)
        if spoken and must_commit and parse_action(spoken.text).kind != "diagnosis":
            spoken = None  # ask for the utterance alone: with a plan to fill in as well, small models forget to commit
        if decision.diagnosis:
            text = f"{DIAGNOSIS_READY}: {decision.diagnosis}"
            spoken = Reply(text, usage=NOTHING_ASKED, notes=("early finish by the planner",))
        if spoken:
            aside = list[Turn]()
            if self._inline:
                said = self._inline.speak(seen, spoken)
            else:
                said = utterance(spoken, turn=turn)
                self.doctor.say(seen.incoming, said.text)
        else:
            *aside, said = await self.doctor.act(replace(seen, notes=joined(seen.notes, decision.notes)))
        self._broken = ()
        if said.action and said.action.kind == "test":
            ruling = check_order(self._engine.policy, self._engine.door, said.action.content, seen.exchanges)
            self._broken = ruling.broken
            said = said.model_copy(update={"notes": (*said.notes, *ruling.lines)})
        return planned, *aside, said

    def _speak(self, seen: Observation) -> Speak | None:
        doctor = self._inline
        if doctor is None:
            return None
        return lambda task: doctor.request(replace(seen, notes=joined(seen.notes, task)))


COVERAGE_TO_FINISH = 0.6
"""Below this, one lucky finding could end the encounter; the original's value."""
TRIES = 2
"""Planner requests per turn: if the planner fails twice, more tries would only add cost."""
_FAILURES = {"refused": "the model refused", "context_too_long": "the model found the case too long"}
"""Errors that are the model's fault; all others are the endpoint's."""


@dataclass(frozen=True)
class Decision:
    """What the engine decides for a turn."""

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
    """For the record: what was corrected, relaxed or given up, and notes from the endpoint."""
    usage: Usage = field(default_factory=lambda: Usage(requests=0))
    spoken: Reply | None = None
    """What the doctor says, if it came with the plan; its usage is in `usage`."""

    @property
    def diagnosis(self) -> str | None:
        """The diagnosis to commit to, if it is time to finish."""
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


class DifferentialDiagnosisEngine:
    """Plans one encounter."""

    def __init__(self, assignment: Assignment, policy: PolicyFile, baseline: Baseline | None = None) -> None:
        self.model = assignment.model
        self.policy = policy
        self.door = assignment.door
        self.requirement = policy.differential_settings.min_symptoms_per_disease
        """Findings each hypothesis must list now; relaxed within a plan, and restored turn by turn."""
        self._baseline = baseline or Baseline()
        self._images: tuple[Image, ...] = ()
        self._prompts = PlannerPrompts(policy, assignment, self._baseline)

    async def decide(self, seen: Observation, *, broken: Sequence[str] = (), speak: Speak | None = None) -> Decision:
        """Plan a turn: finish, advise, or fall back. `broken` are rules the last order broke.

        With `speak`, plan and utterance come in one reply, and the decision may have the utterance.
        """
        self._images = tuple(dict.fromkeys((*self._images, *seen.incoming.images)))
        asked = self.requirement
        attempt = _Attempt(replace(seen, incoming=replace(seen.incoming, images=self._images)))
        await self._plan(attempt, self._request(attempt, speak, broken))
        hypotheses = ranked([weigh(hypothesis) for hypothesis in attempt.hypotheses])
        kind: Literal["plan", "finish", "fallback"] = "plan"
        close: tuple[Weighed, ...] = ()
        found: tuple[Discriminator, ...] = ()
        if not hypotheses:
            kind, notes = "fallback", fallback_notes(self.policy, attempt.problem, attempt.remarks, broken)
            attempt.remarks.append(f"planner unavailable: {attempt.problem}")
        elif self._may_finish(hypotheses, attempt):
            top = hypotheses[0]
            kind, notes = (
                "finish",
                (
                    f"early finish: {top.diagnosis} with confidence {top.confidence:.2f}, "
                    f"margin {_margin(hypotheses):.2f}, coverage {top.coverage:.2f}"
                ),
            )
            attempt.remarks.append(notes)
        else:
            close = self._close(hypotheses)
            found = await self._discriminators(attempt, close)
            notes = plan_notes(self.policy, self._baseline.kind, hypotheses, close, found, attempt.remarks, broken)
        return Decision(
            kind,
            notes,
            hypotheses,
            close,
            found,
            asked,
            self.requirement,
            (*attempt.remarks, *dict.fromkeys(attempt.endpoint_notes)),
            attempt.usage,
            attempt.spoken,
        )

    def _may_finish(self, hypotheses: Sequence[Weighed], attempt: _Attempt) -> bool:
        """Step 4: something was said, and the leader is sure enough, far enough ahead and covered well enough."""
        top, settings = hypotheses[0], self.policy.differential_settings
        sure = (
            top.confidence >= self.policy.constraints.finish_early_if_confident
            and _margin(hypotheses) > settings.confidence_close_threshold
            and top.coverage >= COVERAGE_TO_FINISH
            and bool(attempt.now.exchanges)
            and attempt.now.turn > 1
        )
        if sure and len(hypotheses) < settings.min_diagnoses:
            attempt.remarks.append(
                f"no early finish: the plan has {len(hypotheses)} of at least {settings.min_diagnoses} diagnoses"
            )
            return False
        return sure

    def _close(self, hypotheses: Sequence[Weighed]) -> tuple[Weighed, ...]:
        """The leader and those within the margin of it; empty if there are none."""
        gap = self.policy.differential_settings.confidence_close_threshold
        within = tuple(h for h in hypotheses if _ahead(hypotheses[0].confidence, h.confidence) <= gap)
        return within if len(within) > 1 else ()

    def _request(self, attempt: _Attempt, speak: Speak | None, broken: Sequence[str]) -> Request:
        """The request for a plan; inline, the doctor's own request with a plan in it."""
        settings, now = self.policy.differential_settings, attempt.now
        known = PlannerPayload(
            self.door, now.exchanges, self.requirement, settings.max_differentials, self._baseline.exchanges
        )
        with_plan = settings.discriminators == "with_plan"
        # Not the relaxed requirement: the schema is part of the prompt, and a prompt cache needs it unchanged.
        numbers = (settings.min_diagnoses, settings.max_differentials), settings.min_symptoms_per_disease
        if speak is None:
            return Request(
                Purpose.PLANNER,
                self._prompts.plan(now, self.requirement),
                schema=sized(PlannerReply if with_plan else WeightedDifferential, *numbers),
                payload=known,
                repair=False,
            )
        request = self._prompts.inline(speak, self.requirement, broken)
        assert isinstance(request.payload, DoctorPayload), "a doctor's request says what the doctor knows"
        return replace(
            request,
            schema=sized(PlanThenSpeak if with_plan else WeighThenSpeak, *numbers),
            payload=InlinePayload(request.payload, known),
            repair=False,
        )

    async def _plan(self, attempt: _Attempt, request: Request) -> None:
        """Ask for a plan; the one place that decides about trying again, relaxing and giving up."""
        for tries_left in reversed(range(TRIES)):
            plan = await self._ask(request, attempt)
            if attempt.hopeless or (plan is not None and self._accept(plan, attempt, relax=not tries_left)):
                return
            if tries_left:
                attempt.remarks.append(f"plan sent back once: {attempt.problem}")
                numbers = self._prompts.numbers(self.requirement)
                retry = fill(self.policy.retry, problem=attempt.problem, **numbers)
                # Some servers refuse an empty message, so an empty answer is not sent back as one.
                said = (Message("assistant", attempt.said),) if attempt.said.strip() else ()
                request = replace(request, messages=(*request.messages, *said, Message("user", retry)))

    def _accept(self, plan: WeightedDifferential, attempt: _Attempt, *, relax: bool) -> bool:
        """Use a plan whose diagnoses list enough findings; with `relax`, as few as this plan needs (step 6)."""
        settings = self.policy.differential_settings
        hypotheses, remarks = sift(plan.hypotheses, settings.max_differentials)
        if not hypotheses:
            attempt.problem = "no diagnosis was named"
            return False
        short = len(hypotheses) - len(_with_findings(hypotheses, self.requirement))
        if short:
            attempt.problem = f"{short} of {len(hypotheses)} diagnoses list fewer than {self.requirement} findings"
            if not relax:
                return False
            self._relax(hypotheses, attempt)
        elif self.requirement < settings.min_symptoms_per_disease:
            self.requirement += 1
            attempt.remarks.append(f"{self.requirement} findings per diagnosis are asked for again from now on")
        enough = _with_findings(hypotheses, FEWEST)
        if not enough:
            return False
        attempt.remarks += [
            f"{left_out.diagnosis}: left out, fewer than {FEWEST} findings"
            for left_out in hypotheses
            if left_out not in enough
        ]
        attempt.hypotheses = tuple(enough)
        attempt.discriminators = tuple(plan.discriminators) if isinstance(plan, PlannerReply) else ()
        attempt.remarks += remarks
        return True

    def _relax(self, hypotheses: Sequence[PlannedHypothesis], attempt: _Attempt) -> None:
        """Require no more than the shortest usable diagnosis lists."""
        counts = [len(hypothesis.findings) for hypothesis in hypotheses]
        asked, self.requirement = self.requirement, min((n for n in counts if n >= FEWEST), default=FEWEST)
        if self.requirement < asked:
            attempt.remarks.append(
                f"requirement relaxed from {asked} to {self.requirement} findings per diagnosis, "
                f"because {attempt.problem}"
            )

    async def _ask(self, request: Request, attempt: _Attempt) -> WeightedDifferential | None:
        """Make one request: a plan, or None with the problem in the attempt."""
        assert request.schema is not None
        try:
            reply = await self.model.reply(request)
        except MalformedError as error:
            attempt.usage += error.usage or Usage()
            reply = Reply(error.text, usage=NOTHING_ASKED)
        except ModelError as error:
            if error.kind in FATAL:
                raise
            attempt.usage += error.usage or Usage()
            attempt.problem = _FAILURES.get(error.kind, f"the endpoint failed ({error.kind})")
            attempt.hopeless = True
            return None
        attempt.add(reply)
        attempt.said = reply.text
        if issubclass(request.schema, (PlanThenSpeak, WeighThenSpeak)):
            words = _utterance(reply)
            if words:
                attempt.spoken = Reply(words, usage=NOTHING_ASKED, differential=reply.differential)
        if isinstance(reply.parsed, WeightedDifferential):
            return reply.parsed
        attempt.problem = f"no valid plan came back ({_what_is_wrong(attempt.said, request.schema)})"
        return None

    async def _discriminators(self, attempt: _Attempt, close: tuple[Weighed, ...]) -> tuple[Discriminator, ...]:
        """Step 5: what distinguishes close hypotheses, from the plan itself or from a separate request."""
        how = self.policy.differential_settings.discriminators
        if not close or how == "off":
            return ()
        found = attempt.discriminators if how == "with_plan" else await self._ask_discriminators(attempt, close)
        if found == ():
            attempt.remarks.append("the planner named nothing that tells them apart")
        return (found or ())[:MOST_DISCRIMINATORS]

    async def _ask_discriminators(
        self, attempt: _Attempt, close: tuple[Weighed, ...]
    ) -> tuple[Discriminator, ...] | None:
        """Ask for discriminators alone; None, without another try, if the answer is not usable."""
        names = tuple(hypothesis.diagnosis for hypothesis in close)
        request = Request(
            Purpose.DISCRIMINATOR,
            self._prompts.discriminators(attempt.now, names),
            schema=Discriminators,
            payload=DiscriminatorPayload(self.door, (*self._baseline.exchanges, *attempt.now.exchanges), names),
            repair=False,
        )
        try:
            reply = await self.model.reply(request)
        except ModelError as error:
            if error.kind in FATAL:
                raise
            attempt.usage += error.usage or Usage()
            attempt.remarks.append(f"no discriminators: {error.kind}")
            return None
        attempt.add(reply)
        return tuple(reply.parsed.discriminators) if isinstance(reply.parsed, Discriminators) else ()


@dataclass
class _Attempt:
    """One turn of planning: the case so far, and the results of asking for a plan."""

    now: Observation
    """With all images that have been shown."""
    hypotheses: tuple[PlannedHypothesis, ...] = ()
    discriminators: tuple[Discriminator, ...] = ()
    remarks: list[str] = field(default_factory=list)
    problem: str = ""
    said: str = ""
    """The planner's own words, to send them back."""
    spoken: Reply | None = None
    """The latest utterance that came with a plan, good or bad."""
    hopeless: bool = False
    """Whether asking again this turn would not help."""
    usage: Usage = NOTHING_ASKED
    endpoint_notes: tuple[str, ...] = ()
    """For the record; the doctor is not shown them."""

    def add(self, reply: Reply) -> None:
        self.usage += reply.usage
        self.endpoint_notes += reply.notes


def _utterance(reply: Reply) -> str:
    """The doctor's words in a reply with plan and utterance, even if the plan is unusable; empty if there are none."""
    if isinstance(reply.parsed, PlanThenSpeak | WeighThenSpeak):
        return reply.parsed.utterance.strip()
    try:
        spoken = parse(reply.text, Spoken)
    except InvalidReplyError:
        # Prose is what a doctor says; a broken object is not.
        return "" if "{" in reply.text else reply.text.strip()
    assert isinstance(spoken, Spoken)
    return spoken.utterance.strip()


def _with_findings(hypotheses: Sequence[PlannedHypothesis], fewest: int) -> list[PlannedHypothesis]:
    return [hypothesis for hypothesis in hypotheses if len(hypothesis.findings) >= fewest]


def _what_is_wrong(text: str, shape: type[BaseModel]) -> str:
    """Why a reply is not a plan, in words the planner can act on; from the reply alone, so a replay says the same."""
    try:
        parse(text, shape)
    except InvalidReplyError as problem:
        return str(problem)
    return "it is not the JSON object that was asked for"


def _margin(hypotheses: Sequence[Weighed]) -> float:
    """How far the leader is ahead; its whole confidence if it is alone."""
    return _ahead(hypotheses[0].confidence, hypotheses[1].confidence if len(hypotheses) > 1 else 0.0)


def _ahead(leader: float, other: float) -> float:
    # 0.62 - 0.5 is slightly more than 0.12 in binary; a margin exactly at the threshold must count as equal to it.
    return round(leader - other, 9)
