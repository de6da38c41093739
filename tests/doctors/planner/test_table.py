"""The planner's table: probabilities against values worked by hand, what is added to it, and what is not taken."""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import pytest
from policy_support import table_plan

from agentclinic.doctors.planner.schema import TableReply, TableState, Word
from agentclinic.doctors.planner.settings import load_policy
from agentclinic.doctors.planner.table import OTHER, WORDS, Row, Table, nearest_word, read_word

FEVER = Row("fever", "Have you had a fever?", rated={"A": "usually", "B": "rarely", OTHER: "sometimes"})
LIPASE = Row(
    "lipase over 600", "REQUEST TEST: Lipase", rated={"A": "almost always", "B": "almost never", OTHER: "rarely"}
)


def seen(row: Row, observed: TableState, **changes: Any) -> Row:
    return Row(**{**vars(row), "observed": observed, **changes})


def table(*rows: Row, **priors: float) -> Table:
    return Table(priors or {"A": 0.4, "B": 0.3}, rows)


def added(start: Table, **plan: Any) -> tuple[Table, list[str]]:
    return start.added(TableReply.model_validate(plan))


# Probabilities.


def test_priors_leave_the_rest_to_something_else() -> None:
    assert table().posterior == pytest.approx({"A": 0.4, "B": 0.3, OTHER: 0.3})


def test_something_else_has_at_least_one_in_twenty() -> None:
    assert table(A=0.9, B=0.6).prior == pytest.approx({"A": 0.57, "B": 0.38, OTHER: 0.05})


def test_a_finding_counts_by_its_probability_under_each_hypothesis() -> None:
    # 0.4 x 0.85, 0.3 x 0.1, 0.3 x 0.3: 0.34, 0.03 and 0.09 of 0.46.
    assert table(seen(FEVER, "present")).posterior == pytest.approx(
        {"A": 0.34 / 0.46, "B": 0.03 / 0.46, OTHER: 0.09 / 0.46}
    )
    # 0.4 x 0.15, 0.3 x 0.9, 0.3 x 0.7: 0.06, 0.27 and 0.21 of 0.54.
    assert table(seen(FEVER, "absent")).posterior == pytest.approx(
        {"A": 0.06 / 0.54, "B": 0.27 / 0.54, OTHER: 0.21 / 0.54}
    )


def test_one_test_that_all_but_decides_moves_the_odds_by_48() -> None:
    before, after = table(), table(seen(LIPASE, "present"))
    odds = (after.posterior["A"] / after.posterior["B"]) / (before.posterior["A"] / before.posterior["B"])
    assert odds == pytest.approx(0.97 / 0.02)


@pytest.mark.parametrize("state", ["unknown", "unavailable"])
def test_what_is_not_known_counts_nothing(state: TableState) -> None:
    assert table(seen(FEVER, state)).posterior == table().posterior


def test_the_order_of_findings_does_not_matter() -> None:
    rows = (seen(FEVER, "present"), seen(LIPASE, "absent"), seen(FEVER, "present", finding="chills", group="g"))
    found = [table(*order).posterior for order in permutations(rows)]
    assert all(posterior == pytest.approx(found[0]) for posterior in found)


def test_of_a_group_only_the_most_telling_known_finding_counts() -> None:
    weak = Row("chills", group="sepsis", rated={"A": "often", "B": "sometimes", OTHER: "sometimes"})
    strong = seen(FEVER, "present", group="Sepsis")
    for weaker in (seen(weak, "present"), seen(weak, "absent"), weak):
        assert table(strong, weaker).posterior == pytest.approx(table(strong).posterior)
    assert table(strong, seen(weak, "present", group="")).posterior["A"] > table(strong).posterior["A"]
    unknown = seen(strong, "unknown")
    assert table(unknown, seen(weak, "present")).posterior == pytest.approx(table(seen(weak, "present")).posterior)


def test_a_rating_that_is_missing_is_as_for_something_else() -> None:
    row = Row("fever", rated={"A": "usually", OTHER: "sometimes"}, observed="present")
    full = Row("fever", rated={"A": "usually", "B": "sometimes", OTHER: "sometimes"}, observed="present")
    assert table(row).posterior == pytest.approx(table(full).posterior)
    assert table(Row("fever", observed="present")).posterior == pytest.approx(table().posterior)


