"""The vocabulary of orders is sound: everything it refers to exists, and every name means one thing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentclinic.cases.matcher import order_words
from agentclinic.cases.matcher.order_words import reading, same_site, vocabulary

TABLES: dict[str, Any] = json.loads(order_words._DATA.read_text(encoding="utf-8"))
VALUES = {*TABLES["values"], *TABLES["found"]}


def listed(text: str) -> set[str]:
    return {name.strip() for name in text.split(",") if name.strip()}


def test_panels_are_made_of_known_values_and_panels() -> None:
    for name, panel in TABLES["panels"].items():
        assert listed(panel.get("values", "")) <= VALUES, name
        assert listed(panel.get("panels", "")) | listed(panel.get("headings", "")) <= set(TABLES["panels"]), name
        assert panel.get("specimen", "urine") in TABLES["specimens"], name


def test_sites_systems_and_parts_refer_to_each_other() -> None:
    sites, systems = set(TABLES["sites"]), set(TABLES["systems"])
    for name, site in TABLES["sites"].items():
        assert listed(site.get("of", "")) <= sites - {name}, name
    for name, system in TABLES["systems"].items():
        assert listed(system["sites"]) <= sites, name
        assert listed(system.get("covers", "")) <= systems, name
    for name, part in TABLES["parts"].items():
        assert listed(part["of"]) <= sites | systems, name
        assert listed(part.get("in", "")) <= set(TABLES["parts"]), name
        assert part.get("by", "palpation") in TABLES["methods"], name


def test_kinds_and_likenesses_are_of_known_tests() -> None:
    known = VALUES | set(TABLES["tests"]) | set(TABLES["parts"])
    for table in ("kinds", "alike"):
        for name, others in TABLES[table].items():
            assert {name, *listed(others)} <= known, name
    for name, sites in TABLES["reached"].items():
        assert name in TABLES["tests"]
        assert listed(sites) <= set(TABLES["sites"]), name


def test_no_name_stands_for_two_things_of_one_kind() -> None:
    for name, concepts in vocabulary().named.items():
        kinds = [kind for kind, _ in concepts]
        assert len(kinds) == len(set(kinds)), (name, concepts)


@pytest.mark.parametrize(
    ("text", "kind", "named"),
    [
        ("Anti-calcium-channel antibodies", "values", {"vgcc antibody"}),
        ("Carboxyhaemoglobin", "values", {"carboxyhemoglobin"}),
        ("C-spine", "sites", {"cervical spine"}),
        ("serum lactate", "modalities", set()),
        ("CXR", "modalities", {"x ray"}),
        ("peripheral pulses", "vitals", set()),
        ("pulse", "vitals", {"heart rate"}),
        ("paranasal sinuses", "sites", {"sinus"}),
    ],
)
def test_names_are_read_as_whole_words_longest_first(text: str, kind: str, named: set[str]) -> None:
    assert reading(text).of(kind) == named


def test_a_site_is_within_another_however_deep() -> None:
    assert same_site("femur", "limb")
    assert same_site("spine", "cervical spine")
    assert not same_site("cervical spine", "lumbar spine")
    assert not same_site("hand", "foot")
