"""Whether the chart describes one person: sex, pregnancy, age, drugs and allergies."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentclinic.cases.model import PATIENT_SECTIONS, Section, age_in_years
from agentclinic.cases.values import table
from agentclinic.lint.chart import Chart, Problem, error, warning
from agentclinic.vocabulary.text import fold

_FEMALE_ONLY = re.compile(
    r"\b(?:uterus|uterine|ovary|ovaries|ovarian|adnexa\w*|menstrua\w*|menses|vagina\w*|vulva\w*|cervix|endometri\w+"
    r"|pregnan\w*|(?:beta )?hcg|hysterectomy|oophorectomy|menopaus\w*)\b"
)
_MALE_ONLY = re.compile(r"\b(?:prostat\w*|testes|testis|testic\w+|scrot\w+|penis|penile|epididym\w+|psa)\b")
_HCG = re.compile(r"\bhcg\b")
_GERM_CELL = re.compile(r"germ cell|testicular (?:mass|tumou?r|cancer)|seminoma|choriocarcinoma|gynecomastia")


def check_sex(chart: Chart) -> Iterator[Problem]:
    """The patient does not have organs of the other sex."""
    if chart.sex is None:
        return
    wrong = _FEMALE_ONLY if chart.sex == "male" else _MALE_ONLY
    for fact in chart.own_facts:
        if fact.section is Section.SOCIAL:
            continue
        found = wrong.search(fold(" ".join((*fact.heads, fact.text))))
        if not found:
            continue
        if _HCG.search(found[0]) and _GERM_CELL.search(chart.about):
            continue  # a tumor marker
        child = chart.age is not None and chart.age < 16
        if child and re.search(r"pregnan|birth|born|deliver|gestation", fact.text.lower()):
            continue  # the mother's
        yield error("wrong_sex", fact.path, f"{found[0]!r} in a {chart.sex} patient")


_HE = re.compile(r"\b(?:he|his|him|himself)\b", re.IGNORECASE)
_SHE = re.compile(r"\b(?:she|her|herself)\b", re.IGNORECASE)


def check_pronouns(chart: Chart) -> Iterator[Problem]:
    """The chart calls a man he and a woman she."""
    if chart.sex is None:
        return
    right, wrong = (_HE, _SHE) if chart.sex == "male" else (_SHE, _HE)
    told = [f for f in chart.own_facts if f.section in (Section.HISTORY, Section.SOCIAL)]
    spoken_of = any(right.search(fact.text) for fact in told)
    for fact in (*told, *chart.facts_of(Section.EXAMINATION)):
        # In a history, "she" may be the mother mentioned before, unless the history never says "he".
        doubtful = fact.section is not Section.EXAMINATION and (spoken_of or (chart.age or 0) < 18)
        if wrong.search(fact.text) and not right.search(fact.text) and not doubtful:
            yield warning("pronoun", fact.path, f"{fact.text[:70]!r} about a {chart.sex} patient")


_PREGNANT = re.compile(
    r"\b\d+ weeks? (?:and \d days? )?(?:pregnant|of gestation|gestation|of pregnancy)|\b(?:is|currently|now) pregnant"
    r"|\bpregnant (?:woman|patient)|\bweeks of (?:her )?pregnancy|\b(?:first|second|third) trimester"
    r"|\bintrauterine (?:pregnancy|gestation)|\bthis pregnancy\b"
)


def check_pregnancy(chart: Chart) -> Iterator[Problem]:
    """A pregnant patient has a positive hCG."""
    if chart.sex != "female" or (chart.age or 0) < 12:
        return
    door = fold(f"{chart.case.door.objective} {chart.case.door.demographics}")
    told = [fold(f.text) for f in chart.own_facts if not f.denied and f.section is not Section.PAST]
    pregnant = _PREGNANT.search(door) or any(
        (found := _PREGNANT.search(text))
        and not re.search(r"\b(?:no|not|denies|without|believes|thinks|fears|might)\b", text[: found.end()])
        for text in told
    )
    for fact in chart.facts_of(Section.TESTS) if pregnant else ():
        heads, said = fold(" ".join(fact.heads)), fold(fact.text)
        tested = "hcg" in heads.split() or "pregnancy test" in heads
        if tested and ("negative" in said or said.startswith("<")):
            yield error("pregnant_hcg_negative", fact.path, f"pregnant, but {fact.text!r}")


_STATED_AGE = re.compile(r"\b\d{1,3}(?:\.\d)?[- ](?:year|month|week|day)s?[- ]old\b", re.IGNORECASE)
_AT_AGE = re.compile(
    r"\b(?:at|since|from)(?: the)? age(?: of)? (\d{1,3})\b(?! ?(?:months|weeks|days))"
    r"|\b(?:repair|surgery|removed|operation|removal|fracture|section|diagnosed|replacement) at (\d{1,2})\b"
    r"(?! ?(?:%|m|w))"
)


def check_age(chart: Chart) -> Iterator[Problem]:
    """Objective and demographics give one age, and past events come before it."""
    if chart.age is None:
        return
    found = _STATED_AGE.search(chart.case.door.objective)
    stated = age_in_years(found[0]) if found else None
    if stated is not None and not _same_age(stated, chart.age):
        yield error("age_disagrees", "Objective_for_Doctor", f"{stated:g} years, demographics say {chart.age:g}")
    for fact in chart.own_facts:
        if fact.section not in (Section.HISTORY, Section.PAST, Section.DRUGS, Section.SOCIAL):
            continue
        for match in _AT_AGE.finditer(fact.text):
            if float(match[1] or match[2]) > chart.age:
                yield error("age_disagrees", fact.path, f"{match[0]!r}, but the patient is {chart.age:g} years old")


_NOUNS = {"male": "man|gentleman|guy|boy|schoolboy|male", "female": "woman|lady|girl|schoolgirl|female"}
_CHILD = frozenset("boy girl schoolboy schoolgirl child infant".split())
_GROWN = frozenset("man woman gentleman lady guy adult".split())
_SOMEONE = (
    rf"(?:(?!(?:an?|the|patient)\b)[\w-]+,? ){{0,4}}?(?P<noun>{'|'.join(_NOUNS.values())}|child|infant|adult)\b"
    r"(?! (?:nurse|doctor|physician|friend|partner|relative|colleague|stranger|genital|organ|pattern|breast))"
)
_IS = r"\b(?:he|she|i|patient|^this)(?:,| is| am)(?: now)?(?: an?)? "
# Not "the child": that may be the one a patient gave birth to.
_CALLED = re.compile(
    rf"(?:^(?:(?:an?|this|the(?! (?:child|infant)\b)) |(?=\d|young |elderly ))|{_IS}){_SOMEONE}", re.IGNORECASE
)
_CALLED_AT_THE_DOOR = re.compile(rf"\b(?:an?|the|this) {_SOMEONE}", re.IGNORECASE)
_SAID_AGE = re.compile(
    rf"{_IS}(?P<first>{_STATED_AGE.pattern})"
    rf"|^(?:(?:an?|the|this) )?(?P<second>{_STATED_AGE.pattern}),? (?:with|who|has|had|presents"
    rf"|(?:[\w-]+,? ){{0,3}}?(?:{'|'.join(_NOUNS.values())}|child|infant|adult|patient|person))\b",
    re.IGNORECASE,
)


def check_called(chart: Chart) -> Iterator[Problem]:
    """What the patient is called fits age and sex: no "30-year-old man" and no "young boy" for a woman of 72."""
    yield from _misfits(chart, "Objective_for_Doctor", chart.case.door.objective, _CALLED_AT_THE_DOOR)
    for fact in chart.own_facts:
        if fact.section in PATIENT_SECTIONS - {Section.DEMOGRAPHICS}:
            found = _SAID_AGE.search(fact.text)
            said = found and (found["first"] or found["second"])
            if said and chart.age is not None and not _same_age(age_in_years(said) or 0, chart.age):
                yield error("age_disagrees", fact.path, f"{said!r}, demographics say {chart.age:g} years")
            yield from _misfits(chart, fact.path, fact.text, _CALLED)


def _same_age(stated: float, age: float) -> bool:
    return abs(stated - age) <= 0.02 * max(1, age)


def _misfits(chart: Chart, path: str, text: str, pattern: re.Pattern[str]) -> Iterator[Problem]:
    called = pattern.search(text)
    if not called:
        return
    noun = called["noun"].lower()
    if chart.age is not None and ((noun in _CHILD and chart.age >= 21) or (noun in _GROWN and chart.age < 12)):
        yield warning("age_disagrees", path, f"{noun!r}, but the patient is {chart.age:g} years old")
    right, wrong, pronoun = ("male", "female", _HE) if chart.sex == "male" else ("female", "male", _SHE)
    # "A man pushed her" is about someone else.
    doubtful = pronoun.search(text) or re.search(rf"\b(?:{_NOUNS[right]})\b", text, re.IGNORECASE)
    if chart.sex is not None and noun in _NOUNS[wrong].split("|") and not doubtful:
        yield warning("wrong_sex", path, f"{noun!r} for a {chart.sex} patient")


def check_drugs(chart: Chart) -> Iterator[Problem]:
    """The patient takes nothing they are allergic to."""
    taken = [f for f in chart.facts_of(Section.DRUGS) if not f.denied]
    allergies = " ".join(fold(f.text) for f in chart.facts_of(Section.ALLERGIES) if not f.denied)
    allergies = re.sub(r"\b(?:no|tolerates|not|denies)\b[^.;,]*", "", allergies)
    for name, members in table("drug_classes")["classes"].items():
        if not any(_named(member, allergies) for member in members):
            continue
        for fact in taken:
            if any(_named(member, fold(fact.text)) for member in members):
                yield error("allergic_to_own_drug", fact.path, f"{fact.text!r}, allergic to {name}")
        for fact in chart.facts_of(Section.HISTORY, Section.SYMPTOMS):
            said = fold(fact.text)
            if re.search(r"\b(?:took|takes|taken|taking|given|prescribed)\b", said) and not fact.denied:
                for member in members:
                    if _named(member, said):
                        yield warning("allergic_to_own_drug", fact.path, f"took {member}, allergic to {name}")


def _named(drug: str, text: str) -> bool:
    return re.search(rf"\b{re.escape(fold(drug))}s?\b", text) is not None
