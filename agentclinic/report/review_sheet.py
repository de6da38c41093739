"""Pages on which a reviewer reads a case: the chart as the patient and the laboratory give it, then the answer.

Each page stands alone, requests nothing from anywhere, and can be printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from agentclinic.cases.completion import completed
from agentclinic.cases.model import JSON, Case, Fact, Section
from agentclinic.cases.registry import DATASETS
from agentclinic.clinic.pending import hours_for, late_result
from agentclinic.lint.annotations import ways_of
from agentclinic.lint.chart import Chart
from agentclinic.lint.review import QUESTIONS, SEVERITIES, VERDICTS, WORDS_ONLY, digest
from agentclinic.report.page import standalone, styles
from agentclinic.report.tables import Html, html_table, plural, tag
from agentclinic.scoring.information import below

NOT_VALIDATED = "Model-written and model-reviewed: no clinician has validated these cases."
"""Of the cases in the package."""
_UNKNOWN = "AgentClinic does not know whether a clinician has validated these cases."
_NOT_ADVICE = "A research benchmark, not medical advice."
_STYLE = """
header, main, footer { max-width: 900px; } .answer-fold > summary { font-weight: 600; font-size: 15px; }
td, th { white-space: normal; vertical-align: top; }
.box { display: block; white-space: nowrap; } .lines { min-width: 16em; height: 3.4em; }
@media print { .answer-fold { break-before: page; } .checklist { break-before: page; } }
"""
_BLIND = (
    "Solve the case before you open the answer. Write your diagnosis, and how sure you are of it, in the form, and do "
    "not change them later."
)
_HARM = ("none", "minor", "moderate", "serious", "death or lasting damage")


def status_of(dataset: str) -> str:
    """Who has reviewed the cases of a data set, as far as we know."""
    known = DATASETS.get(dataset)
    return NOT_VALIDATED if known and known.bundled else _UNKNOWN


def case_page(case: Case) -> str:
    """The sheet of one case: the chart, a fold with the answer, and the checklist."""
    given = case.annotations
    place = ", ".join(str(given[key]) for key in ("setting", "acuity") if given.get(key))
    speaker = str(given.get("speaker", "patient"))
    door = [
        ("What the doctor is told first", case.door.objective),
        ("Patient", case.door.demographics),
        ("Setting", place),
        ("Who speaks", "" if speaker == "patient" else f"the patient's {speaker}"),
    ]
    body = [
        tag("section", tag("h2", "The patient"), _listed(door), _patient(case)),
        tag("section", tag("h2", "Examination and tests"), _results(case), _completed(case)),
        tag(
            "section",
            tag("h2", "Your own answer"),
            tag("p", _BLIND, class_="lede"),
            tag("details", tag("summary", "Open the answer"), _answer(case), class_="answer-fold"),
        ),
        tag("section", tag("h2", "Checklist"), _checklist(), class_="checklist"),
    ]
    return _page(case.name, f"{case.dataset}, version {digest(case)}", status_of(case.dataset), body)


def index_page(cases: Sequence[Case], pages: Sequence[str], form: str) -> str:
    """How to review, and a link to each case."""
    steps = (
        "Read a case and solve it before you open the answer.",
        f"Write your verdicts in {form}: open it in a spreadsheet, leave its other columns as they are, and save it "
        "as CSV UTF-8.",
        f"Verdicts are {', '.join(VERDICTS)}. Rows that you leave empty count as not reviewed.",
        f"A problem needs a remark that says what is wrong, and a severity: {_severities()}.",
        "To print a case with its answer, open the answer first; it begins on a new page.",
        f"Send {form} back. Nothing leaves your computer unless you send it.",
    )
    questions = [(item.value, question) for item, question in QUESTIONS.items()]
    links = [tag("li", tag("a", case.name, href=page)) for case, page in zip(cases, pages, strict=True)]
    body = [
        tag("section", tag("h2", "How to review"), tag("ol", [tag("li", step) for step in steps])),
        tag("section", tag("h2", "Checklist"), html_table("Checklist", ("item", "question"), questions, (0, 1))),
        tag("section", tag("h2", "Cases"), tag("ul", links)),
    ]
    return _page("Case review", plural(len(cases), "case"), status_of(cases[0].dataset), body)


def _page(title: str, about: str, status: str, body: Iterable[Html]) -> str:
    shown = tag(
        "body",
        tag("header", tag("p", tag("b", "AgentClinic"), f" case review: {about}", class_="eyebrow"), tag("h1", title)),
        tag("main", tag("p", status, class_="warn"), *body),
        tag("footer", tag("p", f"{status} {_NOT_ADVICE}")),
    )
    return standalone(f"{title} – AgentClinic case review", styles() + _STYLE, shown)


def _listed(pairs: Iterable[tuple[str, object]]) -> Html:
    return tag("ul", [tag("li", tag("b", f"{name}: "), value) for name, value in pairs if value])


def _patient(case: Case) -> list[Html]:
    """The patient's facts by section, with the patient's own words."""
    facts = [fact for fact in case.patient_facts if fact.section is not Section.DEMOGRAPHICS]
    made = []
    for section, group in groupby(facts, key=lambda fact: fact.section):
        title = section.value.replace("_", " ").capitalize()
        rows = [(fact.text, fact.says or "", _manner(fact)) for fact in group]
        made.append(html_table(title, (title, "in the patient's words", "told"), rows, range(3)))
    manner = case.annotations.get("Manner")
    if isinstance(manner, dict):
        made += [tag("h3", "Manner"), _listed((str(key), text) for key, text in manner.items())]
    return made


def _manner(fact: Fact) -> str:
    return ", ".join([fact.told, *(["sensitive"] if fact.sensitive else []), *(["in private"] if fact.private else [])])


def _results(case: Case) -> list[Html]:
    """What the chart holds, and which results are not back in time in this setting."""
    horizon = hours_for(case)
    made = []
    for title, sections in (("Examination", (Section.VITALS, Section.EXAMINATION)), ("Tests", (Section.TESTS,))):
        rows = [
            (_heading(fact), fact.text, late_result(fact, horizon))
            for fact in case.exam_facts
            if fact.section in sections
        ]
        if rows:
            made.append(html_table(title, (title, "result", "not back yet"), rows, range(3)))
    return made


def _completed(case: Case) -> Html | None:
    if not Chart(case).completed:
        return None
    rows = [(_heading(fact), fact.text) for fact in completed(case)]
    note = "If the doctor orders one of these, the laboratory gives this normal result, which the chart does not hold."
    return tag(
        "details",
        tag("summary", f"{len(rows)} normal results that the laboratory adds"),
        tag("p", note, class_="note"),
        html_table("Added normal results", ("normal results that the laboratory adds", "result"), rows, range(2)),
    )


def _heading(fact: Fact) -> str:
    return ", ".join(head for head in fact.heads if head != "Findings") or fact.section.value


def _answer(case: Case) -> list[Html]:
    given, key = case.annotations, case.answer_key
    harm = given.get("Harm_If_Missed")
    about = [
        ("Diagnosis", case.diagnosis),
        ("Also accepted", "; ".join(key.accept)),
        ("Accepted in part", "; ".join(key.partial)),
        ("Harm if missed", f"{harm} ({_HARM[harm]})" if isinstance(harm, int) and 0 <= harm < len(_HARM) else ""),
        *((name, given.get(name.lower())) for name in ("Tier", "Presentation")),
        ("Twin", given.get("twin_of")),
        ("References", "; ".join(map(str, _entries(given.get("references"))))),
    ]
    rejected = [(text, reason) for text, reason in key.reject]
    differential = [
        tuple(str(entry.get(name, "")) for name in ("name", "why_considered", "refuted_by"))
        for entry in _objects(given.get("Differential"))
    ]
    findings = [
        (_named(case, entry.get("any_of")), str(entry.get("role", "")), str(entry.get("weight", "")))
        for entry in _objects(given.get("Key_Findings"))
    ]
    dangers = [
        (str(entry.get("name", "")), _excluded(case, entry), str(entry.get("because", "")), str(entry.get("harm", "")))
        for entry in _objects(given.get("Must_Not_Miss"))
    ]
    tables: list[tuple[str, tuple[str, ...], Sequence[Sequence[object]]]] = [
        ("Rejected answers", ("rejected", "because"), rejected),
        ("Differential", ("alternative", "considered because", "refuted by"), differential),
        ("Key findings", ("any of these findings", "role", "weight"), findings),
        ("Must not miss", ("dangerous alternative", "excluded by", "because", "harm"), dangers),
    ]
    shown = [
        (tag("h3", title), html_table(title, head, rows, range(len(head)))) for title, head, rows in tables if rows
    ]
    return [_listed(about), *(part for pair in shown for part in pair)]


def _entries(value: JSON) -> list[JSON]:
    return value if isinstance(value, list) else []


def _objects(value: JSON) -> list[Mapping[str, JSON]]:
    return [entry for entry in _entries(value) if isinstance(entry, dict)]


def _named(case: Case, paths: JSON) -> list[Html]:
    """The findings at some chart paths, in words."""
    return [tag("div", _found(case, str(path))) for path in _entries(paths)]


def _found(case: Case, path: str) -> str:
    facts = [fact for fact in case.facts if below(fact.path, path)]
    return "; ".join(f"{_heading(fact)}: {fact.text}" for fact in facts) or path


def _excluded(case: Case, entry: Mapping[str, JSON]) -> list[Html] | str:
    """Each way to exclude a disease on a line of its own; what only counts together is joined by "and"."""
    ways = ways_of(dict(entry))
    if not ways:
        return str(entry.get("excluded_by", ""))
    return [tag("div", " and ".join(_found(case, path) for path in way)) for way in ways]


def _checklist() -> list[Html]:
    """The questions with room to write, for print; verdicts are imported from the form."""
    boxes = [tag("span", f"☐ {word}", class_="box") for word in VERDICTS]
    rows = [
        (item.value, question, "" if item in WORDS_ONLY else boxes, tag("div", class_="lines"))
        for item, question in QUESTIONS.items()
    ]
    head = ("item", "question", "verdict", "severity and remark")
    return [
        html_table("Checklist", head, rows, range(4)),
        tag("p", f"Severity of a problem: {_severities()}.", class_="note"),
    ]


def _severities() -> str:
    return "; ".join(f"{name} ({what})" for name, what in SEVERITIES.items())