# What to do next.


def entropy(p: float) -> float:
    return -p * math.log2(p) - (1 - p) * math.log2(1 - p)


def test_the_information_of_a_step_is_about_the_leader_against_the_rest() -> None:
    (step,) = table(LIPASE).steps(lambda _: False)
    # Present: 0.4 x 0.97 = 0.388 of 0.424. Absent: 0.4 x 0.03 = 0.012 of 0.576.
    expected = entropy(0.4) - 0.424 * entropy(0.388 / 0.424) - 0.576 * entropy(0.012 / 0.576)
    assert step.bits == pytest.approx(expected)
    assert step.lowest == pytest.approx(0.012 / 0.576)
    assert step.is_test


def test_the_most_informative_step_comes_first_and_what_was_done_or_is_known_is_left_out() -> None:
    start = table(FEVER, LIPASE, Row("age over 60", rated=FEVER.rated))
    assert [step.request for step in start.steps(lambda _: False)] == ["REQUEST TEST: Lipase", "Have you had a fever?"]
    assert [step.is_test for step in start.steps(lambda request: "Lipase" in request)] == [False]
    done = table(seen(FEVER, "unavailable"), seen(LIPASE, "present"))
    assert done.steps(lambda _: False) == ()


def test_findings_of_one_test_are_considered_together() -> None:
    second = seen(LIPASE, "unknown", finding="calcifications")
    (one,), (both,) = table(LIPASE).steps(lambda _: False), table(LIPASE, second).steps(lambda _: False)
    assert both.bits > one.bits
    assert both.lowest < one.lowest
    grouped = table(seen(LIPASE, "unknown", group="g"), seen(second, "unknown", group="g"))
    assert grouped.steps(lambda _: False)[0].bits == pytest.approx(one.bits)


def test_what_is_not_known_is_named_in_the_direction_that_speaks_for_the_hypothesis() -> None:
    a, b = table(FEVER, LIPASE).ranked
    assert a.unknowns == ("lipase over 600", "fever")
    assert b.unknowns == ("absence of lipase over 600", "absence of fever")


# Adding.

FIRST = table_plan({"A": 0.4, "B": 0.3}, fever="usually rarely sometimes", lipase="almost_always almost_never rarely")


def test_a_plan_fills_an_empty_table() -> None:
    made, remarks = Table().added(TableReply.model_validate_json(FIRST))
    assert remarks == []
    assert made.priors == {"A": 0.4, "B": 0.3}
    assert [row.finding for row in made.rows] == ["fever", "lipase"]
    assert made.rows[0].rated == {"A": "usually", "B": "rarely", OTHER: "sometimes"}


def test_priors_and_what_is_known_are_kept() -> None:
    start = table(seen(FEVER, "present"))
    changed, remarks = added(
        start,
        hypotheses=[{"diagnosis": "a", "prior": 0.9}],
        findings=[{"finding": "Fever", "ratings": [{"of": "rest", "how": "rarely"}], "observed": "unknown"}],
        observed=[{"finding": "1", "observed": "unavailable"}],
    )
    assert changed == start
    assert remarks == ["a: in the table as A, which stays as it is"]


def test_a_rating_that_is_sent_again_replaces_the_old_one() -> None:
    changed, remarks = added(
        table(FEVER),
        findings=[{"finding": "Fever", "ratings": [{"of": "A", "how": "rarely"}], "observed": "unknown"}],
        ratings=[{"finding": "1", "of": "B", "how": "often"}, {"finding": "1", "of": "other", "how": "sometimes"}],
    )
    assert changed.rows[0].rated == {"A": "rarely", "B": "often", OTHER: "sometimes"}
    assert remarks == [
        "fever: corrected from usually to rarely for A",
        "fever: corrected from rarely to often for B",
    ]


