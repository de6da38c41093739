"""Find the experiences that fit a situation: by BM25, embeddings or a model that picks, or at random as a control.

BM25 by bm25s: it is maintained, needs only NumPy, and scores all documents in one pass over a sparse matrix, where
rank-bm25 (last released in 2022) goes through them in Python.

Before each turn, `RememberingDoctor` offers its doctor the experiences that fit what is known so far.
"""

from __future__ import annotations

import json
import random
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol
from zipfile import BadZipFile

import anyio
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, create_model

from agentclinic.cases.model import Case, Door
from agentclinic.clinic.doctor import Doctor, Observation
from agentclinic.clinic.prompts import Prompt, fill
from agentclinic.clinic.quoting import quoted
from agentclinic.config import Retrieval
from agentclinic.errors import ConfigError
from agentclinic.memory.experience import SAME_STORY, Experience, is_followed, numbers, same_patient, source_of
from agentclinic.memory.store import Store
from agentclinic.models.base import FATAL, MalformedError, Message, Model, ModelError, Purpose, Request
from agentclinic.privacy import DataClass
from agentclinic.results.turn import Exchange, Turn
from agentclinic.vocabulary.denial import answers_no, clauses
from agentclinic.vocabulary.text import STOP_WORDS

DETAILS = "memory"
"""Where a turn of the doctor records what memory offered."""


@dataclass(frozen=True)
class Recalled:
    """An experience as it is offered to a doctor; it does not say which case it comes from."""

    id: str
    observation: str
    """The clinical pattern that it is about."""
    suggestion: str
    """What to ask, examine or order, and why."""
    step: str | None = None
    """The same as an id of the knowledge base, `finding:NAME` or `test:NAME`."""


class RememberingDoctor:
    """Offers experiences to any doctor, and records which ones and whether it followed them."""

    def __init__(self, doctor: Doctor, memory: CaseMemory, prompt: Prompt) -> None:
        self.doctor = doctor
        self._memory = memory
        self._prompt = prompt

    async def act(self, seen: Observation) -> tuple[Turn, ...]:
        """Recall, then let the doctor speak. On the last turn there is nothing left to do, and nothing is offered."""
        seen = replace(seen, incoming=replace(seen.incoming, text=_without_tag(seen.incoming.text)))
        if seen.last:
            return await self.doctor.act(seen)
        found, problem = await self._recall(seen.exchanges, seen.turn)
        *aside, said = await self.doctor.act(self._advised(seen, found))
        used: dict[str, Any] = {"offered": [_offered(each, said) for each in found]}
        if problem:
            used["failed"] = problem
        return *aside, said.model_copy(update={"details": {**(said.details or {}), DETAILS: used}})

    async def _recall(self, exchanges: tuple[Exchange, ...], turn: int) -> tuple[list[Found], str | None]:
        """What memory finds; if one of its models fails, that is recorded and does not end the encounter."""
        try:
            return await self._memory.recall(exchanges, turn), None
        except ModelError as error:
            if error.kind in FATAL:
                raise
            return [], error.kind

    def _advised(self, seen: Observation, found: list[Found]) -> Observation:
        if not found:
            return seen
        recalled = tuple(
            Recalled(e.id, e.observation, e.suggestion, e.step.id if e.step else None)
            for e in (each.experience for each in found)
        )
        lines = "\n".join(f"- {each.observation} -> {each.suggestion}" for each in recalled)
        return replace(
            seen,
            advice=fill(self._prompt.text("block"), experiences=lines),
            suggested=tuple(each.step for each in recalled if each.step),
            recalled=recalled,
        )


def _without_tag(text: str) -> str:
    """What someone said, without anything that looks like the tag of the block of experiences."""
    return text.translate(_ANGLES) if _TAG.search(quoted(text)) else text


_ANGLES = str.maketrans("<＜﹤", "‹‹‹")
_TAG = re.compile(r"‹\W*experience", re.IGNORECASE)


def _offered(found: Found, said: Turn) -> dict[str, Any]:
    """What the record says about one experience; `followed` is null if it suggests no step that can be recognized."""
    step = found.experience.step
    followed = is_followed(step, said.action.kind, said.action.content) if step and said.action else None
    return {"id": found.experience.id, "score": round(found.score, 4), "followed": followed}


