"""Invented names: other names, the same world."""

from __future__ import annotations

import itertools

import pytest
from worlds import random_world

from agentclinic.vocabulary.text import content_words, words
from agentclinic.worlds.menu import answer, menu_text, named_ending, named_items, read_answer, request
from agentclinic.worlds.model import World
from agentclinic.worlds.skins import invented
from agentclinic.worlds.solve import random_value, solve

WORLDS = [random_world(8 + seed % 5, 6 + seed % 7, seed) for seed in range(20)]
"""None of their names has a word that skins use, such as "sign" or "fever"."""


def texts(world: World) -> World:
    """With a text wherever one can be, and a real name in each."""
    findings = {
        name: one.model_copy(update={"present": f"{name} found", "absent": f"{name} not found"})
        for name, one in world.findings.items()
    }
    disease, finding = next(iter(world.diseases)), next(iter(world.findings))
    pairs = {truth: dict.fromkeys(set(world.diseases) - {truth}, -7.0) for truth in world.diseases}
    return world.model_copy(
        update={
            "title": f"{disease} and the like",
            "patient": f"An adult with {finding}",
            "objective": f"Exclude {disease}.",
            "findings": findings,
            "utilities": world.utilities.model_copy(update={"wrong_pairs": pairs}),
        }
    )


def real_words(world: World) -> set[str]:
    diseases = [given for name, one in world.diseases.items() for given in (name, *one.synonyms)]
    findings = [given for name, one in world.findings.items() for given in (name, *one.synonyms)]
    return {word for given in (*diseases, *findings) for word in content_words(given)}


def test_the_same_seed_gives_the_same_names() -> None:
    for world in WORLDS:
        again = World.model_validate(world.model_dump())
        assert menu_text(invented(world, 3)) == menu_text(invented(again, 3))
        assert invented(world, 3) == invented(again, 3)


def test_another_seed_gives_other_names() -> None:
    for world in WORLDS:
        one, other = invented(world, 3), invented(world, 4)
        assert not set(one.diseases) & set(other.diseases)
        assert not set(one.findings) & set(other.findings)


def test_another_world_has_other_names() -> None:
    one, other = invented(random_world(8, 6, 1), 3), invented(random_world(8, 6, 2), 3)
    assert not set(one.diseases) & set(other.diseases)


def test_no_word_of_a_real_name_is_left() -> None:
    for world in map(texts, WORLDS):
        real = real_words(world)
        assert real & set(words(world.title)), "the test could not fail"
        values = invented(world, 5).model_dump_json(exclude={"name"})
        assert not real & set(words(values))


def test_no_real_name_is_left_in_the_note_about_the_numbers() -> None:
    world = random_world(8, 6, 1, about="Influenza is common in winter.")
    assert "Influenza" not in invented(world, 5).model_dump_json()


def test_a_word_of_a_real_name_is_not_a_part_of_an_invented_one() -> None:
    world = random_world(8, 6, 1)
    fever = dict(zip(("fever", *list(world.findings)[1:]), world.findings.values(), strict=True))
    feverish = world.model_copy(update={"findings": fever})
    assert all("fever" not in words(name) for seed in range(5) for name in invented(feverish, seed).diseases)


def mapping(world: World, skin: World) -> tuple[dict[str, str], dict[str, str]]:
    """Which disease and which finding has which invented name, by their numbers."""
    diseases = {
        name: new
        for name, one in world.diseases.items()
        for new, two in skin.diseases.items()
        if one.prior == two.prior
    }
    findings = {
        name: new
        for name, one in world.findings.items()
        for new, two in skin.findings.items()
        if {diseases[each]: p for each, p in (one.probability or {}).items()} == two.probability
    }
    assert sorted(diseases.values()) == list(skin.diseases)
    assert sorted(findings.values()) == list(skin.findings)
    return diseases, findings


def test_the_numbers_are_the_same() -> None:
    compared = 0
    for world in WORLDS:
        if len(set(world.priors)) < len(world.diseases):
            continue  # the test could not tell which disease is which
        skin = invented(world, 6)
        diseases, findings = mapping(world, skin)
        for name, new in findings.items():
            one, two = world.findings[name], skin.findings[new]
            assert (one.by, one.price, one.minutes) == (two.by, two.price, two.minutes)
            assert world.cost(name) == skin.cost(new)
        for truth, said in itertools.product(world.diseases, repeat=2):
            assert world.utility(truth, said) == skin.utility(diseases[truth], diseases[said])
        assert world.turns == skin.turns
        compared += 1
    assert compared >= 10


def test_the_best_play_is_worth_the_same() -> None:
    for world in (texts(random_world(8, 6, seed)) for seed in range(5)):
        assert len(set(world.priors)) == 6
        skin = invented(world, 6)
        diseases, findings = mapping(world, skin)
        real, new = solve(world), solve(skin)
        assert new.value(new.start) == pytest.approx(real.value(real.start), abs=1e-12)
        assert random_value(skin) == pytest.approx(random_value(world), abs=1e-12)
        known = dict(zip(list(world.findings)[:3], (True, False, True), strict=True))
        there, here = real.state(known), new.state({findings[name]: it for name, it in known.items()})
        assert new.value(here) == pytest.approx(real.value(there), abs=1e-12)
        asking, ending = new.asking(here), new.ending(here)
        for name, value in real.asking(there).items():
            assert asking[findings[name]] == pytest.approx(value, abs=1e-12)
        for name, value in real.ending(there).items():
            assert ending[diseases.get(name, name)] == pytest.approx(value, abs=1e-12)


def test_invented_names_can_be_told_apart() -> None:
    for world, seed in itertools.product(WORLDS, range(10)):
        skin = invented(world, seed)
        names = [*skin.diseases, *skin.findings]
        assert len(names) == len(world.diseases) + len(world.findings)
        assert len({name[:4].casefold() for name in names}) == len(names)
        assert not [(a, b) for a, b in itertools.permutations(names, 2) if a.casefold() in b.casefold()]


def test_invented_names_are_read() -> None:
    for world in WORLDS:
        skin = invented(world, 7).told(shown=False)
        assert [named_ending(skin, f"DIAGNOSIS READY: {said}") for said in skin.endings] == list(skin.endings)
        for name, one in skin.findings.items():
            assert named_items(skin, request(name, one)) == [name]
            assert read_answer(skin, answer(name, one, True)) == (name, True)


def test_the_order_is_that_of_the_names() -> None:
    for world in WORLDS:
        skin = invented(world, 8)
        assert list(skin.diseases) == sorted(skin.diseases)
        assert list(skin.findings) == sorted(skin.findings)


def test_nothing_in_it_has_the_order_of_the_file() -> None:
    for world in map(texts, WORLDS):
        skin = invented(world, 8)
        listed = [list(skin.utilities.wrong_pairs), *(list(one.probability or {}) for one in skin.findings.values())]
        assert all(each == sorted(each) for each in listed)


def test_the_menu_names_nothing_real() -> None:
    for world in map(texts, WORLDS):
        said = set(words(menu_text(invented(world, 9))))
        assert not real_words(world) & said
