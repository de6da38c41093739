"""Cues are looked for only where they may be, and found wherever they are."""

from __future__ import annotations

import re

import pytest

from agentclinic.cases.matcher.cues import Cue, needed


@pytest.mark.parametrize(
    ("pattern", "pieces"),
    [
        (r"\bhow (?:often|bad)\b", {"often", "bad"}),
        (r"\bhow\b", {"how"}),
        (r"a(?:bc|de)?fg", {"fg"}),
        (r"(?:and |or )*(?:do|does)\b", {"do", "does"}),
        (r"x{2,3}y|quux{0,2}", {"x", "quu"}),
        (r"colou?r(?! blind)", {"colo"}),
        (r"[^a-z|)]ab+cd", {"ab"}),
        (r"\bday\b|\d+", set()),
    ],
)
def test_every_match_has_one_of_the_needed_pieces(pattern: str, pieces: set[str]) -> None:
    assert needed(pattern) == pieces


def test_a_cue_is_found_in_any_case_and_only_where_its_pattern_is() -> None:
    cue = Cue(r"\bhow (?:often|bad)\b|\bcolou?r")
    for text in ("HOW OFTEN is that?", "And how bad?", "Which Color?", "Which colour?", "how is it?", "show often", ""):
        assert bool(cue.search(text)) == bool(re.search(cue.pattern.pattern, text, re.IGNORECASE))


def test_a_text_is_cut_and_rewritten_at_a_cue_without_losing_its_case() -> None:
    cue = Cue(r"\s+\bor\b\s+")
    assert cue.split("Fever OR chills or Ångström") == ["Fever", "chills", "Ångström"]
    assert cue.split("Fever OR Chills") == ["Fever", "Chills"]
    assert cue.sub(", ", "Fever OR Chills") == "Fever, Chills"
