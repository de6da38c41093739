"""The store of experiences: one JSON Lines file that several processes may append to at once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from pydantic import ValidationError

from agentclinic.errors import AgentClinicError, ConfigError, InputError
from agentclinic.jsonl import JsonLines, read_json_lines, read_lines
from agentclinic.memory.experience import Experience, Lesson, Source, dumped
from agentclinic.privacy import DataClass, strictest
from agentclinic.vocabulary.text import content_words, fold, words

_ALIKE = 0.8
"""Two experiences with the same step that share this much of their content words say the same."""
LONGEST_LINE = 64 * 2**10
"""Bytes: five experiences of full length take 40 KB at most."""


def append(path: Path, lesson: Lesson) -> None:
    """Add a lesson. The file is locked, so that no process repairs a line that another is still writing."""
    entry = dumped(lesson)
    size = len(json.dumps(entry, ensure_ascii=False).encode())
    if size > LONGEST_LINE:
        raise AgentClinicError(f"{path}: a lesson of {size:,} bytes is not written; at most {LONGEST_LINE:,} fit")
    with JsonLines(path, private=lesson.data_class is DataClass.CREDENTIALED, wait=True) as lines:
        lines.append(entry)


def read_lessons(path: Path, *, limits: bool = True) -> Iterator[Lesson]:
    """The lessons in a store, each checked; an incomplete last line is skipped.

    Without `limits`, lines and texts may have any length: for people to look at, not for a model.
    """
    for (number, entry), (_, line, _) in zip(read_json_lines(path, "a lesson"), read_lines(path), strict=False):
        if limits and len(line) > LONGEST_LINE:
            raise InputError(
                f"{path} line {number}: {len(line):,} bytes, but at most {LONGEST_LINE:,} are allowed; remove the line"
            )
        try:
            yield Lesson.model_validate(entry, context={"limits": limits})
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            raise InputError(
                f"{path} line {number}: {place or 'the line'}: {first['msg']}; experiences are written by "
                "`agentclinic learn`, and each line is one encounter"
            ) from None


@dataclass(frozen=True)
class Store:
    """The experiences in a store, and where each comes from."""

    path: Path
    digest: str
    experiences: tuple[Experience, ...]
    sources: tuple[Source, ...]
    """Of each experience; those of one lesson share the object."""
    data_class: DataClass
    further: Mapping[str, tuple[Source, ...]] = field(default_factory=dict)
    """Further sources, by id, of experiences that occur in several lessons."""

    @property
    def every_source(self) -> Iterator[Source]:
        """All sources, some of them several times."""
        return chain(self.sources, *self.further.values())

    @property
    def splits(self) -> frozenset[str | None]:
        """Checksums of the splits that the lessons were made with; None for those made without."""
        return frozenset(source.split for source in self.every_source)


def load_store(path: Path, *, limits: bool = True) -> Store:
    """Read a store. An experience that occurs twice counts once, and is shown on none of the cases it comes from."""
    try:
        if path.exists() and not path.is_file():  # a device may have no end
            raise ConfigError(f"memory: {path} is not a file; `agentclinic learn` or `memory import` makes one")
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    except OSError as error:
        raise ConfigError(
            f"memory: {path} cannot be read ({error.strerror}); `agentclinic learn` or `memory import` makes one"
        ) from None
    seen: dict[str, tuple[Experience, Source]] = {}
    further: dict[str, tuple[Source, ...]] = {}
    classes = set()
    for lesson in read_lessons(path, limits=limits):
        classes.add(lesson.data_class)
        for experience in lesson.experiences:
            if seen.setdefault(experience.id, (experience, lesson.source))[1] is not lesson.source:
                further[experience.id] = (*further.get(experience.id, ()), lesson.source)
    if not seen:
        raise ConfigError(f"memory: {path} has no experiences; `agentclinic learn RUN -o FILE` makes them")
    experiences, sources = zip(*seen.values(), strict=True)
    return Store(path, digest, experiences, sources, strictest(classes), further)


class Known:
    """Experiences already in a store, to leave out further ones that say the same."""

    def __init__(self, experiences: Iterable[Experience] = ()) -> None:
        self._ids: set[str] = set()
        self._by_mark: dict[tuple[str, str], list[tuple[str, ...]]] = {}
        for experience in experiences:
            self.add(experience)

    def add(self, experience: Experience) -> bool:
        """Remember an experience; returns whether it was new."""
        said = content_words(f"{experience.observation} {experience.suggestion}")
        marks = _marks(step_key(experience), said)
        others = (other for mark in marks for other in self._by_mark.get(mark, ()))
        if experience.id in self._ids or any(_alike(said, other) for other in others):
            return False
        self._ids.add(experience.id)
        kept = tuple(said)
        for mark in marks:
            self._by_mark.setdefault(mark, []).append(kept)
        return True


def step_key(experience: Experience) -> str:
    """The step that an experience suggests; empty if it has none."""
    return (experience.step.id or fold(experience.step.what)) if experience.step else ""


def _marks(bucket: str, said: frozenset[str]) -> list[tuple[str, str]]:
    """Similar experiences share one of these, so that not every pair has to be compared, which would take too long.

    Two experiences are compared only if they have the same step. If they share four fifths of their words, then one of
    the first fifth of the words, in any fixed order, is in both. Common words come last in this order: those
    that name the step, and short ones.
    """
    named = words(bucket)
    order = sorted(said, key=lambda word: (word in named, -len(word), word))
    return [(bucket, word) for word in order[: len(order) - int(_ALIKE * len(order)) + 1] or [""]]


def _alike(one: frozenset[str], other: Sequence[str]) -> bool:
    shared = len(one.intersection(other))
    return shared >= _ALIKE * (len(one) + len(other) - shared)