MOST_OFFERED = 2
"""Experiences for one turn: a small model follows one piece of advice, rarely three."""
CANDIDATES = 10
"""How many the picking model chooses from: on the labeled situations the right one is among the first two in 24 of 60
and among the first ten in 43 (`python benchmarks/memory.py retrieval`); more would cost more tokens in every turn."""

Scores = NDArray[np.float32]


@dataclass(frozen=True)
class Found:
    """An experience that was found, and how well it fits by the measure that found it."""

    experience: Experience
    score: float


class Index(Protocol):
    """Scores all experiences of a store for a situation."""

    async def scores(self, situation: str) -> Scores:
        """How well each experience fits; 0 or less for one that does not fit at all."""
        ...


def situation(door: Door, exchanges: Iterable[Exchange]) -> str:
    """What is known so far, as text: the door, what the patient said, and results, without what was denied."""
    known = [f"{door.demographics}. {door.objective}"]
    for exchange in exchanges:
        if exchange.kind == "question" and answers_no(exchange.reply):
            continue
        short = len(exchange.reply.split()) <= _SHORT
        known.append(f"{exchange.content} {exchange.reply}" if short or exchange.kind == "test" else exchange.reply)
    return "\n".join(known)


_SHORT = 4
"""Words; "Yes, since Monday." says nothing without its question."""


def terms(text: str) -> list[str]:
    """The words of a text that carry meaning and are not denied."""
    return [
        word
        for clause in clauses(text)
        for word, negated in zip(clause.words, clause.negated, strict=True)
        if not negated and word not in STOP_WORDS
    ]


class Bm25:
    """Ranks observations and suggestions by the words that they share with a situation."""

    def __init__(self, experiences: Sequence[Experience]) -> None:
        import bm25s  # takes 0.3 s: only runs with memory need it

        self._index = bm25s.BM25()
        self._index.index([terms(_text(each)) or [""] for each in experiences], show_progress=False)

    async def scores(self, situation: str) -> Scores:
        known = [word for word in dict.fromkeys(terms(situation)) if word in self._index.vocab_dict]
        if not known:
            return np.zeros(self._index.scores["num_docs"], dtype=np.float32)
        found: Scores = self._index.get_scores(known)
        return found


def _text(experience: Experience) -> str:
    return f"{experience.observation}\n{experience.suggestion}"


class Embeddings:
    """The embeddings of the experiences; those in the cache file are not asked for again."""

    def __init__(self, experiences: Sequence[Experience], cache: Path, *, private: bool) -> None:
        self._experiences = experiences
        self._cache = cache
        self._private = private
        self._matrix: Scores | None = None
        self._making = anyio.Lock()

    async def matrix(self, model: Model) -> Scores:
        """A row of length 1 for each experience."""
        async with self._making:
            if self._matrix is None:
                self._matrix = await self._made(model)
        return self._matrix

    async def _made(self, model: Model) -> Scores:
        kept = _read_vectors(self._cache, model.name)
        missing = [each for each in self._experiences if each.id not in kept]
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            vectors = await embed(model, [each.observation for each in batch])
            kept.update(zip((each.id for each in batch), vectors, strict=True))
        if missing:
            _write_vectors(self._cache, model.name, kept, private=self._private)
        rows = [kept[each.id] for each in self._experiences]
        if len({len(row) for row in rows}) != 1:
            raise MalformedError(f"{model.name} gave embeddings of several lengths; delete {self._cache} and try again")
        return _unit(np.array(rows, dtype=np.float32))


@dataclass(frozen=True)
class ByMeaning:
    """Ranks experiences by the similarity of their embeddings to that of the situation."""

    embeddings: Embeddings
    model: Model

    async def scores(self, situation: str) -> Scores:
        matrix = await self.embeddings.matrix(self.model)
        (vector,) = await embed(self.model, [situation])
        if len(vector) != matrix.shape[1]:
            raise MalformedError(f"{self.model.name} gave an embedding of a different length than before")
        result: Scores = matrix @ _unit(np.array([vector], dtype=np.float32))[0]
        return result


_BATCH = 32
"""Texts in one request for embeddings: a small model on two CPU cores takes 45 s for them, and 128 took longer than a
request may."""


