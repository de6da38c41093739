"""Finding experiences: by words, by embeddings, by a model that picks, and by chance; never on their own cases."""

from __future__ import annotations

import copy
import stat
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import Scripted
from helpers import case_of, osce
from memory_support import COUNT, DURATION, ELSEWHERE, TOE, experience, lesson, store_of, story, story_rows
from scripted_server import bag_of_words

from agentclinic.cases.model import Case
from agentclinic.clinic.prompts import load_prompt
from agentclinic.config import Retrieval
from agentclinic.errors import ConfigError
from agentclinic.memory import retrieval
from agentclinic.memory.experience import Lesson
from agentclinic.memory.retrieval import (
    Bm25,
    ByMeaning,
    CaseMemory,
    Embeddings,
    Memory,
    Picker,
    embed,
    situation,
)
from agentclinic.memory.store import load_store
from agentclinic.models.base import MalformedError, Model, Reply, Request
from agentclinic.privacy import DataClass
from agentclinic.results.turn import Exchange

pytestmark = pytest.mark.anyio

HEADACHE = Exchange("question", "What brings you here?", "I have had a throbbing headache for two days.")


class Embedding:
    """An embedding model that counts its requests."""

    name = "embedder"

    def __init__(self) -> None:
        self.texts: list[list[str]] = []

    async def reply(self, request: Request) -> Reply:
        self.texts.append([message.content for message in request.messages])
        return Reply(str([bag_of_words(message.content) for message in request.messages]))


def remembered(path: Path, *lessons: Lesson, how: Retrieval = "bm25") -> Memory:
    return Memory(load_store(store_of(path / "experiences.jsonl", *lessons)), how)


async def recalled(memory: Memory, case: Case, *exchanges: Exchange, **given: Any) -> list[str]:
    """Observations of what memory finds."""
    found = await CaseMemory(memory, case, None, **given).recall(exchanges, 2)
    return [each.experience.observation for each in found]


async def test_the_two_that_share_most_words_come_first_and_none_that_shares_nothing(tmp_path: Path) -> None:
    memory = remembered(tmp_path)
    assert await recalled(memory, story("Migraine"), HEADACHE) == [COUNT.observation, DURATION.observation]
    crystals = Exchange("test", "Joint fluid", "RESULTS: urate crystals.")
    assert await recalled(memory, story("Gout"), crystals) == [TOE.observation]
    assert await recalled(memory, story("Asthma")) == []


async def test_what_the_patient_denies_is_not_part_of_the_situation() -> None:
    denied = Exchange("question", "Is your toe swollen?", "No.")
    short = Exchange("question", "Is your toe swollen?", "Yes, since Monday.")
    long = Exchange("question", "Tell me about beer.", "I like to drink wine with my dinner.")
    told = situation(ELSEWHERE.door, [denied, long])
    assert "toe" not in told
    assert "beer" not in told
    assert "Is your toe swollen? Yes, since Monday." in situation(ELSEWHERE.door, [short])
    scores = await Bm25([TOE, DURATION]).scores("No swollen toe. Throbbing headache.")
    assert scores[0] == 0 < scores[1]


async def test_an_experience_is_not_shown_on_its_case_nor_on_the_same_case_elsewhere_its_twin_or_a_near_copy(
    tmp_path: Path,
) -> None:
    row = story_rows()[5]
    row["case_id"] = "one"
    near = copy.deepcopy(row)
    near["OSCE_Examination"]["Patient_Actor"]["Demographics"] = "27-year-old woman"
    near["case_id"] = "three"
    twin = osce(patient={"History": "Her head hurts."}, truth="Brain tumor", case_id="two", twin_of="one")
    memory = remembered(tmp_path, lesson(case_of(row), COUNT), lesson(ELSEWHERE, DURATION))
    for case in (case_of(row), case_of(row, "Elsewhere", 9), case_of(twin), case_of(near)):
        assert await recalled(memory, case, HEADACHE) == [DURATION.observation]
    assert len(await recalled(memory, story("Asthma"), HEADACHE)) == 2
    by_chance = Memory(memory.store, "shuffled")
    drawn = [await recalled(by_chance, case_of(twin), HEADACHE, seed=seed) for seed in range(10)]
    assert drawn == [[DURATION.observation]] * 10


