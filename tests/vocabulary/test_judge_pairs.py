"""The adversarial pairs: what they cover, and how well the builtin judge does on them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentclinic.vocabulary.compare import STRICT, Relation, compare

PAIRS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "benchmarks" / "judge_pairs.jsonl").read_text("utf-8").splitlines()
]


def verdicts(pairs: list[dict[str, Any]]) -> list[tuple[bool, bool]]:
    """What the judge says and what is right, of the pairs that it can read."""
    judged = [(compare(p["diagnosis"], p["truth"], chart=p.get("chart", "")).relation, p["relation"]) for p in pairs]
    return [(said in STRICT, Relation(right) in STRICT) for said, right in judged if said is not None]


def test_the_pairs_are_many_of_every_relation_and_balanced() -> None:
    assert len(PAIRS) >= 300
    assert {pair["relation"] for pair in PAIRS} == {str(relation) for relation in Relation}
    accepted = sum(Relation(pair["relation"]) in STRICT for pair in PAIRS)
    assert 0.45 <= accepted / len(PAIRS) <= 0.55
    assert all(pair["why"] for pair in PAIRS)


def test_no_pair_is_repeated() -> None:
    asked = Counter((pair["truth"], pair["diagnosis"], pair.get("chart", "")) for pair in PAIRS)
    assert max(asked.values()) == 1


def test_a_third_of_the_pairs_is_held_out_and_so_are_those_written_after_the_rules() -> None:
    before = [pair for pair in PAIRS if not pair.get("fresh")]
    assert sum(pair.get("holdout", False) for pair in before) == len(before) // 3
    assert all(pair["holdout"] for pair in PAIRS if pair.get("fresh"))


# Well below what was measured: it detects a broken judge, not a changed rule.
@pytest.mark.parametrize("held_out", [False, True])
def test_the_judge_reads_most_pairs_and_says_yes_and_no_as_they_do(held_out: bool) -> None:
    pairs = [pair for pair in PAIRS if pair.get("holdout", False) is held_out]
    decided = verdicts(pairs)
    assert len(decided) > 0.75 * len(pairs)
    assert sum(said is not right for said, right in decided) < 0.05 * len(decided)


def test_every_relation_has_a_reason() -> None:
    assert all(compare(pair["diagnosis"], pair["truth"]).reason for pair in PAIRS)


def test_a_name_equals_itself_whatever_its_case_and_markup() -> None:
    for pair in PAIRS:
        truth = pair["truth"]
        for said in (truth, truth.lower(), f"**{truth}**", f"DIAGNOSIS READY: {truth}.", f"Diagnosis: {truth}"):
            assert compare(said, truth).relation is Relation.SAME, (said, truth)
