"""The audit of a laboratory's or examiner's reply."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentclinic.audit import disclosed
from agentclinic.audit.amounts import sides
from agentclinic.audit.chart import Chart, spoken
from agentclinic.audit.model import Exchange, Finding, Kind
from agentclinic.audit.statements import NORMAL, SILENT, Concept, Statement, concepts, plain, statements, stems
from agentclinic.cases.demographics import age_in_years, sex
from agentclinic.cases.matcher import Ordered, asked_of_measurement
from agentclinic.cases.matcher.readings import reading
from agentclinic.cases.model import Case, Fact, Section
from agentclinic.cases.values import analyte_of, measured_in
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.denial import opens_absent
from agentclinic.vocabulary.text import fold, words

_DEFAULT = re.compile(r"^\W*(?:all )?(?:readings? (?:are |is )?)?normal(?: readings?| results?)?\W*$", re.IGNORECASE)
_ABNORMAL = re.compile(
    r"\b(?:elevated|raised|high|increased|low|decreased|reduced|diminished|positive"
    r"|abnormal\w*|enlarged|lesions?|mass(?:es)?"
    r"|fracture\w*|infiltrat\w*|opacit\w*|effusion|stenosis|thicken\w*|consistent with|suggest\w*|indicat\w+|tender\w*"
    r"|swelling|swollen|edema|erythema\w*|atrophy|enhanc\w+|dilat\w+|obstruct\w*|irregular\w*|impaired|weak\w*|absent"
    r"|prolonged|delayed|murmur|crackles|wheez\w*|hemorrhag\w*|necro\w*|inflammat\w*"
    r"|deposits?|nodul\w*|stones?|leak|deficit)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_HEAD = re.compile(r"^(?P<head>[A-Za-z][^:;.]{0,70}?)\s*:\s*(?P<body>.*)$", re.DOTALL)
_LINES = re.compile(r"\n+|;\s+|\s+[-•]\s+(?=[A-Z*])|(?<=[a-z0-9)%])\.\s+(?=[A-Z])|,\s+(?=[A-Z][A-Za-z0-9 ()/-]{1,40}:)")


@dataclass(frozen=True)
class Line:
    """One result of a report, under its headings."""

    heads: tuple[str, ...]
    body: str

    @property
    def text(self) -> str:
        """The line as it would stand alone."""
        return ": ".join((*self.heads[-1:], self.body))


def lines(reply: str) -> tuple[Line, ...]:
    """A report taken apart into results; a heading goes with what follows it."""
    text = plain(reply)
    found: list[Line] = []
    above: tuple[str, ...] = ()
    for piece in _LINES.split(text):
        piece = piece.strip(" -•.*")
        if not words(piece):
            continue
        heads: list[str] = []
        while (match := _HEAD.match(piece)) and len(match["head"].split()) <= 8:
            heads.append(match["head"].strip())
            piece = match["body"].strip()
        if not words(piece):
            above = tuple(heads)
            continue
        if len(heads) > 1:
            above = tuple(heads[:-1])
        # What has no heading of its own goes on with the last.
        last = found[-1].heads if found else above
        found.append(Line((*above, *heads[-1:]) if heads else last, piece))
    return tuple(found)


def audit_measurement(exchange: Exchange, chart: Chart) -> Iterator[Finding]:
    """Everything in which a report departs from the chart or from the order."""
    ordered = [
        Ordered(answer.name, tuple(f for f in answer.facts if _same_digits(answer.name, f)), answer.equivalent)
        for answer in asked_of_measurement(exchange.asked, held(chart.case))
    ]
    report = lines(exchange.reply)
    if len(report) == 1 and _DEFAULT.match(report[0].body):
        yield from _defaulted(report[0], ordered, exchange, chart)
        return
    for line in report:
        if not SILENT.search(line.body):
            yield from _line(line, exchange, chart, ordered)
    named = tuple(line if line.heads else Line((exchange.asked.replace("_", " "),), line.body) for line in report)
    yield from _omitted(exchange, ordered, named, chart)
    yield from _overshared(exchange, ordered, report, chart)


def held(case: Case) -> tuple[Fact, ...]:
    """The results a chart holds; "details are not provided" is none."""
    return tuple(fact for fact in case.exam_facts if not SILENT.search(fact.text))


def _defaulted(line: Line, ordered: Sequence[Ordered], exchange: Exchange, chart: Chart) -> Iterator[Finding]:
    """What "normal readings" is: right where the chart's are, a contradiction where they are not, else made up."""
    facts = [fact for answer in ordered for fact in answer.facts]
    off = [fact for fact in facts if _amiss(fact, chart.case)]
    near = _of_the_same_place(exchange.asked, chart) if not facts else None
    if near:
        yield Finding(
            kind=Kind.CONTRADICTED,
            words=line.text,
            path=near.path,
            term=spoken(near)[:80],
            why="the chart's finding there",
        )
        return
    if off:
        yield Finding(
            kind=Kind.CONTRADICTED, words=line.text, path=off[0].path, term=spoken(off[0])[:80], why="called normal"
        )
        yield Finding(
            kind=Kind.OMITTED,
            words=line.text,
            path=off[0].path,
            term=ordered[0].name,
            why="ordered; the chart holds it",
        )
    elif not facts and exchange.missing_test != "normal":
        yield Finding(
            kind=Kind.INVENTED_BENIGN,
            words=line.text,
            term=exchange.asked[:80],
            why="the chart does not hold this test",
        )