def test_a_finding_that_is_withdrawn_counts_nothing_and_keeps_its_number() -> None:
    start = table(seen(FEVER, "present"), LIPASE)
    now, remarks = added(start, withdraw=[1, "9"])
    assert remarks == ["fever: withdrawn", "not withdrawn: there is no finding '9'"]
    assert now.posterior == pytest.approx(table().posterior)
    assert (len(now.counting), now.ranked[0].coverage) == (1, 0.0)
    assert "1. (withdrawn)\n2. lipase over 600: " in now.shown
    then, remarks = added(
        now, observed=[{"finding": "2", "observed": "present"}, {"finding": "1", "observed": "absent"}]
    )
    assert [row.observed for row in then.rows] == ["withdrawn", "present"]
    assert remarks == ["observation left out: there is no finding '1'"]
    again, _ = added(now, findings=[{"finding": "fever", "observed": "present"}])
    assert [row.observed for row in again.rows] == ["withdrawn", "unknown", "present"], "named again, it is a new one"
    steps = added(table(FEVER), withdraw="1")[0].steps(lambda _: False)
    assert steps == ()


def test_a_group_can_be_given_later() -> None:
    start = table(seen(FEVER, "present"), seen(FEVER, "present", finding="chills"))
    grouped, remarks = added(start, findings=[{"finding": number, "group": "heat"} for number in ("1", "2")])
    assert remarks == []
    assert grouped.posterior == pytest.approx(table(seen(FEVER, "present")).posterior)
    same, remarks = added(start, findings=[{"finding": "9", "group": "heat"}])
    assert same == start
    assert remarks == ["change left out: there is no finding '9'"]


def test_a_new_hypothesis_takes_the_ratings_of_the_one_it_is_like() -> None:
    now, remarks = added(
        table(FEVER, LIPASE),
        hypotheses=[{"diagnosis": "C", "prior": 0.1, "like": "B"}],
        ratings=[{"finding": "1", "of": "C", "how": "often"}],
    )
    assert [row.rated["C"] for row in now.rows] == ["often", "almost never"]
    assert remarks == []
    _, remarks = added(table(FEVER), hypotheses=[{"diagnosis": "C", "prior": 0.1, "like": "Z"}])
    assert remarks[0] == "C: there is no hypothesis 'Z' that it could be like"
    _, remarks = added(table(FEVER), hypotheses=[{"diagnosis": "C", "prior": 0.1, "like": None}])
    assert remarks == ["ratings are missing for fever"]


def test_what_has_become_known_is_taken_and_a_correction_noted() -> None:
    start = table(FEVER, seen(LIPASE, "unavailable"))
    now, remarks = added(
        start, observed=[{"finding": 1, "observed": "yes"}, {"finding": "lipase over 600", "observed": "absent"}]
    )
    assert [row.observed for row in now.rows] == ["present", "absent"]
    assert remarks == []
    then, remarks = added(now, observed=[{"finding": "1.", "observed": "absent"}])
    assert then.rows[0].observed == "absent"
    assert remarks == ["fever: corrected from present to absent"]


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("pending", "unavailable"),
        ("result not available", "unavailable"),
        ("not assessed", "unknown"),
        (True, "present"),
    ],
)
def test_states_in_other_words(said: object, read: str) -> None:
    now, _ = added(table(FEVER), observed=[{"finding": "1", "observed": said}])
    assert now.rows[0].observed == read


def test_a_new_hypothesis_gets_its_prior_and_the_ratings_that_come_with_it() -> None:
    now, remarks = added(
        table(seen(FEVER, "present"), LIPASE),
        hypotheses=[{"diagnosis": "C", "prior": 0.1}],
        ratings=[{"finding": "1", "of": "C", "how": "almost always"}],
    )
    assert now.prior == pytest.approx({"A": 0.4, "B": 0.3, "C": 0.1, OTHER: 0.2})
    assert now.rows[0].rated["C"] == "almost always"
    assert remarks == ["ratings are missing for lipase over 600"]
    assert "2. lipase over 600: almost always A; almost never B; ? C; rarely other | unknown" in now.shown


