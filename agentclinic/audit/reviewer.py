"""A reviewer model, which judges free-text replies against the chart; a reply it cannot judge is a failed review.

Reviews are kept in `RUN/reviews/<model>.jsonl`, one line per request; a second run asks only for what is missing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from agentclinic.audit.model import Audited, Departure, Kind, known_to
from agentclinic.cases.leaks import names_of
from agentclinic.cases.model import Fact
from agentclinic.clinic.prompts import Prompt, fill, joined
from agentclinic.errors import InputError
from agentclinic.files import Lock, is_private, make_folder
from agentclinic.jsonl import JsonLines, read_json_lines, repair
from agentclinic.models.base import FATAL, MalformedError, Message, Model, ModelError, Purpose, Request
from agentclinic.models.structured import at_most
from agentclinic.results.turn import NOTHING_ASKED, Usage
from agentclinic.runs.pool import Pool, one_by_one
from agentclinic.runs.progress import Progress

FOLDER = "reviews"
_Claim = Annotated[str, Field(max_length=300, json_schema_extra=at_most(160))]
_Claims = Annotated[list[_Claim], Field(max_length=12, json_schema_extra={"maxItems": 5})]
"""The schema that is sent has tighter bounds, so that a small model does not run on."""


class Review(BaseModel):
    """What a reviewer says about a reply; statements of the chart are given by number, from 1."""

    model_config = ConfigDict(extra="forbid")

    told: list[int] = Field(max_length=60)
    contradicted: list[int] = Field(max_length=60)
    omitted: list[int] = Field(max_length=60)
    unasked: list[int] = Field(max_length=60)
    invented: _Claims
    diseases: _Claims
    contradicts_earlier: _Claims


@lru_cache(maxsize=256)
def review_of(facts: int) -> type[Review]:
    """The schema of a review of a chart with this many statements; the model can name no other number."""
    number = Annotated[int, Field(ge=1, le=max(facts, 1))]
    numbers = Annotated[list[number], Field(max_length=min(facts, 60))]
    fields: dict[str, Any] = dict.fromkeys(("told", "contradicted", "omitted", "unasked"), (numbers, ...))
    return create_model("Review", __base__=Review, **fields)


class Reviews(BaseModel):
    """The outcome of reviewing some replies."""

    model: str
    path: Path
    by_id: dict[str, Review] = Field(default={}, exclude=True)
    reviewed: int = 0
    failed: int = 0
    """Replies whose review could not be made or read: neither clean nor faulty."""
    not_tried: int = 0
    reason: str | None = None
    """Why the rest was not tried, or the first failure."""
    interrupted: bool = False
    usage: Usage = NOTHING_ASKED
    """Of this call only; earlier reviews are not paid for again."""


class Reviewer:
    """Asks a model about replies."""

    def __init__(self, model: Model, prompt: Prompt) -> None:
        self.model = model
        self._prompt = prompt

    def request(self, audited: Audited) -> Request:
        reply, case, text = audited.reply, audited.case, self._prompt.text
        facts = known_to(reply, case)
        policy = f"silent_{reply.silent_symptom}" if reply.role == "patient" else f"missing_{reply.missing_test}"
        own = [said for said in reply.earlier if said.role == reply.role]
        user = fill(
            text("user_prompt_template"),
            door=f"{case.door.demographics} {case.door.objective}".strip(),
            facts="\n".join(f"{n}. {_line(fact)}" for n, fact in enumerate(facts, start=1)) or "none",
            earlier="\n".join(f"Doctor: {said.asked}\nReply: {said.text}" for said in own) or "nothing",
            question=reply.asked,
            reply=reply.text,
        )
        system = joined(text("system_base"), text(reply.role), text(policy))
        messages = (Message("system", system), Message("user", user))
        return Request(Purpose.REVIEWER, messages, schema=review_of(len(facts)))

    def id_of(self, audited: Audited) -> str:
        """Identifies the model and the request: a changed prompt, chart or reply is reviewed again."""
        said = "\x00".join((self.model.name, *(message.content for message in self.request(audited).messages)))
        return hashlib.sha256(said.encode("utf-8", "backslashreplace")).hexdigest()[:24]

    def findings(self, audited: Audited, reviews: Reviews | None) -> list[Departure] | None:
        """What the review of a reply finds; None if there is no readable review."""
        review = reviews.by_id.get(self.id_of(audited)) if reviews else None
        return None if review is None else findings_of(review, audited)

    async def review_all(
        self,
        replies: Sequence[Audited],
        path: Path,
        workers: int,
        progress: Progress,
        *,
        ask: bool = True,
        private: bool = False,
    ) -> Reviews:
        """Review every reply that has no review yet (without `ask`, none); failures are retried next time."""
        make_folder(path.parent)
        reviews = Reviews(model=self.model.name, path=path)
        wanted = {self.id_of(audited): audited for audited in replies}
        pool = Pool(workers, progress.say, what="reviews")
        with Lock(path.parent, what="run's reviews"):
            reviews.by_id = {id_: review for id_, review in _kept(path).items() if id_ in wanted}
            missing = [(id_, audited) for id_, audited in wanted.items() if id_ not in reviews.by_id]
            if missing and ask:
                with JsonLines(path, durable=False, private=private or is_private(path.parent), journal=True) as sink:
                    progress.start(len(wanted), len(reviews.by_id), "replies to review")
                    try:
                        await pool.work_off(
                            one_by_one(missing), partial(self._review_one, reviews, sink, pool, progress)
                        )
                    finally:
                        progress.stop()
        reviews.reviewed = len(reviews.by_id)
        reviews.not_tried = len(wanted) - reviews.reviewed - reviews.failed
        reviews.reason = pool.reason or reviews.reason
        reviews.interrupted = pool.interrupted
        return reviews

    async def _review_one(
        self, reviews: Reviews, sink: JsonLines, pool: Pool, progress: Progress, item: tuple[str, Audited]
    ) -> None:
        id_, audited = item
        entry: dict[str, Any] = {"id": id_, "place": audited.reply.place, "role": audited.reply.role}
        try:
            reply = await self.model.reply(self.request(audited))
            usage = reply.usage
            if not isinstance(reply.parsed, Review):
                raise MalformedError("the model did not answer with a review", text=reply.text)
            reviews.by_id[id_] = reply.parsed
            entry |= {"review": reply.parsed.model_dump()}
        except ModelError as error:
            usage = error.usage or Usage()
            entry |= {"review": None, "fault": {"error": error.kind, "message": str(error)}}
            reviews.failed += 1
            reviews.reason = reviews.reason or str(error)
            if error.kind in FATAL:
                pool.stop(str(error))
        sink.append({**entry, "usage": asdict(usage)})
        reviews.usage += usage
        progress.advance(_status(reviews))


def review_path(folder: Path, model: str, suffix: str = "") -> Path:
    return folder / FOLDER / f"{re.sub(r'[^A-Za-z0-9._-]+', '_', model).lstrip('.') or 'model'}{suffix}.jsonl"


def _kept(path: Path) -> dict[str, Review]:
    repair(path)
    kept = {}
    for number, entry in read_json_lines(path, "a review", journal=True) if path.exists() else ():
        if entry.get("review") is not None:
            try:
                kept[str(entry.get("id"))] = Review.model_validate(entry["review"])
            except ValidationError:
                raise InputError(f"{path} line {number}: not a review; remove the file to review again") from None
    return kept


def _line(fact: Fact) -> str:
    return f"{' / '.join(fact.heads)}: {fact.text}" if fact.heads else fact.text


def _status(reviews: Reviews) -> str:
    used, made = reviews.usage.input_tokens, reviews.usage.output_tokens
    tokens = "tokens unknown" if used is None or made is None else f"{used + made:,} tokens"
    return "  ".join([tokens, *([f"{reviews.failed} failed"] if reviews.failed else [])])


def findings_of(review: Review, audited: Audited) -> list[Departure]:
    """A review as findings; code decides whether a disease is the diagnosis."""
    facts = known_to(audited.reply, audited.case)
    by_number: Mapping[Kind, Iterable[int]] = {
        Kind.CONTRADICTED: review.contradicted,
        Kind.OMITTED: review.omitted,
        Kind.UNASKED: review.unasked,
    }
    found = [
        Departure(kind=kind, by="reviewer", words=fact.text, path=fact.path, why=_WHY[kind])
        for kind, listed in by_number.items()
        for fact in dict.fromkeys(facts[number - 1] for number in listed if 1 <= number <= len(facts))
    ]
    names = names_of(audited.case) if review.diseases else None
    revealed = (Kind.DIAGNOSIS_REVEALED if names and any(names.find(text)) else Kind.DISEASE_NAMED
                for text in review.diseases)  # fmt: skip
    claims = [(Kind.INVENTED, text) for text in review.invented]
    claims += zip(revealed, review.diseases, strict=True)
    claims += [(Kind.SELF_CONTRADICTED, text) for text in review.contradicts_earlier]
    return found + [Departure(kind=kind, by="reviewer", words=text, why=_WHY[kind]) for kind, text in claims]


_WHY = {
    Kind.CONTRADICTED: "the reviewer says that the reply contradicts this statement",
    Kind.OMITTED: "the reviewer says that this was asked for and left out",
    Kind.UNASKED: "the reviewer says that this was told without being asked for",
    Kind.INVENTED: "the reviewer finds this in no statement",
    Kind.DISEASE_NAMED: "the reviewer finds this disease in no statement",
    Kind.DIAGNOSIS_REVEALED: "the reviewer finds this disease in no statement, and it is the diagnosis",
    Kind.SELF_CONTRADICTED: "the reviewer says that this contradicts an earlier reply",
}
