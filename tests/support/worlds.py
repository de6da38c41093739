"""Shared by the tests of solvable worlds: random worlds of any size."""

from __future__ import annotations

import random
from typing import Any

from agentclinic.worlds.model import Costs, Disease, Finding, Utilities, Way, World

DISEASES = (
    "Influenza|flu;Pneumonia|lung infection;Asthma;Migraine|sick headache;Gout;Anemia;"
    "Appendicitis;Pancreatitis;Cystitis|bladder infection;Tonsillitis;Sciatica;Shingles|zoster"
)
FINDINGS: dict[Way, str] = {
    "question": "cough;night sweats|sweating at night;chest pain|pain in the chest;thirst",
    "examination": "heart murmur|murmur;neck stiffness|stiff neck;abdominal tenderness;rash",
    "test": "troponin;chest x-ray|radiograph;hemoglobin|Hb;urinalysis",
}
"""Names with their synonyms."""
FREE = Costs(dollar=0, minute=0, turn=0)


def random_world(n_findings: int, n_diseases: int, seed: int, **changes: Any) -> World:
    """A world that depends on nothing but the arguments, with up to 12 diseases and 12 findings.

    By chance it allows deferring, has wrong answers that count less or more than others, and has costs of 0. No number
    of the table has more than three digits. `changes` replace fields of the world.
    """
    draw = random.Random(f"world {n_findings} {n_diseases} {seed}")
    cuts = [0, *sorted(draw.sample(range(1, 1000), n_diseases - 1)), 1000]
    diseases = {
        name: Disease(prior=(high - low) / 1000, synonyms=synonyms)
        for (name, *synonyms), low, high in zip(_named(DISEASES), cuts, cuts[1:], strict=False)
    }
    ways = draw.sample([(way, *one) for way, listed in FINDINGS.items() for one in _named(listed)], n_findings)
    findings = {
        name: Finding(
            by=way,
            price=draw.choice((0, 5, 40, 250)),
            minutes=draw.choice((0, 2, 15)),
            synonyms=synonyms,
            probability={disease: draw.randrange(1, 1000) / 1000 for disease in diseases},
        )
        for way, name, *synonyms in ways
    }
    made = {
        "name": "random",
        "title": "A random world",
        "patient": "An adult",
        "objective": "Find out what it is.",
        "diseases": diseases,
        "findings": findings,
        "utilities": _utilities(draw, list(diseases)),
        "costs": draw.choice(
            (FREE, Costs(dollar=draw.choice((0.001, 0.01)), minute=0.01, turn=draw.choice((0.05, 0.5))))
        ),
    }
    return World.model_validate(made | changes)


def _named(listed: str) -> list[list[str]]:
    return [one.split("|") for one in listed.split(";")]


def _utilities(draw: random.Random, diseases: list[str]) -> Utilities:
    pairs: dict[str, dict[str, float]] = {}
    for _ in range(draw.randrange(3)):
        truth, said = draw.sample(diseases, 2)
        pairs.setdefault(truth, {})[said] = draw.randint(-30, 5)
    deferred = draw.choice((None, draw.randint(-5, 8)))
    return Utilities(right=10, wrong=draw.randint(-15, 0), wrong_pairs=pairs, deferred=deferred, no_answer=-40)


def without_deferral(world: World) -> World:
    return world.model_copy(update={"utilities": world.utilities.model_copy(update={"deferred": None})})