def _amiss(fact: Fact, case: Case) -> bool:
    """Whether a result cannot be called normal: a value beyond the usual, or a finding in words that denies nothing."""
    normal = is_normal(fact, case)
    if normal is None and not _NUMBER.search(fact.text):
        return bool(stems(_undenied(fact.text)) - _PLAIN)
    return normal is False


_MODALITIES = frozenset(
    "ultrasound ct mri radiograph biopsy endoscopy echocardiogram emg ecg dermoscopy doppler".split()
)
_IMAGING = re.compile(
    r"\b(?:ct|mri|ultrasound|ultrasonography|x-?ray|dermoscopy|doppler|scan|imaging|radiograph|biopsy)\b", re.I
)


def _of_the_same_place(order: str, chart: Chart) -> Fact | None:
    """An abnormal finding where a test outside the chart was to look: a lump in a neck whose CT is normal."""
    order = order.replace("_", " ")
    if not _IMAGING.search(order):
        return None
    places = reading(order).places | ({"skin"} if re.search(r"dermoscop|lesion", order, re.I) else frozenset())
    kinds = {word for word in words(order) if word in _MODALITIES}
    for fact in chart.case.exam_facts:
        if fact.section is Section.VITALS or not _amiss(fact, chart.case):
            continue
        heads = " ".join(fact.heads)
        here = reading(heads).places | ({"skin"} if re.search(r"skin|derm", heads, re.I) else frozenset())
        if places & here or (kinds & set(words(heads)) and not (here and places)):
            return fact
    return None


def is_normal(fact: Fact, case: Case) -> bool | None:
    """Whether a result is a usual one; None where nobody can tell."""
    measured = next(iter(measured_in([fact])), None)
    if measured and measured.number is not None:
        usual = measured.analyte.usual.get(sex(case.door.demographics) or "female")
        age = age_in_years(case.door.demographics)
        if usual and (age is None or age >= 18):
            return usual[0] <= measured.number <= usual[1]
    reference = re.search(
        r"\bref(?:erence)?[\s:]*(?P<sign>[<>])?\s*(?P<low>[\d.]+)(?:\s*[-–]\s*(?P<high>[\d.]+))?", fact.text
    )
    value = _NUMBER.search(fact.text)
    if reference and value and value.start() < reference.start():
        number = float(value[0].replace(",", ""))
        low = float(reference["low"].rstrip("."))
        if reference["high"]:
            return low <= number <= float(reference["high"].rstrip("."))
        return number < low if reference["sign"] == "<" else number > low if reference["sign"] == ">" else None
    present = [c for s in statements(spoken(fact)) if not s.normal for c in concepts(s.there) if _is_sign(c)]
    if present or _ABNORMAL.search(_undenied(fact.text)):
        return False
    return True if NORMAL.search(fact.text) or opens_absent(fact.text) else None


