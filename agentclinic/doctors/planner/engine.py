"""The planning engine: each turn the doctor's own model gives a differential, and we score it and decide.

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
from agentclinic.doctors.planner.payloads import DiscriminatorPayload, InlinePayload, PlannerPayload
from agentclinic.doctors.planner.prompting import (
    Baseline,
    Planned,
    PlannerPrompts,
    Speak,
    decimals,
    fallback_notes,
    plan_notes,
)
from agentclinic.doctors.planner.rules import as_advised, check_order, expense, is_done, just_asked
from agentclinic.doctors.planner.schema import (
    MOST_DISCRIMINATORS,
    Discriminator,
    Discriminators,
    PlanThenSpeak,
    Spoken,
    TableReply,
    TableThenSpeak,
    WeightedDifferential,
    WeighThenSpeak,
)
from agentclinic.doctors.planner.scoring import AnyPlan, Reading, Scored, close_to_leader, margin, scoring_of
from agentclinic.doctors.planner.settings import FEWEST, PolicyFile
from agentclinic.doctors.planner.table import OTHER, Step, Table, probability
from agentclinic.doctors.planner.weighing import Weighed
from agentclinic.models.base import FATAL, Image, MalformedError, Message, ModelError, Purpose, Reply, Request
from agentclinic.models.structured import InvalidReplyError, parse
from agentclinic.results.turn import NOTHING_ASKED, Differential, Turn, Usage
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
            policy, order = self._engine.policy, said.action.content
            ruling = check_order(policy, self._engine.door, order, seen.exchanges)
            if decision.notes and not spoken:
                ruling = as_advised(policy, ruling, order, decision.step)
            self._broken = ruling.broken
            said = said.model_copy(update={"notes": (*said.notes, *ruling.lines)})
        return planned, *aside, said

    def _speak(self, seen: Observation) -> Speak | None:
        doctor = self._inline
        if doctor is None:
            return None
        return lambda task: doctor.request(replace(seen, notes=joined(seen.notes, task)))


TRIES = 2
"""Planner requests per turn: if the planner fails twice, more tries would only add cost."""
NEARLY_AS_MUCH = 0.7
"""Share of the best step's information with which a cheaper step comes first: ratings are not exact enough to tell
steps apart that differ less."""
_FAILURES = {"refused": "the model refused", "context_too_long": "the model found the case too long"}
"""Errors that are the model's fault; all others are the endpoint's."""


@dataclass(frozen=True)
class Decision:
    """What the engine decides for a turn."""

    kind: Literal["plan", "finish", "fallback"]
    notes: str
    """What the doctor is shown."""
    hypotheses: tuple[Scored, ...] = ()
    close: tuple[Scored, ...] = ()
    discriminators: tuple[Discriminator, ...] = ()
    requirement: int = 0
    """Findings each hypothesis, or the table, had to list when the planner was asked."""
    next_requirement: int = 0
    """Findings it will have to list on the next turn, after relaxing or restoring."""
    remarks: tuple[str, ...] = ()
    """For the record: what was corrected, relaxed or given up, and notes from the endpoint."""
    usage: Usage = field(default_factory=lambda: Usage(requests=0))
    spoken: Reply | None = None
    """What the doctor says, if it came with the plan; its usage is in `usage`."""
    differential: Differential | None = None
    """The numbers, for the record."""
    table: Table | None = None
    """With `scoring: bayes`, the table that the numbers come from."""
    danger: str = ""
    step: str = ""
    """The best next step in the notes."""

    @property
    def diagnosis(self) -> str | None:
        """The diagnosis to commit to, if it is time to finish."""
        return self.hypotheses[0].diagnosis if self.kind == "finish" else None

    @property
    def details(self) -> dict[str, Any]:
        """Every number, for the record."""
        return {
            "decision": self.kind,
            "requirement": self.requirement,
            "next_requirement": self.next_requirement,
            "margin": margin(self.hypotheses) if self.hypotheses else None,
            "close": [hypothesis.diagnosis for hypothesis in self.close],
            "hypotheses": [_numbers(hypothesis, self.table) for hypothesis in self.hypotheses],
            "discriminators": [found.model_dump() for found in self.discriminators],
            **({"danger": self.danger} if self.danger else {}),
            **({"table": self.table.recorded} if self.table else {}),
        }


def _numbers(hypothesis: Scored, table: Table | None) -> dict[str, Any]:
    if isinstance(hypothesis, Weighed):
        return {
            "diagnosis": hypothesis.diagnosis,
            "confidence": round(hypothesis.confidence, 4),
            "coverage": round(hypothesis.coverage, 4),
            "support": hypothesis.support,
            "contradiction": hypothesis.contradiction,
            "unknown": hypothesis.unknown,
            "findings": [[f.finding, f.weight, f.expected, f.observed] for f in hypothesis.findings],
        }
    assert table is not None
    return {
        "diagnosis": hypothesis.diagnosis,
        "prior": round(table.prior[hypothesis.diagnosis], 4),
        "posterior": round(hypothesis.confidence, 6),
    }


class DifferentialDiagnosisEngine:
    """Plans one encounter.

    With `rules`, the notes end with the planning rules, for a doctor whose system prompt does not have them.
    """

    def __init__(
        self, assignment: Assignment, policy: PolicyFile, baseline: Baseline | None = None, *, rules: bool = False
    ) -> None:
        self.model = assignment.model
        self.policy = policy
        self.door = assignment.door
        self.requirement = policy.differential_settings.min_symptoms_per_disease
        """Findings each hypothesis must list now; relaxed within a plan, and restored turn by turn."""
        self._baseline = baseline or Baseline()
        self._images: tuple[Image, ...] = ()
        self._prompts = PlannerPrompts(policy, assignment, self._baseline)
        self._scoring = scoring_of(policy)
        self._rules = rules
        self._left_out: tuple[str, ...] = ()
        """Diagnoses of the last plan for which there was no room."""

    async def decide(self, seen: Observation, *, broken: Sequence[str] = (), speak: Speak | None = None) -> Decision:
        """Plan a turn: finish, advise, or fall back. `broken` are rules the last order broke.

        With `speak`, plan and utterance come in one reply, and the decision may have the utterance.
        """
        self._images = tuple(dict.fromkeys((*self._images, *seen.incoming.images)))
        asked, scoring = self.requirement, self._scoring
        attempt = _Attempt(replace(seen, incoming=replace(seen.incoming, images=self._images)))
        await self._plan(attempt, self._request(attempt, speak, broken))
        read = attempt.reading
        kind: Literal["plan", "finish", "fallback"] = "plan"
        close: tuple[Scored, ...] = ()
        found: tuple[Discriminator, ...] = ()
        step = ""
        if read is None:
            kind, notes = (
                "fallback",
                fallback_notes(self.policy, attempt.problem, attempt.remarks, broken, rules=self._rules),
            )
            attempt.remarks.append(f"planner unavailable: {attempt.problem}")
        elif self._may_finish(read.hypotheses, attempt):
            kind, notes = "finish", self._reason(read.hypotheses)
            attempt.remarks.append(notes)
        else:
            close = close_to_leader(read.hypotheses, self.policy.differential_settings.confidence_close_threshold)
            found = await self._discriminators(attempt, read, close)
            other = read.table.posterior[OTHER] if read.table else None
            step = self._step(read, found, attempt)
            shown = Planned(seen.turn, read.hypotheses, close, step, read.danger, other, attempt.remarks, broken)
            notes = plan_notes(self.policy, self._baseline.kind, shown, rules=self._rules)
        hypotheses = read.hypotheses if read else ()
        return Decision(
            kind,
            notes,
            hypotheses,
            close,
            found,
            asked,
            self.requirement,
            (
                *attempt.remarks,
                *(read.remarks if read else ()),
                *attempt.recorded,
                *dict.fromkeys(attempt.endpoint_notes),
            ),
            attempt.usage,
            attempt.spoken,
            scoring.differential(hypotheses) if hypotheses else None,
            read.table if read else None,
            read.danger if read else "",
            step,
        )

    def _may_finish(self, hypotheses: Sequence[Scored], attempt: _Attempt) -> bool:
        """Step 4: something was said, the leader is sure enough, and nothing else speaks against finishing."""
        now, fewest = attempt.now, self.policy.differential_settings.min_diagnoses
        if not (self._scoring.sure(hypotheses) and now.exchanges and now.turn > 1):
            return False
        doubt = self._scoring.doubt(lambda request: is_done(self.policy, request, now.exchanges))
        if len(hypotheses) < fewest:
            doubt = f"the plan has {len(hypotheses)} of at least {fewest} diagnoses"
        if doubt:
            attempt.remarks.append(f"no early finish: {doubt}")
        return not doubt

    def _reason(self, hypotheses: Sequence[Scored]) -> str:
        """Why the encounter ends, in numbers."""
        top, lead, gap = hypotheses[0], margin(hypotheses), self.policy.differential_settings.confidence_close_threshold
        if self._scoring.table is not None:
            return f"early finish: {top.diagnosis} with probability {probability(top.confidence)}"
        digits = decimals([hypothesis.confidence for hypothesis in hypotheses], gap, self.policy.finish_at)
        return (
            f"early finish: {top.diagnosis} with confidence {top.confidence:.{digits}f}, "
            f"margin {lead:.{digits}f}, coverage {top.coverage:.2f}"
        )

    def _request(self, attempt: _Attempt, speak: Speak | None, broken: Sequence[str]) -> Request:
        """The request for a plan; inline, the doctor's own request with a plan in it."""
        now, table = attempt.now, self._scoring.table
        most = self.policy.differential_settings.max_differentials
        known = PlannerPayload(self.door, now.exchanges, self.requirement, most, self._baseline.exchanges, table)
        schema = self._scoring.shape(inline=speak is not None)
        if speak is None:
            messages = self._prompts.plan(now, schema, self.requirement, table, self._left_out)
            return Request(Purpose.PLANNER, messages, schema=schema, described=True, payload=known, repair=False)
        request = self._prompts.inline(speak, schema, self.requirement, broken, table, self._left_out)
        assert isinstance(request.payload, DoctorPayload), "a doctor's request says what the doctor knows"
        payload = InlinePayload(request.payload, known)
        return replace(request, schema=schema, described=True, payload=payload, repair=False)

    async def _plan(self, attempt: _Attempt, request: Request) -> None:
        """Ask for a plan; the one place that decides about trying again, relaxing and giving up."""
        for tries_left in reversed(range(TRIES)):
            plan = await self._ask(request, attempt)
            if attempt.hopeless or (plan is not None and self._accept(plan, attempt, relax=not tries_left)):
                return
            if tries_left:
                attempt.remarks.append(f"plan sent back once: {attempt.problem}")
                numbers = self._prompts.numbers(self.requirement)
                retry = fill(self.policy.texts.retry, problem=attempt.problem, **numbers)
                # Some servers refuse an empty message, so an empty answer is not sent back as one.
                said = (Message("assistant", attempt.said),) if attempt.said.strip() else ()
                request = replace(request, messages=(*request.messages, *said, Message("user", retry)))

    def _accept(self, plan: AnyPlan, attempt: _Attempt, *, relax: bool) -> bool:
        """Use a plan that lists enough findings; with `relax`, as few as this plan needs (step 6)."""
        read = self._scoring.read(plan)
        if not read.counts:
            attempt.problem = "no diagnosis was named"
            return False
        short = self._scoring.shortage(read.counts, self.requirement)
        if short:
            attempt.problem = short
            if not relax:
                return False
            self._relax(read.counts, attempt)
        elif self.requirement < self.policy.differential_settings.min_symptoms_per_disease:
            self.requirement += 1
            attempt.remarks.append(f"{self.requirement} findings {self._each} are asked for again from now on")
        if not read.hypotheses:
            return False
        attempt.reading = read
        self._left_out = read.left_out
        self._scoring.keep(read)
        return True

    def _relax(self, counts: Sequence[int], attempt: _Attempt) -> None:
        """Require no more than the shortest usable list has."""
        asked, self.requirement = self.requirement, min((n for n in counts if n >= FEWEST), default=FEWEST)
        if self.requirement < asked:
            attempt.remarks.append(
                f"requirement relaxed from {asked} to {self.requirement} findings {self._each}, "
                f"because {attempt.problem}"
            )

    @property
    def _each(self) -> str:
        return "per diagnosis" if self._scoring.table is None else "in the table"

    async def _ask(self, request: Request, attempt: _Attempt) -> AnyPlan | None:
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
        if issubclass(request.schema, _SPEAKING):
            words = _utterance(reply)
            if words:
                attempt.spoken = Reply(words, usage=NOTHING_ASKED, differential=reply.differential)
        if isinstance(reply.parsed, WeightedDifferential | TableReply):
            return reply.parsed
        attempt.problem = f"no valid plan came back ({_what_is_wrong(attempt.said, request.schema)})"
        return None

    async def _discriminators(
        self, attempt: _Attempt, read: Reading, close: tuple[Scored, ...]
    ) -> tuple[Discriminator, ...]:
        """Step 5: what tells hypotheses apart and has not been done, the best first."""
        how = self.policy.differential_settings.discriminators
        if how == "off":
            return ()
        if read.table:
            steps = self._cheapest_first(read.table.steps(lambda request: self._is_asked(request, attempt)))
            leaders = [hypothesis.diagnosis for hypothesis in read.hypotheses[:2]]
            found = [Discriminator(request=step.request, tells_apart=leaders) for step in steps if step.bits > 0]
            return tuple(found[:MOST_DISCRIMINATORS])
        named = read.discriminators
        if how == "separate":
            asked = await self._ask_discriminators(attempt, close) if close else ()
            named = asked or ()
        if close and not named:
            attempt.recorded.append("the planner named nothing that tells them apart")
        return tuple(one for one in named if not self._is_asked(one.request, attempt))[:MOST_DISCRIMINATORS]

    def _is_asked(self, request: str, attempt: _Attempt) -> bool:
        """Whether it should not be proposed again: it was done, or has just been asked in other words."""
        before = attempt.now.exchanges
        return is_done(self.policy, request, before) or just_asked(request, before)

    def _cheapest_first(self, steps: Sequence[Step]) -> list[Step]:
        """Steps by what they should tell, but of those that tell nearly as much as the best, the cheapest first."""
        enough = NEARLY_AS_MUCH * steps[0].bits if steps else 0.0
        near = [step for step in steps if step.bits >= enough]
        return [*sorted(near, key=lambda step: expense(self.policy, step.request)), *steps[len(near) :]]

    def _step(self, read: Reading, found: Sequence[Discriminator], attempt: _Attempt) -> str:
        """The best next step: the first discriminator, or else what is not known of the leader."""
        if found:
            return found[0].request
        if self.policy.differential_settings.discriminators == "off":
            return ""
        requests = {row.finding: row.request for row in read.table.rows} if read.table else {}
        unknowns = (words.removeprefix("absence of ") for words in read.hypotheses[0].unknowns)
        unknown = next((words for words in unknowns if not self._is_asked(requests.get(words) or words, attempt)), "")
        return f"find out about {unknown}" if unknown else ""

    async def _ask_discriminators(
        self, attempt: _Attempt, close: tuple[Scored, ...]
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
            attempt.recorded.append(f"no discriminators: {error.kind}")
            return None
        attempt.add(reply)
        return tuple(reply.parsed.discriminators) if isinstance(reply.parsed, Discriminators) else ()


@dataclass
class _Attempt:
    """One turn of planning: the case so far, and the results of asking for a plan."""

    now: Observation
    """With all images that have been shown."""
    reading: Reading | None = None
    """The plan; None if there is none."""
    remarks: list[str] = field(default_factory=list)
    """On the planning of this turn, for the doctor and the record."""
    recorded: list[str] = field(default_factory=list)
    """For the record alone."""
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


_SPEAKING = (PlanThenSpeak, WeighThenSpeak, TableThenSpeak)


def _utterance(reply: Reply) -> str:
    """The doctor's words in a reply with plan and utterance, even if the plan is unusable; empty if there are none."""
    if isinstance(reply.parsed, _SPEAKING):
        return reply.parsed.utterance.strip()
    try:
        spoken = parse(reply.text, Spoken)
    except InvalidReplyError:
        # Prose is what a doctor says; a broken object is not.
        return "" if "{" in reply.text else reply.text.strip()
    assert isinstance(spoken, Spoken)
    return spoken.utterance.strip()


def _what_is_wrong(text: str, shape: type[BaseModel]) -> str:
    """Why a reply is not a plan, in words the planner can act on; from the reply alone, so a replay says the same."""
    try:
        parse(text, shape)
    except InvalidReplyError as problem:
        return str(problem)
    return "it is not the JSON object that was asked for"
