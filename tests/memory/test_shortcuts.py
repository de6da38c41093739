"""What memory does not compare, to stay fast with many experiences, makes no difference to what it finds."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from helpers import bundled_cases

from agentclinic.errors import InputError
from agentclinic.memory.experience import Experience, Lesson, Source, Step, dumped, same_patient, source_of
from agentclinic.memory.retrieval import Memory
from agentclinic.memory.store import Known, append, load_store
from agentclinic.vocabulary.text import content_words

WORDS = "fever rash cough stridor wheeze vertigo jaundice edema pallor syncope tremor ataxia".split()


def lesson(source: Source, *experiences: Experience) -> Lesson:
    return Lesson(source=source, model="m", prompt="p", experiences=experiences)


def test_repetitions_are_those_that_comparing_all_with_all_finds() -> None:
    draw = random.Random(1)
    steps = [Step(kind="test", what="ECG", id="test:ecg"), None]
    every = [
        Experience(observation=" ".join(draw.sample(WORDS, draw.randrange(8, 12))), suggestion="It.", step=each)
        for _ in range(150)
        for each in steps
    ]
    kept: dict[Step | None, list[frozenset[str]]] = {step: [] for step in steps}
    expected = []
    for each in every:
        said = content_words(each.observation)
        new = not any(len(said & other) >= 0.8 * len(said | other) for other in kept[each.step])
        expected.append(new)
        if new:
            kept[each.step].append(said)
    known = Known()
    assert [known.add(each) for each in every] == expected
    assert 0 < sum(expected) < len(every)


def test_what_may_be_shown_is_what_comparing_with_every_source_allows(tmp_path: Path) -> None:
    cases = bundled_cases()
    # The case itself, a twin with another chart, and sources that share half, a fifth or a tenth of its fingerprint.
    sources = [source_of(case) for case in cases[:6]]
    sources.append(sources[0].model_copy(update={"case": "rewritten", "fingerprint": "ffffffff"}))
    for number, kept in enumerate((32, 13, 7, 6, 0)):
        mixed = sources[0].fingerprint[: 8 * kept] + sources[4].fingerprint[8 * kept :]
        sources.append(sources[4].model_copy(update={"case": f"mixed-{number}", "names": (), "fingerprint": mixed}))
    for number, source in enumerate(sources):
        append(tmp_path / "store.jsonl", lesson(source, Experience(observation=f"pattern {number}", suggestion="Ask.")))
    memory = Memory(load_store(tmp_path / "store.jsonl"), "bm25")
    for case in cases[:8]:
        expected = [not same_patient(source_of(case), source) for source in sources]
        assert memory.allowed(case).tolist() == expected
    assert not memory.allowed(cases[0]).all()


def test_a_fingerprint_that_is_none_is_refused_with_its_line(tmp_path: Path) -> None:
    line = dumped(lesson(source_of(bundled_cases()[0]), Experience(observation="a", suggestion="b")))
    line["source"]["fingerprint"] = "not a sketch"
    (tmp_path / "store.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"line 1: source\.fingerprint"):
        load_store(tmp_path / "store.jsonl")