def _undenied(text: str) -> str:
    return " ".join(s.there for s in statements(text) if not s.normal)


def _is_sign(concept: Concept) -> bool:
    return not concept.key.startswith("~") and knowledge().findings[concept.key].kind in (
        "sign",
        "lab",
        "imaging",
        "vital",
    )


# --- one result ------------------------------------------------------------------------------------------------------


def _line(line: Line, exchange: Exchange, chart: Chart, ordered: Sequence[Ordered]) -> Iterator[Finding]:
    if _copied(line, chart) or _is_heading(line, chart):
        return
    own = _charted(line, chart, ordered)
    figures = _values(line.body)
    if _DEFAULT.match(line.body) or _only_normal(line.body):
        yield from _called_normal(line, own, chart, exchange)
    elif figures and own and (charted := frozenset().union(*(_values(fact.text) for fact in own))):
        first = next(iter(_NUMBER.findall(_REFERENCE.sub("", line.body))), "").replace(",", "")
        if not figures & charted or (first not in charted and _is_value(line)):
            yield _finding(
                Kind.CONTRADICTED, line, "the chart gives another value", path=own[0].path, term=own[0].text[:80]
            )
        else:
            yield from _worded(line, chart, own)
    elif figures and not own and _is_value(line):
        yield from _made_up_value(line, chart)
    else:
        yield from _worded(line, chart, own)


_REFERENCE = re.compile(r"\(?\b(?:ref|reference|normal range|normal)\b[^);]*\)?", re.IGNORECASE)


def _values(text: str) -> frozenset[str]:
    """The numbers of a result without its reference range."""
    return disclosed.numbers(_REFERENCE.sub("", text))


def _copied(line: Line, chart: Chart) -> bool:
    """Whether the chart says the same, word for word, under one of the line's headings."""
    body, heads = _bare(line.body), stems(" ".join(line.heads))
    for fact in chart.case.exam_facts:
        under = not heads or heads & stems(" ".join(fact.heads)) or heads & stems(fact.text)
        if body.strip() and body in _bare(fact.text) and under:
            return True
    return False


def _is_heading(line: Line, chart: Chart) -> bool:
    mine = stems(line.body)
    return bool(mine) and any(mine <= stems(" ".join(fact.heads)) for fact in chart.case.exam_facts)


def _bare(text: str) -> str:
    return f" {' '.join(re.sub(r'[;.,:]', ' ', fold(text)).split())} "


def _finding(kind: Kind, line: Line, why: str, *, path: str | None = None, term: str | None = None) -> Finding:
    return Finding(kind=kind, words=line.text, path=path, term=term, why=why)


def _charted(line: Line, chart: Chart, ordered: Sequence[Ordered]) -> list[Fact]:
    """The facts a line reports on: those under its heading, or those ordered where it has none."""
    facts = chart.case.exam_facts
    for depth in (1, 2):
        if len(line.heads) >= depth:
            head = " ".join(line.heads[-depth:])
            found = [f for answer in asked_of_measurement(head, facts) for f in answer.facts if _same_digits(head, f)]
            narrow = [f for f in found if f.heads and stems(f.heads[-1]) & stems(line.heads[-1])]
            if found:
                return narrow or found
    if line.heads:
        return [f for f in facts if f.heads and stems(f.heads[-1]) and stems(f.heads[-1]) <= stems(line.heads[-1])]
    return [fact for answer in ordered for fact in answer.facts]


def _same_digits(name: str, fact: Fact) -> bool:
    """CA 125 is no calcium, whatever CA stands for elsewhere."""
    figures = {word for word in words(name) if word.isdigit()}
    return figures <= set(words(" ".join((*fact.heads, fact.text))))


def _only_normal(body: str) -> bool:
    return (
        bool(NORMAL.search(body))
        and not _NUMBER.search(body)
        and not _ABNORMAL.search(_undenied(body))
        and len(words(body)) <= 6
    )


def _called_normal(line: Line, own: Sequence[Fact], chart: Chart, exchange: Exchange) -> Iterator[Finding]:
    off = [fact for fact in own if is_normal(fact, chart.case) is False]
    if off and len(off) == len(own):
        yield _finding(Kind.CONTRADICTED, line, "the chart's is not normal", path=off[0].path, term=off[0].text[:80])
    elif not own and exchange.missing_test != "normal":
        yield _finding(Kind.INVENTED_BENIGN, line, "normal, where the chart is silent", term=": ".join(line.heads[-1:]))


