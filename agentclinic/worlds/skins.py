"""Invented names: the same world with every disease, finding and test renamed, so that nothing can be remembered."""

from __future__ import annotations

import random

from agentclinic.vocabulary.text import words
from agentclinic.worlds.model import Way, World

_ONSETS = "b br d dr f g gl k kr l m n p pl r s sk t tr v z".split()
_VOWELS = "aeiou"
_CODAS = ("", "", "l", "n", "r", "s", "x")
_KINDS: dict[Way, tuple[str, ...]] = {
    "question": ("feeling", "ache", "spell"),
    "examination": ("sign", "mark"),
    "test": ("assay", "scan", "titer"),
}
_DISEASES = ("syndrome", "disease", "complex")


def new_names(world: World, seed: int) -> tuple[dict[str, str], dict[str, str]]:
    """An invented name for each disease, and for each finding."""
    draw = random.Random(f"skin {world.digest} {seed}")
    used: set[str] = set()

    def word() -> str:
        while True:
            made = "".join(draw.choice(_ONSETS) + draw.choice(_VOWELS) for _ in range(2))
            made += draw.choice(_ONSETS) + draw.choice(_VOWELS) + draw.choice(_CODAS)
            if made[:4] not in used:  # names that begin alike are mixed up
                used.add(made[:4])
                return made

    real = {part for name in (*world.diseases, *world.findings) for part in words(name)}

    def kind(of: tuple[str, ...]) -> str:
        """A word for what it is, which is in no real name if there is such a word."""
        return draw.choice([each for each in of if each not in real] or of)

    diseases = {name: f"{word().capitalize()} {kind(_DISEASES)}" for name in world.diseases}
    return diseases, {name: f"{word()} {kind(_KINDS[one.by])}" for name, one in world.findings.items()}


def invented(world: World, seed: int) -> World:
    """The world under invented names, in their alphabetical order; the numbers stay."""
    return world.renamed(
        *new_names(world, seed),
        about="",
        title="A world with invented names",
        patient="A patient",
        objective="Find out which of the possible diseases this patient has.",
    )