async def embed(model: Model, texts: Sequence[str]) -> list[list[float]]:
    reply = await model.reply(Request(Purpose.EMBEDDING, tuple(Message("user", text) for text in texts)))
    try:
        vectors = [[_component(number) for number in vector] for vector in json.loads(reply.text)]
    except (ValueError, TypeError, RecursionError):
        raise MalformedError(f"{model.name} gave no embeddings; is it an embedding model?") from None
    if len(vectors) != len(texts) or len({len(vector) for vector in vectors}) != 1 or not vectors[0]:
        raise MalformedError(
            f"{model.name} gave {len(vectors)} embeddings for {len(texts)} texts, or of several lengths"
        )
    return vectors


def _component(number: Any) -> float:
    value = float(number)
    if not abs(value) < _LARGEST:
        raise ValueError("not a component of an embedding")
    return value


_LARGEST = 1e15
"""Components of embeddings are near 1; the sum of the squares of much larger ones would overflow a 32-bit float."""


def _unit(matrix: Scores) -> Scores:
    length = np.linalg.norm(matrix, axis=1, keepdims=True)
    result: Scores = matrix / np.maximum(length, 1e-12)
    return result


def _read_vectors(path: Path, model: str) -> dict[str, list[float]]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as kept:
            if str(kept["model"]) == model and (kept["ids"].ndim, kept["vectors"].ndim) == (1, 2):
                return dict(zip(kept["ids"].tolist(), kept["vectors"].tolist(), strict=True))
    except (OSError, ValueError, KeyError, EOFError, RuntimeError, MemoryError, BadZipFile, zlib.error):
        pass  # no usable cache: it is rebuilt
    return {}


def _write_vectors(path: Path, model: str, kept: dict[str, list[float]], *, private: bool) -> None:
    new = path.with_name(f".{path.name}.new.npz")
    new.unlink(missing_ok=True)  # it may be a link
    np.savez(new, model=np.array(model), ids=np.array(list(kept)), vectors=np.array(list(kept.values()), np.float32))
    if private:
        new.chmod(0o600)
    new.replace(path)


class Picker:
    """A model that picks among the candidates, and may pick none."""

    def __init__(self, model: Model, prompt: Prompt) -> None:
        self._model = model
        self._prompt = prompt

    async def pick(self, situation: str, candidates: Sequence[Found]) -> list[Found]:
        """At most two of the candidates."""
        known = "\n".join(f"- {quoted(line)}" for line in situation.splitlines())
        lines = "\n".join(
            f"{number}. {each.experience.observation} -> {each.experience.suggestion}"
            for number, each in enumerate(candidates, start=1)
        )
        messages = (
            Message("system", self._prompt.text("system_base")),
            Message("user", fill(self._prompt.text("user_prompt_template"), situation=known, candidates=lines)),
        )
        reply = await self._model.reply(Request(Purpose.MEMORY, messages, schema=_picks(len(candidates))))
        numbers = getattr(reply.parsed, "numbers", [])
        return [candidates[number - 1] for number in dict.fromkeys(numbers)][:MOST_OFFERED]


def _picks(count: int) -> type[BaseModel]:
    number = Literal[tuple(range(1, count + 1))]  # type: ignore[valid-type]
    return create_model("Picks", numbers=(list[number], Field(max_length=MOST_OFFERED)))  # type: ignore[valid-type]


