"""What a run would cost: requests, tokens and dollars by role, worked out from its cases and prompts.

Nothing is sent. The numbers are meant to be right within a factor of two, so that a run of ten dollars is not mistaken
for one of a thousand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from agentclinic.cases.model import Case, as_text
from agentclinic.clinic.judge import RelationVerdict, judge_texts
from agentclinic.clinic.patient import Simulator
from agentclinic.clinic.prompts import Prompt
from agentclinic.config import ROLE_NAMES, JudgeMode, SimulatorChoice, is_at_endpoint
from agentclinic.doctors.reference import REFERENCES
from agentclinic.memory.retrieval import CANDIDATES, MOST_OFFERED
from agentclinic.models.structured import instruction
from agentclinic.runs.auto import MOST_REQUESTS, known, sample_of
from agentclinic.runs.build import Models, models_in_use
from agentclinic.runs.plan import Plan, Unit

CHARACTERS = 4
"""Characters in a token of English, the usual rule of thumb."""
TYPICAL_SHARE = 0.75
"""Share of its turns that a doctor uses: the builtin one takes 15.8 of 20 on OpenOSCE, and many models fewer."""
TESTS = 1 / 3
"""Share of a doctor's turns that go to the laboratory; the builtin doctor's is 0.37 on OpenOSCE."""
QUESTION, ANSWER, RESULT = 40, 40, 60
"""Tokens of a doctor's utterance, a patient's and a laboratory's reply. The builtin roles write 10, 20 and 41;
language models write more."""
VERDICT, RELATION = 5, 60
"""Tokens of a judge's Yes or No, and of a relation with its reason."""
PLAN, NOTES = 600, 150
"""Tokens of a planner's differential (five diagnoses with four findings each) and of the notes made from it."""
ADDED, TABLE = 250, 600
"""With `scoring: bayes`, tokens of what a plan adds to the table, and of the table halfway through an encounter."""
STEP = 250
"""Tokens of an uncertainty-aware doctor's step: new facts, open questions and the next action."""
ADVICE = 120
"""Tokens of two experiences of about two sentences each, as the doctor is shown them."""
CONFIDENCE = 150
"""Tokens of a differential with probabilities."""


@dataclass(frozen=True)
class Amount:
    requests: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            self.requests + other.requests,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )

    @property
    def tokens(self) -> dict[str, int]:
        """Whole tokens, by the names they have in a record."""
        return {"input_tokens": round(self.input_tokens), "output_tokens": round(self.output_tokens)}


@dataclass(frozen=True)
class Row:
    role: str
    model: str
    host: str
    amount: Amount
    cost_usd: float | None
    """None if the price is not known."""
    once: bool = False
    """Whether all runs of a command share it."""


@dataclass(frozen=True)
class Estimate:
    """What a command would use; `most` is with every turn used and every retry needed that we plan for."""

    count: int
    what: str
    """What is counted: encounters, diagnoses to judge, cases to make."""
    typical: tuple[Row, ...]
    most: tuple[Row, ...]
    based_on: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "dry_run": True,
            "count": self.count,
            "what": self.what,
            "typical": _table(self.typical),
            "most": _table(self.most),
            "based_on": list(self.based_on),
        }


def estimate_run(plan: Plan, units: Iterable[Unit] | None = None) -> Estimate:
    """What playing these units of a plan would use; all of them if not given."""
    models = Models(plan.settings, plan.data_class)
    chosen = list(plan.units if units is None else units)
    limit = plan.settings.run.total_inferences
    usual = max(1, round(TYPICAL_SHARE * limit))
    before = {role: known(plan, role, models) for role in plan.undecided} if plan.settings.run.check else {}
    tried = [role for role, choice in before.items() if choice is None and chosen]
    trials = tuple(_trial(plan, role, models) for role in tried)

    def played(simulator: Literal["grounded", "voiced"], turns: int) -> tuple[Row, ...]:
        """Where it is not decided yet how a role is played, it is played like this."""
        guess = SimulatorChoice(simulator=simulator, because="not decided yet")
        as_if = plan.decided({role: choice or guess for role, choice in before.items()})
        amounts = _sum(_encounter(as_if, unit.case, turns) for unit in chosen)
        return trials + rows(models, amounts, models_in_use(as_if.settings))

    decisions = tuple(
        f"simulator auto: {ROLE_NAMES[role]}: "
        + (
            f"{choice.simulator}, decided on {(choice.decided_at or '')[:10]}; no request needed"
            if choice
            else f"at most {MOST_REQUESTS} requests decide between voiced (typical) and grounded (at most)"
        )
        for role, choice in before.items()
    )
    return Estimate(
        len(chosen),
        "encounters",
        played("voiced", usual),
        played("grounded", limit),
        (*decisions, *_assumptions(plan, usual)),
    )


