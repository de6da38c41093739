"""Whether a model can continue lines of charts from their beginnings; each is asked for once, also after a stop."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import BaseModel, ValidationError
from rapidfuzz.distance import Indel

from agentclinic.cases.model import Case, Section
from agentclinic.clinic.doctor import door_text
from agentclinic.clinic.prompts import Prompt, fill, load_prompt, user_prompts
from agentclinic.config import Settings
from agentclinic.errors import InputError
from agentclinic.jsonl import JsonLines, read_json_lines
from agentclinic.learn.shuffle import MOST_TRIED, Apart
from agentclinic.models.base import OWN_FAULTS, Message, ModelError, Purpose, Request
from agentclinic.privacy import DataClass
from agentclinic.results.turn import Usage
from agentclinic.runs.budget import Budget, Spent
from agentclinic.runs.build import Models
from agentclinic.runs.campaign import check_first
from agentclinic.runs.play import Metered
from agentclinic.runs.pool import Pool, one_by_one
from agentclinic.runs.progress import Progress
from agentclinic.vocabulary.text import words

LINES = 3
"""Lines of each case: more of the same chart say little more, and each costs a request."""
SHORTEST, LONGEST = 12, 80
"""Words of a line. Half of it is held back: six words in order are hard to guess, and forty are enough to tell."""
VERBATIM = 0.8
"""Similarity from which a continuation is nearly word for word: four of five words, in order. Of all pairs of two
patients' lines, none reaches it on OpenOSCE 1 (36,288) and on MedQA (86,182, the highest 0.78), and 9 of 90,358 on
NEJM_Ext, by a stock sentence."""


@dataclass(frozen=True)
class Line:
    """A line of a chart in two halves."""

    case: Case
    path: str
    section: Section
    heading: str
    beginning: str
    rest: str

    @property
    def key(self) -> str:
        return f"{self.case.id} {self.path}"


class Completion(BaseModel):
    """What the model wrote: a line of the study's `completions.jsonl`."""

    line: str
    """The line's key."""
    model: str
    prompt: str
    """Hash of the prompt file."""
    reply: str = ""
    error: str | None = None
    """Why the model wrote nothing, e.g. that it refused."""
    usage: Mapping[str, int | None] = {}
    cost_usd: float | None = None


def chosen_lines(cases: Iterable[Case]) -> list[Line]:
    """The longest lines of each case."""
    lines = []
    for case in {case.id: case for case in cases}.values():
        told = [(fact, fact.text.split()[:LONGEST]) for fact in case.facts if fact.section is not Section.DEMOGRAPHICS]
        long = [(fact, said) for fact, said in told if len(said) >= SHORTEST]
        for fact, said in sorted(long, key=lambda each: -len(each[1]))[:LINES]:
            halves = (" ".join(part) for part in (said[: len(said) // 2], said[len(said) // 2 :]))
            lines.append(Line(case, fact.path, fact.section, ": ".join(fact.heads), *halves))
    return lines


def controls(lines: Sequence[Line], are_apart: Apart, seed: int) -> list[str]:
    """For each line, the rest of another patient's line that begins most alike, from the same part if any.

    A line that goes on nearly word for word alike, a stock sentence, is no control.
    """
    rng = random.Random(seed)

    def control(line: Line) -> str:
        drawn = rng.sample(lines, min(len(lines), MOST_TRIED))
        ranked = sorted(
            (other.section is not line.section, -similarity(other.beginning, line.beginning), n)
            for n, other in enumerate(drawn)
        )
        fitting = (drawn[n] for *_, n in ranked if are_apart(line.case, drawn[n].case))
        return next((one.rest for one in fitting if similarity(one.rest, line.rest) < VERBATIM), "")

    return [control(line) for line in lines]


def similarity(said: str, wanted: str, beginning: str = "") -> float:
    """2 · LCS ÷ (words in both): the words that both have in the same order, 0 to 1.

    Only as many words of `said` count as `wanted` has, without the beginning if that is repeated first.
    """
    told, right, first = words(said), words(wanted), words(beginning)
    told = told[len(first) :] if told[: len(first)] == first else told
    return Indel.normalized_similarity(told[: len(right)], right) if right else 0.0


async def complete(
    lines: Sequence[Line], path: Path, settings: Settings, data_class: DataClass, progress: Progress, elsewhere: Spent
) -> tuple[Mapping[str, Completion], Pool]:
    """Have the doctor's model continue the lines that are not in the file yet.

    `elsewhere` is how much of the study's budget its other parts have used. Returns the completions by line, and the
    pool, which says why some are missing.
    """
    prompt = load_prompt("completion", user_prompts(settings.run.prompts_dir))
    model, done = settings.run.doctor_llm, _read(path, settings.run.doctor_llm, prompt)
    budget, spent = Budget.of(settings, elsewhere), spent_on(done.values())
    pool = Pool(settings.run.workers, progress.say, what="lines")

    async def ask(line: Line) -> None:
        usage: dict[str, Usage] = {}
        written: dict[str, str] = {}
        try:
            reply = await Metered(models.for_role("doctor"), "doctor", usage).reply(_request(line, prompt))
            written = {"reply": reply.text}
        except ModelError as error:
            if error.kind not in OWN_FAULTS:
                pool.stop(f"doctor: {error}")
                return
            written = {"error": error.kind}
        used = asdict(usage["doctor"]) if usage else {}
        cost = models.cost_usd("doctor", used)
        one = Completion(line=line.key, model=model, prompt=prompt.digest, usage=used, cost_usd=cost, **written)
        journal.append(one.model_dump(mode="json"))
        done[line.key] = one
        spent.add("doctor", used, cost, answered=one.error is None)
        progress.advance("")
        stop_at_limit()

    def stop_at_limit() -> None:
        if reason := budget.used_up(spent):
            pool.stop(reason)

    left = [line for line in lines if line.key not in done]
    async with Models(settings, data_class) as models:
        models.admit()
        await check_first(settings, models, models.in_use(("doctor",)), progress.say, left=bool(left))
        with JsonLines(path, private=models.gate.closed, journal=True) as journal:
            if left:
                stop_at_limit()
            progress.start(len(lines), len(lines) - len(left), "chart lines to continue")
            try:
                await pool.work_off(one_by_one(left), ask)
            finally:
                progress.stop()
    return done, pool


def spent_on(completions: Iterable[Completion]) -> Spent:
    spent = Spent()
    for each in completions:
        spent.add("doctor", each.usage, each.cost_usd, answered=each.error is None)
    return spent


def _read(path: Path, model: str, prompt: Prompt) -> dict[str, Completion]:
    """What was written before by this model with this prompt, by line."""
    try:
        entries = read_json_lines(path, "a completion", journal=True) if path.exists() else ()
        every = [Completion.model_validate(entry) for _, entry in entries]
    except ValidationError:
        raise InputError(f"{path}: not a file of completions; restore it, or name another folder with -o") from None
    return {each.line: each for each in every if (each.model, each.prompt) == (model, prompt.digest)}


def _request(line: Line, prompt: Prompt) -> Request:
    shown = fill(
        prompt.text("user_prompt_template"),
        dataset=line.case.dataset,
        door=door_text(line.case.door),
        heading=line.heading,
        beginning=line.beginning,
    )
    return Request(Purpose.COMPLETION, (Message("system", prompt.text("system_base")), Message("user", shown)))
