"""How like a question is to what a statement tells, by learned vectors."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from agentclinic.cases.matcher.asking import clauses, stems
from agentclinic.cases.matcher.relevance import _SIGNS, FEATURES, answer_probabilities, features
from agentclinic.cases.matcher.vectors import STATEMENTS, TABLE, statement_vectors, vector
from agentclinic.cases.model import Fact, Section

STATEMENTS_TOLD = (
    "Dyspnea on exertion for three weeks",
    "Takes lisinopril for hypertension",
    "Works as a roofer",
    "Lives with two roommates",
    "Never smoked",
)


def chart(*texts: str) -> list[Fact]:
    return [Fact(f"fact {row}", Section.HISTORY, (), text) for row, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("question", "row"),
    [
        ("Do you get out of breath climbing stairs?", 0),
        ("Are you on any pills for blood pressure?", 1),
        ("What do you do for a living?", 2),
        ("Is anyone at home with you?", 3),
    ],
)
def test_a_statement_is_near_a_question_in_other_words(question: str, row: int) -> None:
    assert not stems(question) & stems(STATEMENTS_TOLD[row])
    assert int((statement_vectors(STATEMENTS_TOLD) @ vector(question)).argmax()) == row


def test_a_statement_without_words_has_a_vector() -> None:
    assert np.isfinite(statement_vectors(["?", "Cough"])).all()


def test_the_vectors_of_statements_were_learned_for_those_of_questions() -> None:
    with np.load(TABLE) as questions, np.load(STATEMENTS) as statements:
        assert int(statements["questions"]) == zlib.crc32(questions["vectors"].tobytes())


def test_likeness_is_that_of_the_likest_wording_and_is_compared_with_the_rest_of_the_chart() -> None:
    read = clauses("Do you get out of breath climbing stairs, or smoke?")
    facts = chart(*STATEMENTS_TOLD)
    table = features(read, facts)
    vectors = statement_vectors(STATEMENTS_TOLD)
    alike = np.array(
        [[max(vectors[row] @ vector(one) for one in part.wordings) for part in read[0].parts] for row in range(5)]
    )
    column = {name: table[:, :, FEATURES.index(name)] for name in FEATURES if "likeness" in name}
    assert np.allclose(column["likeness"], alike, atol=1e-5)
    assert np.allclose(column["likeness_beside_best"], alike - alike.max(axis=0), atol=1e-5)
    assert column["likeness_rank"].tolist() == (-alike).argsort(axis=0).argsort(axis=0).tolist()
    whole = vectors @ vector(read[0].text)
    assert np.allclose(column["clause_likeness"], whole[:, None], atol=1e-5)


def test_an_alike_statement_is_weighed_though_it_shares_nothing_with_the_question() -> None:
    read = clauses("Have you had a stomach bug recently?")
    facts = chart("Four days of cramps and diarrhea after a barbecue", "Never smoked")
    assert not (features(read, facts)[0][:, _SIGNS] > 0).any()
    chances = answer_probabilities(read, facts)
    assert chances[0].max() > 0
    assert chances[1].max() == 0


def test_a_chart_without_statements_has_no_vectors() -> None:
    assert len(statement_vectors([])) == 0