async def test_an_experience_from_two_cases_is_shown_on_neither(tmp_path: Path) -> None:
    memory = remembered(tmp_path, lesson(story("Gout"), COUNT), lesson(story("Asthma"), DURATION, COUNT))
    assert await recalled(memory, story("Gout"), HEADACHE) == [DURATION.observation]
    assert await recalled(memory, story("Asthma"), HEADACHE) == []
    assert len(await recalled(memory, story("Migraine"), HEADACHE)) == 2


async def test_chance_offers_as_many_as_would_fit_and_the_same_with_the_same_seed(tmp_path: Path) -> None:
    lessons = lesson(ELSEWHERE, DURATION, COUNT, TOE), lesson(ELSEWHERE, experience("Cough", "Ask about smoke."))
    memory = remembered(tmp_path, *lessons, how="shuffled")
    drawn = [await recalled(memory, story("Migraine"), HEADACHE, seed=seed) for seed in range(20)]
    assert drawn == [await recalled(memory, story("Migraine"), HEADACHE, seed=seed) for seed in range(20)]
    assert {len(each) for each in drawn} == {2}
    assert len({tuple(each) for each in drawn}) > 3
    assert await recalled(memory, story("Asthma")) == [], "as many as would have been offered: none"


# A model that picks.


async def picked(numbers: str, tmp_path: Path) -> tuple[list[str], Scripted]:
    """What is offered if the model writes these numbers."""
    memory = remembered(tmp_path, lesson(ELSEWHERE, COUNT, DURATION))
    scripted = Scripted(numbers)
    picker = Picker(Reading(scripted), load_prompt("memory"))
    return await recalled(memory, story("Migraine"), HEADACHE, picker=picker), scripted


class Reading:
    """Reads a reply into the form that was asked for, as an endpoint does."""

    def __init__(self, model: Model) -> None:
        self.name = model.name
        self._model = model

    async def reply(self, request: Request) -> Reply:
        said = await self._model.reply(request)
        assert request.schema
        return Reply(said.text, parsed=request.schema.model_validate_json(said.text))


async def test_a_model_picks_from_what_was_found_in_its_own_order_and_may_pick_none(tmp_path: Path) -> None:
    chosen, scripted = await picked('{"numbers": [2, 1]}', tmp_path)
    assert chosen == [DURATION.observation, COUNT.observation]
    (prompt,) = scripted.prompts
    assert "throbbing headache for two days" in prompt
    assert f"1. {COUNT.observation} -> {COUNT.suggestion}\n2. {DURATION.observation}" in prompt
    assert (await picked('{"numbers": []}', tmp_path))[0] == []
    with pytest.raises(ValueError, match="Input should be 1 or 2"):
        await picked('{"numbers": [3]}', tmp_path)


# Embeddings.


async def test_experiences_are_embedded_once_and_kept_in_a_file(tmp_path: Path) -> None:
    memory, model = remembered(tmp_path), Embedding()
    scores = await memory.by_meaning(model).scores("Swollen toe with urate crystals")
    assert int(np.argmax(scores)) == 2
    assert scores[2] == pytest.approx(1)
    await memory.by_meaning(model).scores("Headache")
    assert [len(texts) for texts in model.texts] == [3, 1, 1]

    kept = tmp_path / "experiences.embeddings.npz"
    assert kept.is_file()
    store_of(tmp_path / "experiences.jsonl", lesson(ELSEWHERE, experience("Cough", "Ask about smoke.")))
    grown, again = Memory(load_store(tmp_path / "experiences.jsonl"), "embeddings"), Embedding()
    await grown.by_meaning(again).scores("Headache")
    assert again.texts == [["Cough"], ["Headache"]], "only what is new"

    other = Embedding()
    other.name = "other"
    await Memory(grown.store, "embeddings").by_meaning(other).scores("Headache")
    assert [len(texts) for texts in other.texts] == [4, 1], "another model, other vectors"