def test_what_cannot_be_read_is_left_out_with_a_remark() -> None:
    made, remarks = added(
        table(),
        hypotheses=[{"prior": 0.2}, {"diagnosis": "C", "prior": "often"}],
        findings=[
            "fever",
            {"finding": "cough", "ratings": {"A": "0.9", "B": "purple", "Z": "rarely", "other": "Sometimes."}},
        ],
        ratings=[{"finding": "9", "of": "A", "how": "rarely"}],
        observed=[{"finding": "rash", "observed": "present"}],
        danger=7,
    )
    assert made.priors == {"A": 0.4, "B": 0.3, "C": 0.05}
    (cough,) = made.rows
    assert cough.rated == {"A": "usually", OTHER: "sometimes"}
    assert remarks == [
        "2 entries of the plan could not be read",
        "C: no prior, taken as 0.05",
        "cough: 'purple' is not a rating, left open for B",
        "cough: rating left out, there is no hypothesis 'Z'",
        "rating left out: there is no finding '9'",
        "observation left out: there is no finding 'rash'",
        "ratings are missing for cough",
    ]


def test_a_rating_of_the_rest_holds_for_all_that_are_not_named_and_no_one_later() -> None:
    ratings = [{"of": "Rest", "how": "rarely"}, {"of": "A", "how": "often"}]
    made, remarks = added(table(), findings=[{"finding": "cough", "ratings": ratings}])
    assert made.rows[0].rated == {"A": "often", "B": "rarely", OTHER: "rarely"}
    assert remarks == []
    assert "1. cough: often A; rarely rest | unknown" in made.shown
    later, _ = added(made, hypotheses=[{"diagnosis": "C", "prior": 0.1}])
    assert "C" not in later.rows[0].rated


def test_letters_follow_the_plans_own_order_even_if_a_name_is_known() -> None:
    made, _ = added(
        Table(),
        hypotheses=[{"diagnosis": name, "prior": 0.2} for name in ("Migraine", "migraine headache", "Gout")],
        findings=[{"finding": "aura", "ratings": [{"of": "C", "how": "rarely"}, {"of": "b", "how": "often"}]}],
    )
    assert list(made.priors) == ["Migraine", "Gout"]
    assert made.rows[0].rated == {"Gout": "rarely", "Migraine": "often"}


def test_something_else_is_no_hypothesis_of_its_own() -> None:
    made, _ = added(
        Table(), hypotheses=[{"diagnosis": "A", "prior": 0.5}, {"diagnosis": "Something else", "prior": 0.5}]
    )
    assert made.prior == pytest.approx({"A": 0.5, OTHER: 0.5})


def test_a_table_does_not_grow_without_end() -> None:
    start = Table({f"disease {n}": 0.01 for n in range(15)}, tuple(Row(f"finding {n}") for n in range(60)))
    now, remarks = added(start, hypotheses=[{"diagnosis": "C", "prior": 0.1}], findings=[{"finding": "cough"}])
    assert (len(now.priors), len(now.rows)) == (15, 60)
    assert remarks[:2] == ["C: left out, the table has 15 hypotheses", "cough: left out, the table has 60 findings"]


@pytest.mark.parametrize(
    ("said", "word"),
    [("Almost_Always", "almost always"), ("commonly", "often"), ("30%", "sometimes"), ("0.5", "often"), ("blue", None)],
)
def test_ratings_in_other_words(said: str, word: str | None) -> None:
    assert read_word(said) == word


@pytest.mark.parametrize("word", WORDS)
def test_the_nearest_word_to_its_own_number_is_the_word(word: Word) -> None:
    assert nearest_word(WORDS[word]) == word


def test_the_planner_is_told_the_numbers_behind_the_words() -> None:
    for text in (load_policy().file.bayes.system_base, load_policy().file.bayes.inline_system):
        numbers = [f"{word} ({round(100 * p)}" for word, p in WORDS.items()]
        assert all(number in text for number in numbers)


def test_the_planner_is_told_what_its_answer_may_do() -> None:
    file = load_policy().file
    for text in (file.system_base, file.inline_system, file.bayes.system_base, file.bayes.inline_system):
        assert "A leader that is sure enough may end the consultation and become the diagnosis." in text
        assert "in a few words, without and/or" in text
    assert "until its probability is below 0.01" in file.bayes.system_base
