"""The table of tests: what can be ordered, measured and priced, and by which names (`data/tests.json`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from agentclinic.vocabulary.name_table import read_table

KINDS = (
    "values", "panels", "specimens", "modalities", "tests", "vitals", "sites", "systems", "parts", "methods",
    "qualifiers", "timings",
)  # fmt: skip
"""The sections that list what an order or a heading can name."""


@dataclass(frozen=True)
class Price:
    """What a test costs, from the perspective stated in `data/tests.json`."""

    usd: float
    status: Literal["estimate", "included", "verified"]
    """`verified` only if the source document was read; `included` is part of the visit."""


@dataclass(frozen=True)
class Test:
    """An examination or investigation that has a price."""

    __test__ = False  # keeps pytest from collecting it

    id: str
    name: str
    category: str
    synonyms: tuple[str, ...]
    equivalents: tuple[str, ...]
    """Tests whose result answers this one, reviewed one by one."""
    invasiveness: int
    cost_level: Literal["low", "medium", "high"]
    price: Price
    wait_minutes: float
    """Until the result is available."""
    duration_minutes: float
    """The patient's time."""
    panel_of: tuple[str, ...]
    """Tests it contains."""


@lru_cache(maxsize=1)
def table() -> Mapping[str, Any]:
    return read_table("tests")


def split_list(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def names_of(kind: str, concept: str) -> list[str]:
    """Every name of an entry.

    A system's key is not a name: "skin biopsy" orders no examination of the skin.
    """
    entry = table()[kind][concept]
    names = [] if kind == "systems" else [concept]
    if "is" in entry:
        names.append(table()["priced"][entry["is"]]["name"].lower())
    return names + split_list(", ".join((*entry.get("priced", {}).values(), entry.get("names", ""))))


def priced_tests() -> dict[str, Test]:
    """The tests that have a price, by id, each with all of its names."""
    synonyms = {test: split_list(entry.get("names", "")) for test, entry in table()["priced"].items()}
    for kind in KINDS:
        for entry in table()[kind].values():
            for test, names in entry.get("priced", {}).items():
                synonyms[test] += split_list(names)
    return {
        test: Test(
            id=test,
            name=entry["name"],
            category=entry["category"],
            synonyms=tuple(synonyms[test]),
            equivalents=tuple(entry.get("equivalents", ())),
            invasiveness=entry["invasiveness"],
            cost_level=entry["cost_level"],
            price=Price(**entry["price"]),
            wait_minutes=entry["wait_minutes"],
            duration_minutes=entry["duration_minutes"],
            panel_of=tuple(entry.get("panel_of", ())),
        )
        for test, entry in table()["priced"].items()
    }