def _is_value(line: Line) -> bool:
    return bool(line.heads) and len(words(_NUMBER.sub("", line.body))) <= 6


def _made_up_value(line: Line, chart: Chart) -> Iterator[Finding]:
    fact = Fact("", Section.TESTS, line.heads, line.body)
    vital = analyte_of(line.heads, Section.VITALS) is not None and analyte_of(line.heads, Section.TESTS) is None
    normal = is_normal(Fact("", Section.VITALS, line.heads, line.body) if vital else fact, chart.case)
    if normal or (normal is None and re.search(r"\bnormal\b", line.body, re.I)):
        yield _finding(Kind.INVENTED_BENIGN, line, "a usual value that is not in the chart", term=line.heads[-1])
    else:
        yield _finding(Kind.INVENTED_MATERIAL, line, "a value that is not in the chart", term=line.heads[-1])


_SUPPORT = 0.5
"""A report copies; where less than half of its words stand in one place of the chart they come from elsewhere."""


def _worded(line: Line, chart: Chart, own: Sequence[Fact]) -> Iterator[Finding]:
    for statement in statements(line.text if line.heads else line.body):
        if statement.answer or statement.unsure or SILENT.search(statement.text):
            continue
        against = next((f for f in _against(statement, line, chart, own)), None)
        if against:
            yield against
            continue
        mine = stems(statement.text) - _PLAIN
        if not mine or _supported(mine, chart):
            continue
        if statement.normal or (statement.denied and not _ABNORMAL.search(statement.there)):
            yield _finding(
                Kind.INVENTED_BENIGN, line, "nothing amiss, where the chart is silent", term=statement.text[:80]
            )
        else:
            yield _finding(Kind.INVENTED_MATERIAL, line, "a finding that is not in the chart", term=statement.text[:80])


def _against(statement: Statement, line: Line, chart: Chart, own: Sequence[Fact]) -> Iterator[Finding]:
    """Concepts and sides of which the chart says the opposite."""
    tested = {fact.path for fact in chart.case.exam_facts}
    if not statement.normal:
        for concept in concepts(statement.there):
            path = chart.denies(concept)
            if path in tested and not chart.holds(concept):
                yield _finding(Kind.CONTRADICTED, line, "the chart says it is not there", path=path, term=concept.name)
    for concept in concepts(statement.denied):
        path = chart.holds(concept)
        if path in tested and not chart.denies(concept):
            yield _finding(Kind.CONTRADICTED, line, "the chart says it is there", path=path, term=concept.name)
    yield from _turned(statement, line, chart, {fact.path for fact in own})
    for side, place in sorted(sides(statement.text)):
        other = "left" if side == "right" else "right"
        if (side, place) not in chart.sides and (other, place) in chart.sides and place not in chart.both_sides:
            path = chart.sides[other, place]
            yield _finding(Kind.CONTRADICTED, line, f"the chart says {other}", path=path, term=f"{side} {place}")


def _turned(statement: Statement, line: Line, chart: Chart, own: set[str]) -> Iterator[Finding]:
    """Things the chart denies under the same heading, told as there, and the reverse, whatever they are called."""
    parts = [stems(part) for part in statement.there.split(",")] if not statement.normal else []
    asserted = [there for path, there in chart.assertions if path in own]
    for path, denied in chart.denials:
        if path in own and any(denied <= part for part in parts) and not any(denied <= there for there in asserted):
            yield _finding(Kind.CONTRADICTED, line, "the chart denies it", path=path, term=" ".join(sorted(denied)))
            return
    mine = stems(statement.denied.split(",")[0]) - _PLAIN
    for path, there in chart.assertions:
        if mine and path in own and mine <= there and not any(mine <= d for p, d in chart.denials if p in own):
            yield _finding(Kind.CONTRADICTED, line, "the chart has it", path=path, term=" ".join(sorted(mine)))
            return


