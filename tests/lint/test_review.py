"""Reviews of cases: versions, files, and what several reviewers say together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers import case_of, osce

from agentclinic.cases.model import Case
from agentclinic.errors import InputError
from agentclinic.lint.review import COLUMNS, Item, Review, digest, form_rows, merge, read_reviews, summarize
from agentclinic.report.tables import csv_table


def case(name: str = "osce-t01", **changes: object) -> Case:
    given: dict[str, Any] = {"Answer_Key": {"accept": ["podagra"], "reject": []}, **changes}
    return case_of(osce(truth="Gout", case_id=name, **given))


CASE = case()
CASES = {"osce-t01": CASE}


def review(item: str = "tier", verdict: str | None = "ok", by: str = "ann", of: Case = CASE, **more: str) -> Review:
    given = {"case_id": of.name, "digest": digest(of), "reviewer": by, "item": item, "verdict": verdict, **more}
    return Review.model_validate(given)


def problem(item: str = "tier", by: str = "ann", of: Case = CASE, **more: str) -> Review:
    return review(item, "problem", by, of, **{"severity": "minor", "remark": "wrong", **more})


def test_the_digest_changes_with_what_reviewers_judge_and_not_with_bookkeeping() -> None:
    key = {"accept": ["gouty arthritis"], "reject": []}
    changed = [case(tier="hard"), case(Answer_Key=key), case(objective="Something else.")]
    assert len({digest(one) for one in (CASE, *changed)}) == 4
    kept = [case(lockbox=True), case(version=9), case(canary="openosce-canary-00000000")]
    assert {digest(one) for one in kept} == {digest(CASE)}


def filled(text: str, file: Path, separator: str = ",") -> Path:
    """A form as a spreadsheet saves it, with some rows filled in: `item verdict severity remark`."""
    given = {words[0]: words[1:] for line in text.splitlines() if (words := line.split(" ", 3))}
    rows = [(*row[:5], *given.get(row[3], row[5:])) for row in form_rows([CASE], "ann")]
    made = csv_table(COLUMNS, rows)
    if separator != ",":
        made = "\n".join(separator.join((*row[:4], "", *row[5:])) for row in [COLUMNS, *rows])
    file.write_text("\ufeff" + made, encoding="utf-8")
    return file


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_form_is_read_as_spreadsheets_save_it(separator: str, tmp_path: Path) -> None:
    file = filled("tier OK  \nfair_key Problem MAJOR =gout? too narrow", tmp_path / "a.csv", separator)
    read = read_reviews([file], CASES)
    assert read == [
        problem("fair_key", severity="major", remark="=gout? too narrow"),
        review("tier"),
    ], "empty rows say nothing, and what no spreadsheet may run comes back as it was written"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("tier fine  ", "'fine': Input should be 'ok', 'problem' or 'unsure'"),
        ("tier   looks right", "the verdict is missing; write ok, problem, unsure"),
        ("tier ok minor ", "a severity belongs to a problem"),
        ("tier problem minor ", "a problem needs a severity"),
        ("tier problem  no severity", "a problem needs a severity (minor, major, critical)"),
        ("tier problem huge x", "'huge': Input should be 'minor', 'major' or 'critical'"),
        ("blind_sure   very", "'very' is not a number from 0 to 100"),
        ("blind_sure   120%", "'120%' is not a number from 0 to 100"),
        ("blind_answer ok  gout", "blind_answer has no verdict"),
    ],
)
def test_a_row_that_cannot_be_used_is_named_with_what_to_do(line: str, said: str, tmp_path: Path) -> None:
    number = 2 + list(Item).index(Item(line.split()[0]))
    with pytest.raises(InputError) as raised:
        read_reviews([filled(line, tmp_path / "a.csv")], CASES)
    assert f"a.csv line {number}: " in str(raised.value)
    assert said in str(raised.value)


def test_every_unusable_line_is_listed_and_nothing_is_read(tmp_path: Path) -> None:
    other, ann, again = case("osce-t02"), tmp_path / "ann.csv", tmp_path / "again.csv"
    filled("tier ok  \nfair_key bad  ", ann)
    filled("tier unsure  ", again)
    lines = tmp_path / "model.jsonl"
    lines.write_text(review(of=other, by="m").model_dump_json() + "\n", encoding="utf-8")
    with pytest.raises(InputError) as raised:
        read_reviews([ann, again, lines], CASES)
    first, *told = str(raised.value).splitlines()
    assert first == "nothing was imported:"
    assert [line.partition(": ")[0].removeprefix(f"{tmp_path}/") for line in told] == [
        "ann.csv line 5",
        "again.csv line 11",
        "model.jsonl line 1",
    ]
    assert "ann says something else in" in told[1]
    assert "no case 'osce-t02' to review here; name its data set with --dataset" in told[2]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"case_id,digest,item,verdict\n", "line 1: no column severity, remark; keep the first line"),
        (b"", "line 1: no column case_id"),
        ("case_id,digest,item,verdict,severity,remark\nä".encode("latin-1"), "save it as CSV UTF-8"),
        (b"case_id,digest,item,verdict,severity,remark\nosce-t01,v-1,tier,ok,,\n", "line 2: no reviewer; fill in"),
    ],
)
def test_a_file_that_is_no_form_is_refused(content: bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(content)
    with pytest.raises(InputError, match=r"a\.csv") as raised:
        read_reviews([file], CASES)
    assert said in str(raised.value)


def test_a_form_for_an_earlier_version_is_refused_unless_it_is_asked_for(tmp_path: Path) -> None:
    file, now = filled("tier ok  ", tmp_path / "a.csv"), {"osce-t01": case(tier="hard")}
    with pytest.raises(InputError, match=r"osce-t01 has changed since this form was exported .*--outdated"):
        read_reviews([file], now)
    assert read_reviews([file], now, outdated=True) == [review("tier")]
    history = tmp_path / "reviews.jsonl"
    history.write_text(review("tier").model_dump_json() + "\n", encoding="utf-8")
    assert read_reviews([history], now) == [review("tier")], "a file of reviews keeps those of earlier versions"


def test_what_a_reviewer_says_again_replaces_it_and_what_was_settled_stays_settled() -> None:
    settled = problem("tier", settled="kept: discussed")
    kept = [settled, problem("fair_key"), review("tier", by="ben")]
    merged = merge(kept, [problem("tier"), review("fair_key"), review("timeline")])
    assert (merged.new, merged.replaced) == (1, 1)
    assert merged.reviews == [review("fair_key"), review("timeline"), settled, review("tier", by="ben")]


def test_agreement_is_corrected_for_chance() -> None:
    """Worked by hand: 3 of 4 pairs agree, 3 of 8 verdicts are problems, so (3/4 - 34/64) / (1 - 34/64) = 7/15."""
    said = {
        "single_answer": "oo",
        "fair_key": "oo",
        "timeline": "pp",
        "tier": "op",
        "dangerous": "uo",
        "physiology": "o",
    }
    made = [
        problem(item, by) if verdict == "p" else review(item, "ok" if verdict == "o" else "unsure", by)
        for item, verdicts in said.items()
        for by, verdict in zip(("ann", "ben"), verdicts, strict=False)
    ]
    found = summarize(made, CASES)
    assert (found.agreement.count, found.agreement.of) == (3, 4)
    assert found.kappa.value == pytest.approx(7 / 15)
    assert summarize(made[:1], CASES).kappa.value is None


def test_problems_are_open_until_the_case_changes_or_they_are_settled() -> None:
    before, now = case(tier="core"), case(tier="hard")
    made = [
        problem("tier", of=before, severity="major"),
        problem("tier", by="ben", of=now, settled="kept"),
        problem("tier", by="cat", of=now, severity="critical"),
        review("tier", by="dan", of=now),
    ]
    found = summarize(made, {"osce-t01": now})
    (tier,) = (one for one in found.items if one.item == "tier")
    assert (tier.ok, tier.problem, tier.changed_since, tier.settled, tier.open) == (1, 3, 1, 1, 1)
    assert tier.by_severity == {"minor": 1, "major": 1, "critical": 1}
    assert found.open_problems == [made[2]]
    assert (found.cases, found.outdated_cases) == (1, 0)
    assert summarize(made[:1], {"osce-t01": now}).outdated_cases == 1


def test_blind_answers_are_judged_by_the_answer_key() -> None:
    made = [
        review("blind_answer", None, by, remark=answer)
        for by, answer in (("ann", "Podagra"), ("ben", "Septic arthritis"), ("cat", "hm, not sure"))
    ]
    made.append(review("blind_sure", None, "ben", remark="40 %"))
    found = summarize(made, CASES)
    assert [(one.reviewer, one.accepted, one.sure) for one in found.blind] == [
        ("ann", True, None),
        ("ben", False, 40.0),
        ("cat", None, None),
    ]
    assert (found.blind_accepted.count, found.blind_accepted.of) == (1, 2)