class Memory:
    """The experiences of a store, ready to be searched."""

    def __init__(self, store: Store, how: Retrieval, *, with_steps: bool = False) -> None:
        chosen = [
            place for place, each in enumerate(store.experiences) if not with_steps or (each.step and each.step.id)
        ]
        if not chosen:
            raise ConfigError(
                f"memory: {store.path}: none of the {len(store.experiences)} experiences has a step that the builtin "
                "doctor knows, and the run would report a false null result; use experiences from "
                "`agentclinic learn --learner-llm builtin`, or another model for the doctor"
            )
        self.store = store
        self.how = how
        self.experiences = tuple(store.experiences[place] for place in chosen)
        sources = [store.sources[place] for place in chosen]
        self._sources = list({id(source): source for source in sources}.values())
        further = ((place, store.further.get(each.id)) for place, each in enumerate(self.experiences))
        self._further = {place: sources for place, sources in further if sources}
        places = {id(source): number for number, source in enumerate(self._sources)}
        self._source_of = np.array([places[id(source)] for source in sources])
        self._by_name: dict[str, list[int]] = {}
        for number, source in enumerate(self._sources):
            for name in (source.case, *source.names):
                self._by_name.setdefault(name, []).append(number)

    @cached_property
    def bm25(self) -> Bm25:
        return Bm25(self.experiences)

    @property
    def label(self) -> str:
        """How experiences are found and the hash of their file, for the record."""
        return f"{self.how} {self.store.digest}"

    def by_meaning(self, model: Model) -> ByMeaning:
        """The index by embeddings from this model; their table is built once."""
        return ByMeaning(self._embeddings, model)

    @cached_property
    def _embeddings(self) -> Embeddings:
        private = self.store.data_class is DataClass.CREDENTIALED
        return Embeddings(self.experiences, self.store.path.with_suffix(".embeddings.npz"), private=private)

    @cached_property
    def _hashes(self) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
        """The hashes in the fingerprints of all sources, sorted, and the number of the source that each comes from."""
        rows = [numbers(source.fingerprint) for source in self._sources]
        every = np.concatenate(rows)
        owners = np.repeat(np.arange(len(rows), dtype=np.int32), [len(row) for row in rows])
        order = np.argsort(every)
        return every[order], owners[order]

    def allowed(self, case: Case) -> NDArray[np.bool_]:
        """Which experiences may be shown on a case: none from the case itself, its twin or a near copy."""
        own = source_of(case)
        candidates = {number for name in (own.case, *own.names) for number in self._by_name.get(name, ())}
        candidates.update(self._sharing(own.fingerprint))
        usable = np.ones(len(self._sources), dtype=bool)
        usable[[number for number in candidates if same_patient(own, self._sources[number])]] = False
        result: NDArray[np.bool_] = usable[self._source_of]
        for place, sources in self._further.items():
            result[place] &= not any(same_patient(own, source) for source in sources)
        return result

    def _sharing(self, sketch: str) -> list[int]:
        """The sources that share enough hashes with a sketch to be near copies of its chart; not all of them are."""
        own = numbers(sketch)
        every, owners = self._hashes
        bounds = zip(np.searchsorted(every, own, "left"), np.searchsorted(every, own, "right"), strict=True)
        found = np.concatenate([owners[:0], *(owners[low:high] for low, high in bounds)])
        shared = np.bincount(found, minlength=len(self._sources))
        enough: list[int] = np.flatnonzero(shared > SAME_STORY * len(own)).tolist()
        return enough


class CaseMemory:
    """Memory during one encounter."""

    def __init__(
        self, memory: Memory, case: Case, index: Index | None, picker: Picker | None = None, *, seed: int = 0
    ) -> None:
        self._memory = memory
        self._door = case.door
        self._allowed = memory.allowed(case)
        self._index = index or memory.bm25
        self._picker = picker
        self._seed = seed

    async def recall(self, exchanges: Sequence[Exchange], turn: int) -> list[Found]:
        """The experiences that fit what is known so far, best first; at most two."""
        known = situation(self._door, exchanges)
        found = self._best(await self._index.scores(known), CANDIDATES if self._picker else MOST_OFFERED)
        if found and self._memory.how == "shuffled":
            return self._drawn(len(found), turn)
        if found and self._picker:
            return await self._picker.pick(known, found)
        return found

    def _best(self, scores: Scores, count: int) -> list[Found]:
        """The best of those that fit; of equally good ones the first in the store."""
        usable = np.where(self._allowed, scores, -np.inf)
        least = np.partition(usable, -count)[-count] if count < len(usable) else 0.0
        places = np.flatnonzero((usable >= least) & (usable > 0))
        order = places[np.argsort(-usable[places], kind="stable")][:count]
        return [Found(self._memory.experiences[place], float(usable[place])) for place in order]

    def _drawn(self, count: int, turn: int) -> list[Found]:
        """As many as would have been offered, drawn at random: the same in every run with this seed."""
        places = np.flatnonzero(self._allowed).tolist()
        drawn = random.Random(f"{self._seed}:{turn}").sample(places, min(count, len(places)))
        return [Found(self._memory.experiences[place], 0.0) for place in drawn]