_PLAIN = stems(
    "result results finding findings normal within limits range no not any evidence "
    "significant shows show showed reveals "
    "revealed noted seen present observed indicates indicating consistent with patient test "
    "reading readings examination exam "
    "unremarkable negative positive abnormal abnormality abnormalities acute level levels "
    "value low high elevated report"
)


def _supported(mine: frozenset[str], chart: Chart) -> bool:
    best = max((len(mine & stems(text)) for _, text in chart.texts), default=0)
    return best >= _SUPPORT * len(mine) or len(mine & chart.stems) >= 0.85 * len(mine)


# --- left out, or told unasked ---------------------------------------------------------------------------------------


def _omitted(exchange: Exchange, ordered: Sequence[Ordered], report: Sequence[Line], chart: Chart) -> Iterator[Finding]:
    parts = (*_parts(report), disclosed.whole(exchange.reply))
    before = tuple(part for reply in exchange.told_before for part in (*_parts(lines(reply)), disclosed.whole(reply)))
    for answer in ordered:
        wanted = _wanted(answer, exchange.asked)
        missed = [
            fact
            for fact in wanted
            if not disclosed.tells(parts, fact)
            and not disclosed.tells(before, fact)
            and not _summed_up(fact, report, chart)
        ]
        if missed and len(missed) >= _LEFT_OUT * len(wanted):
            yield Finding(
                kind=Kind.OMITTED,
                words=plain(exchange.reply)[:200],
                path=missed[0].path,
                term=answer.name,
                why=f"{answer.name} was ordered; the chart holds {len(wanted)} results, {len(missed)} are not told",
            )


def _wanted(answer: Ordered, order: str) -> list[Fact]:
    """Of a test's results those the order names itself: who orders TSH is not owed the rest of the thyroid panel."""
    named = stems(order)
    own = [f for f in answer.facts if f.heads and (stems(f.heads[-1]) <= named or stems(f.heads[0]) <= named)]
    return own or list(answer.facts)


_LEFT_OUT = 0.3
"""The share of an ordered test's results that must be missing: a report may leave out a comment."""


def _summed_up(fact: Fact, report: Sequence[Line], chart: Chart) -> bool:
    """Whether a line calls normal what is normal: then its values are not left out but summed up."""
    if is_normal(fact, chart.case) is False:
        return False
    heads = stems(" ".join(fact.heads))
    return any(_only_normal(line.body) and (not line.heads or stems(" ".join(line.heads)) & heads) for line in report)


def _parts(report: Sequence[Line]) -> tuple[disclosed.Said, ...]:
    texts = [" ".join((*line.heads, line.body)) for line in report]
    groups: dict[tuple[str, ...], list[str]] = {}
    for line in report:
        groups.setdefault(line.heads, []).append(line.body)
    texts += [" ".join((*heads, *bodies)) for heads, bodies in groups.items() if len(bodies) > 1]
    return tuple(disclosed.whole(text) for text in texts)


def _overshared(
    exchange: Exchange, ordered: Sequence[Ordered], report: Sequence[Line], chart: Chart
) -> Iterator[Finding]:
    every = asked_of_measurement(exchange.asked, chart.case.exam_facts)
    asked = {fact.path for answer in (*ordered, *every) for fact in answer.facts}
    named = stems(exchange.asked)
    parts = _parts(report)
    before = tuple(part for reply in exchange.told_before for part in _parts(lines(reply)))
    wanted = [fact for fact in chart.case.facts if fact.path in asked]
    for fact in chart.case.exam_facts:
        if fact.path in asked or stems(" ".join(fact.heads)) & named - _PLAIN or _repeats(fact, wanted):
            continue
        told = disclosed.tells(parts, fact, disclosed.SURE)
        if told and stems(" ".join(fact.heads)) & stems(told) and not disclosed.tells(before, fact):
            yield Finding(kind=Kind.OVERSHARED, words=told[:200], path=fact.path, why="nobody ordered it")
            return


def _repeats(fact: Fact, wanted: Sequence[Fact]) -> bool:
    mine = stems(fact.text) | disclosed.numbers(fact.text)
    return any(mine <= stems(other.text) | disclosed.numbers(other.text) for other in wanted)