def _trial(plan: Plan, role: str, models: Models) -> Row:
    """What it takes to decide how a model plays a role."""
    sample = sample_of(role)
    patient = role == "patient"
    told = sum(
        _simulated(plan.prompts[role], "grounded", as_text(row.case.patient if patient else row.case.exam)) + QUESTION
        for row in sample
    )
    name, endpoint = models.model_for(role)
    amount = Amount(MOST_REQUESTS, told / len(sample) * MOST_REQUESTS, MOST_REQUESTS * (ANSWER if patient else RESULT))
    cost = models.cost_usd(role, amount.tokens)
    return Row(f"{role} (auto)", name, models.host(endpoint), amount, cost, once=True)


def added(estimates: Sequence[Estimate]) -> Estimate:
    return Estimate(
        sum(one.count for one in estimates),
        estimates[0].what,
        _merged(row for one in estimates for row in one.typical),
        _merged(row for one in estimates for row in one.most),
        tuple(dict.fromkeys(line for one in estimates for line in one.based_on)),
    )


def rows(models: Models, amounts: dict[str, Amount], in_use: Iterable[str]) -> tuple[Row, ...]:
    """The roles whose model is at an endpoint, with prices; the other roles cost nothing."""
    # Planner and synthesis use the doctor's model unless another is named.
    asking = {*in_use, *(("planner", "synthesis") if "doctor" in in_use else ())}
    found = []
    for role, amount in amounts.items():
        name, endpoint = models.model_for(role)
        if role not in asking or not is_at_endpoint(name) or not amount.requests:
            continue
        found.append(Row(role, name, models.host(endpoint), amount, models.cost_usd(role, amount.tokens)))
    return tuple(found)


def total(some: Iterable[Row]) -> Row:
    """The sum of rows; its cost is unknown if that of one row is."""
    every = list(some)
    costs = [row.cost_usd for row in every]
    amount = sum((row.amount for row in every), Amount())
    return Row("total", "", "", amount, None if None in costs else sum(filter(None, costs)))


def tokens_in(*texts: str) -> float:
    return sum(map(len, texts)) / CHARACTERS


def _encounter(plan: Plan, case: Case, turns: int) -> dict[str, Amount]:
    """What one encounter of so many turns uses, by role; the last turn is the diagnosis and gets no reply."""
    run, prompts = plan.settings.run, plan.prompts
    reference = REFERENCES.get(run.doctor)
    turns = turns if reference is None or reference.turns else 1
    replies = turns - 1
    tests = 0.0 if reference and not reference.tests else replies * TESTS
    asked = replies - tests
    exchange = QUESTION + ((asked * ANSWER + tests * RESULT) / replies if replies else 0.0)
    heard = max(0, turns - 2) / 2 * exchange  # what an average reply has before it
    door = tokens_in(case.door.told, case.door.demographics)
    planner, memory = plan.settings.planner, plan.settings.memory
    inline = planner is not None and planner.inline

    said = 1 if reference and not reference.own_words else turns
    history = exchange * (replies if said == 1 else turns * replies / 2)
    chat = not plan.agent and plan.roles.dialogue["doctor"] == "chat"
    own = door + (
        tokens_in(prompts["doctor"].text("chat_system"), prompts["doctor"].text("chat_turn"))
        if chat
        else _fixed(prompts["uncertainty"] if plan.agent else prompts["doctor"])
    )
    words = STEP if plan.agent else QUESTION + (PLAN if inline else 0)
    chart = tokens_in(as_text(case.patient), as_text(case.exam)) if run.doctor == "full_information" else 0.0
    notes = (NOTES if plan.policy and not inline else 0) + (ADVICE if plan.memory else 0)
    spoken = Amount(said, said * (own + notes) + history + chart, said * words)
    if plan.agent and plan.agent.settings.lookups:  # once in a turn, as the original's agent is told to
        spoken += Amount(said, said * (own + notes) + history, said * QUESTION)
    if run.elicit_confidence:
        spoken += Amount(1, own + replies * exchange, CONFIDENCE)

    amounts = {"doctor": spoken}
    for role, simulator, script, times, reply in (
        ("patient", plan.roles.patient, case.patient, asked, ANSWER),
        ("measurement", plan.roles.laboratory, case.exam, tests, RESULT),
    ):
        told = _simulated(prompts[role], simulator, as_text(script)) + QUESTION + heard
        amounts[role] = Amount(times, times * told, times * reply)
    amounts["moderator"] = judging(prompts["moderator"], plan.roles.judge, "", case.diagnosis)
    if plan.policy and not inline:
        texts, by_table = plan.policy.file.texts, plan.policy.file.differential_settings.scoring == "bayes"
        own = tokens_in(texts.system_base, texts.user_prompt_template) + door + (TABLE if by_table else 0)
        amounts["planner"] = Amount(turns, turns * own + history, turns * (ADDED if by_table else PLAN))
    if memory and memory.picker:
        listed = CANDIDATES * ADVICE / MOST_OFFERED + _fixed(prompts["memory"]) + door
        amounts["memory"] = Amount(replies, replies * listed + history, replies * VERDICT)
    if memory and memory.embedding:
        amounts["embedding"] = Amount(replies, replies * door + history, 0)
    if plan.agent:
        facts = replies * exchange
        amounts["synthesis"] = Amount(1, _fixed(prompts["synthesis"]) + door + facts, QUESTION)
    return amounts


