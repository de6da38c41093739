"""Orders and headings are read as what they name."""

from __future__ import annotations

import pytest

from agentclinic.cases.matcher.order_words import reading, same_site, vocabulary


def test_no_name_means_two_things_of_the_same_kind() -> None:
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


def test_a_site_can_be_nested_at_any_depth() -> None:
    assert same_site("femur", "limb")
    assert same_site("spine", "cervical spine")
    assert not same_site("cervical spine", "lumbar spine")
    assert not same_site("hand", "foot")