async def test_a_damaged_file_of_embeddings_is_made_again(tmp_path: Path) -> None:
    memory = remembered(tmp_path)
    await memory.by_meaning(Embedding()).scores("Headache")
    kept = tmp_path / "experiences.embeddings.npz"
    whole = kept.read_bytes()
    for damaged in (b"", b"not a file of vectors", whole[: len(whole) // 2]):
        kept.write_bytes(damaged)
        model = Embedding()
        await Memory(memory.store, "embeddings").by_meaning(model).scores("Headache")
        assert [len(texts) for texts in model.texts] == [3, 1]
        assert kept.read_bytes() == whole


def test_a_byte_changed_anywhere_in_the_file_of_embeddings_is_noticed_or_harmless(tmp_path: Path) -> None:
    path = tmp_path / "kept.npz"
    retrieval._write_vectors(path, "m", {"x": [1.0, 2.0]}, private=False)
    content = path.read_bytes()
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        assert all(isinstance(vector, list) for vector in retrieval._read_vectors(path, "m").values())


def test_a_cache_that_claims_to_be_huge_or_unpacks_to_nothing_is_no_cache(tmp_path: Path) -> None:
    path = tmp_path / "kept.npz"
    np.savez_compressed(path, model=np.array("m"), ids=np.array(["a"]), vectors=np.zeros((1, 9), np.float32))
    whole = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        member = archive.getinfo("vectors.npy")
        parts = {name: archive.read(name) for name in archive.namelist()}
    start = member.header_offset + 30 + len(member.filename) + len(member.extra) + 20
    path.write_bytes(whole[:start] + b"\xff" * 20 + whole[start + 20 :])
    assert retrieval._read_vectors(path, "m") == {}

    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content.replace(b"(1, 9), }" + b" " * 13, b"(%d, 9), }" % 10**14))
    assert retrieval._read_vectors(path, "m") == {}


async def test_embeddings_of_credentialed_experiences_are_for_the_owner_alone(tmp_path: Path) -> None:
    memory = remembered(tmp_path, lesson(ELSEWHERE, COUNT, data_class=DataClass.CREDENTIALED))
    await memory.by_meaning(Embedding()).scores("Headache")
    assert stat.S_IMODE((tmp_path / "experiences.embeddings.npz").stat().st_mode) == 0o600


async def test_what_is_no_embedding_is_malformed(tmp_path: Path) -> None:
    odd = ('[["a"], ["b"]]', "[null, null]", "[[1e39], [1]]", "[[NaN], [1]]")
    for reply in ("Certainly!", "[[1, 2], [3]]", "[[1, 2]]", "[[], []]", *odd):
        with pytest.raises(MalformedError):
            await embed(Scripted(reply), ["one", "two"])
    embeddings = Embeddings([COUNT], tmp_path / "kept.npz", private=False)
    with pytest.raises(MalformedError, match="of a different length than before"):
        await ByMeaning(embeddings, Scripted("[[1, 2, 3]]", "[[1, 2]]")).scores("Headache")


def test_experiences_without_a_step_are_refused_for_the_builtin_doctor(tmp_path: Path) -> None:
    prose = experience("Sore toe", "Ask about boats.", "Do you own a boat?")
    store = load_store(store_of(tmp_path / "prose.jsonl", lesson(ELSEWHERE, prose)))
    with pytest.raises(ConfigError, match="a false null"):
        Memory(store, "bm25", with_steps=True)
    mixed = load_store(store_of(tmp_path / "mixed.jsonl", lesson(ELSEWHERE, prose, COUNT)))
    assert Memory(mixed, "bm25", with_steps=True).experiences == (COUNT,)