def judging(prompt: Prompt, mode: JudgeMode, diagnosis: str, truth: str) -> Amount:
    """What one verdict of a model uses; a diagnosis that is not known yet is taken to be as long as the truth."""
    told = tokens_in(*judge_texts(prompt, mode), diagnosis or truth, truth)
    if mode == "original":
        return Amount(1, told, VERDICT)
    return Amount(1, told + tokens_in(instruction(RelationVerdict)), RELATION)


def _simulated(prompt: Prompt, simulator: Simulator, chart: str) -> float:
    """What a patient or a laboratory is told each time; a voiced patient gets notes instead of the chart."""
    if simulator == "free":
        return _fixed(prompt) + tokens_in(chart)
    told = tokens_in(prompt.text(f"{simulator}_system"), prompt.text(f"{simulator}_turn"))
    return told + (ANSWER if simulator == "voiced" else tokens_in(chart))


def _fixed(prompt: Prompt) -> float:
    return tokens_in(prompt.text("system_base"), prompt.text("user_prompt_template"))


def _assumptions(plan: Plan, usual: int) -> tuple[str, ...]:
    run = plan.settings.run
    lines = [
        f"turns: {usual} of {run.total_inferences} in a typical encounter, all {run.total_inferences} at most; one in "
        "three goes to the laboratory",
        f"input: the prompts and the cases of this run, {CHARACTERS} characters per token, and the dialogue so far",
        f"output: {QUESTION} tokens for an utterance of the doctor, {ANSWER} for a patient's reply, {RESULT} for a "
        "laboratory's; without a model's hidden reasoning, which can multiply the output",
        *COMMON,
    ]
    if Models(plan.settings, plan.data_class).custom_doctor:
        lines.append("doctor: your own program, estimated as if it sent one request per turn")
    if run.doctor_image_request:
        lines.append("images are not counted")
    if plan.roles.judge == "cascade":
        lines.append("judge: an upper limit; diagnoses that code can read need no request")
    return tuple(lines)


COMMON = (
    "retries, repairs and savings from a provider's prompt cache are not counted",
    "prices: those in your config, else list prices; unknown is unknown, not 0",
)
"""What holds for every estimate."""


def _sum(parts: Iterable[dict[str, Amount]]) -> dict[str, Amount]:
    result: dict[str, Amount] = {}
    for part in parts:
        for role, amount in part.items():
            result[role] = result.get(role, Amount()) + amount
    return result


def _merged(every: Iterable[Row]) -> tuple[Row, ...]:
    found: dict[tuple[str, str, str], list[Row]] = {}
    for row in every:
        found.setdefault((row.role, row.model, row.host), []).append(row)
    return tuple(
        same[0] if same[0].once else replace(total(same), role=role, model=model, host=host)
        for (role, model, host), same in found.items()
    )


def _table(some: Sequence[Row]) -> dict[str, Any]:
    def figures(row: Row) -> dict[str, Any]:
        cost = None if row.cost_usd is None else round(row.cost_usd, 6)
        return {"requests": round(row.amount.requests), **row.amount.tokens, "cost_usd": cost}

    return {
        "roles": [{"role": row.role, "model": row.model, "host": row.host, **figures(row)} for row in some],
        "total": figures(total(some)),
    }
