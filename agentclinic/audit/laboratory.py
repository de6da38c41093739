"""The audit of a laboratory's reply: test results and examination findings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentclinic.audit import disclosed
from agentclinic.audit.chart import Chart, spoken
from agentclinic.audit.model import AuditedReply, Finding, Kind, finding
from agentclinic.audit.statements import NORMAL, SILENT, Statement, concepts, plain, statements, stems
from agentclinic.cases.demographics import age_in_years, sex
from agentclinic.cases.matcher import Ordered, asked_of_measurement
from agentclinic.cases.matcher.readings import reading
from agentclinic.cases.model import Case, Fact, Section
from agentclinic.cases.values import analyte_of, measured_in
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
        """The line with its nearest heading."""
        return ": ".join((*self.heads[-1:], self.body))


def lines(reply: str) -> tuple[Line, ...]:
    """The results of a report; a heading applies to what follows it."""
    found: list[Line] = []
    above: tuple[str, ...] = ()
    for piece in _LINES.split(plain(reply)):
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
        # A piece without a heading continues the last one.
        last = found[-1].heads if found else above
        found.append(Line((*above, *heads[-1:]) if heads else last, piece))
    return tuple(found)


def audit_laboratory(reply: AuditedReply, chart: Chart) -> Iterator[Finding]:
    """Everything in which a report departs from the chart or from the order."""
    results = [fact for fact in chart.case.exam_facts if not SILENT.search(fact.text)]  # without "not done"
    ordered = [
        Ordered(answer.name, tuple(f for f in answer.facts if _same_digits(answer.name, f)), answer.equivalent)
        for answer in asked_of_measurement(reply.asked, results)
    ]
    report = lines(reply.text)
    if len(report) == 1 and _DEFAULT.match(report[0].body):
        yield from _defaulted(report[0], ordered, reply, chart)
        return
    for line in report:
        if not SILENT.search(line.body):
            yield from _line(line, reply, chart, ordered)
    named = tuple(line if line.heads else Line((reply.asked.replace("_", " "),), line.body) for line in report)
    yield from _omitted(reply, ordered, named, chart)
    yield from _overshared(reply, ordered, report, chart)


def _defaulted(line: Line, ordered: Sequence[Ordered], reply: AuditedReply, chart: Chart) -> Iterator[Finding]:
    """A bare "normal" is right for a normal result, contradicts an abnormal one, and is made up if there is none."""
    facts = [fact for answer in ordered for fact in answer.facts]
    if facts:
        off, why = next((f for f in facts if _amiss(f, chart.case)), None), "the chart's result is not normal"
    else:
        off, why = _in_the_same_place(reply.asked, chart), "the chart has a finding there"
    if off:
        yield finding(Kind.CONTRADICTED, line.text, why, off.path, spoken(off)[:80])
    elif not facts and reply.missing_test != "normal":
        why = "the test is not in the chart"
        yield finding(Kind.INVENTED_BENIGN, line.text, why, term=reply.asked[:80])


def _amiss(fact: Fact, case: Case) -> bool:
    """Whether a result cannot be called normal: a value out of range, or a finding in words that denies nothing."""
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


def _in_the_same_place(order: str, chart: Chart) -> Fact | None:
    """An abnormal finding where an uncharted test was to look: a lump in the neck whose CT is called normal."""
    order = order.replace("_", " ")
    if not _IMAGING.search(order):
        return None
    places = reading(order).places | ({"skin"} if re.search(r"dermoscop|lesion", order, re.I) else frozenset())
    modalities = _MODALITIES & set(words(order))
    for fact in chart.case.exam_facts:
        if fact.section is Section.VITALS or not _amiss(fact, chart.case):
            continue
        heads = " ".join(fact.heads)
        here = reading(heads).places | ({"skin"} if re.search(r"skin|derm", heads, re.I) else frozenset())
        if places & here or (modalities & set(words(heads)) and not (here and places)):
            return fact
    return None


def is_normal(fact: Fact, case: Case) -> bool | None:
    """Whether a result is normal; None if that cannot be told."""
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
    signs = ("sign", "lab", "imaging", "vital")
    present = (c for s in statements(spoken(fact)) if not s.normal for c in concepts(s.affirmed))
    if any(concept.kind in signs for concept in present) or _ABNORMAL.search(_undenied(fact.text)):
        return False
    return True if NORMAL.search(fact.text) or opens_absent(fact.text) else None


def _undenied(text: str) -> str:
    return " ".join(s.affirmed for s in statements(text) if not s.normal)


# --- one result ------------------------------------------------------------------------------------------------------


def _line(line: Line, reply: AuditedReply, chart: Chart, ordered: Sequence[Ordered]) -> Iterator[Finding]:
    if _copied(line, chart) or _is_heading(line, chart):
        return
    own = _charted(line, chart, ordered)
    figures = _values(line.body)
    charted = frozenset().union(*(_values(fact.text) for fact in own))
    if _DEFAULT.match(line.body) or _only_normal(line.body):
        yield from _called_normal(line, own, chart, reply)
    elif figures and not own and _is_value(line):
        yield _made_up_value(line, chart)
    elif figures and charted and (not figures & charted or (_first_value(line) not in charted and _is_value(line))):
        why = "the chart gives another value"
        yield finding(Kind.CONTRADICTED, line.text, why, own[0].path, own[0].text[:80])
    else:
        yield from _worded(line, chart, own)


_REFERENCE = re.compile(r"\(?\b(?:ref|reference|normal range|normal)\b[^);]*\)?", re.IGNORECASE)


def _values(text: str) -> frozenset[str]:
    """The numbers of a result without its reference range."""
    return disclosed.numbers(_REFERENCE.sub("", text))


def _first_value(line: Line) -> str:
    return next(iter(_NUMBER.findall(_REFERENCE.sub("", line.body))), "").replace(",", "")


def _copied(line: Line, chart: Chart) -> bool:
    """Whether the chart has the same words under one of the line's headings."""
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


def _charted(line: Line, chart: Chart, ordered: Sequence[Ordered]) -> list[Fact]:
    """The facts that a line reports: those under its heading or, without one, those that were ordered."""
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
    """CA 125 is not calcium, although "Ca" is."""
    figures = {word for word in words(name) if word.isdigit()}
    return figures <= set(words(" ".join((*fact.heads, fact.text))))


def _only_normal(body: str) -> bool:
    return (
        bool(NORMAL.search(body))
        and not _NUMBER.search(body)
        and not _ABNORMAL.search(_undenied(body))
        and len(words(body)) <= 6
    )


def _called_normal(line: Line, own: Sequence[Fact], chart: Chart, reply: AuditedReply) -> Iterator[Finding]:
    off = [fact for fact in own if is_normal(fact, chart.case) is False]
    if off and len(off) == len(own):
        why = "the chart's result is not normal"
        yield finding(Kind.CONTRADICTED, line.text, why, off[0].path, off[0].text[:80])
    elif not own and reply.missing_test != "normal":
        why = "called normal, but not in the chart"
        yield finding(Kind.INVENTED_BENIGN, line.text, why, term=": ".join(line.heads[-1:]))


def _is_value(line: Line) -> bool:
    return bool(line.heads) and len(words(_NUMBER.sub("", line.body))) <= 6


def _made_up_value(line: Line, chart: Chart) -> Finding:
    vital = analyte_of(line.heads, Section.VITALS) is not None and analyte_of(line.heads, Section.TESTS) is None
    fact = Fact("", Section.VITALS if vital else Section.TESTS, line.heads, line.body)
    normal = is_normal(fact, chart.case)
    if normal or (normal is None and re.search(r"\bnormal\b", line.body, re.I)):
        return finding(Kind.INVENTED_BENIGN, line.text, "a normal value that is not in the chart", term=line.heads[-1])
    return finding(Kind.INVENTED_MATERIAL, line.text, "a value that is not in the chart", term=line.heads[-1])


_SUPPORT = 0.5
"""A report copies the chart; if no place in it has half of the words, they come from elsewhere."""


def _worded(line: Line, chart: Chart, own: Sequence[Fact]) -> Iterator[Finding]:
    for statement in statements(line.text if line.heads else line.body):
        if statement.answer or statement.unsure or SILENT.search(statement.text):
            continue
        mine = stems(statement.text) - _PLAIN
        contradiction = next(_against(statement, line, chart, own), None)
        if contradiction:
            yield contradiction
        elif mine and not _supported(mine, chart):
            benign = statement.normal or (statement.denied and not _ABNORMAL.search(statement.affirmed))
            kind, what = (Kind.INVENTED_BENIGN, "normal") if benign else (Kind.INVENTED_MATERIAL, "a")
            yield finding(kind, line.text, f"{what} finding that is not in the chart", term=statement.text[:80])


def _against(statement: Statement, line: Line, chart: Chart, own: Sequence[Fact]) -> Iterator[Finding]:
    """Concepts, sides, and things by any name under the same heading that the chart contradicts."""
    tested = {fact.path for fact in chart.case.exam_facts}
    affirmed = statement.affirmed if not statement.normal else ""
    for concept in concepts(affirmed):
        path = chart.denies(concept)
        if path in tested and not chart.holds(concept):
            yield finding(Kind.CONTRADICTED, line.text, "the chart says it is absent", path, concept.name)
    for concept in concepts(statement.denied):
        path = chart.holds(concept)
        if path in tested and not chart.denies(concept):
            yield finding(Kind.CONTRADICTED, line.text, "the chart says it is present", path, concept.name)
    paths = {fact.path for fact in own}
    parts = [stems(part) for part in affirmed.split(",")]
    asserted = [(path, things) for path, things in chart.assertions if path in paths]
    denials = [(path, things) for path, things in chart.denials if path in paths]
    for path, denied in denials:
        if any(denied <= part for part in parts) and not any(denied <= things for _, things in asserted):
            yield finding(Kind.CONTRADICTED, line.text, "the chart denies it", path, " ".join(sorted(denied)))
    mine = stems(statement.denied.split(",")[0]) - _PLAIN
    for path, things in asserted if mine else ():
        if mine <= things and not any(mine <= denied for _, denied in denials):
            yield finding(Kind.CONTRADICTED, line.text, "the chart has it", path, " ".join(sorted(mine)))
    yield from chart.wrong_sides(statement.text, line.text)


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


# --- omitted, or told without being ordered --------------------------------------------------------------------------


def _omitted(
    reply: AuditedReply, ordered: Sequence[Ordered], report: Sequence[Line], chart: Chart
) -> Iterator[Finding]:
    parts = (*_parts(report), disclosed.whole(reply.text))
    before = tuple(part for text in reply.told_before for part in (*_parts(lines(text)), disclosed.whole(text)))
    for answer in ordered:
        wanted = _wanted(answer, reply.asked)
        missed = [
            fact
            for fact in wanted
            if not disclosed.tells((*parts, *before), fact) and not _summed_up(fact, report, chart)
        ]
        if missed and len(missed) >= _LEFT_OUT * len(wanted):
            why = f"{answer.name} was ordered; {len(missed)} of the chart's {len(wanted)} results are missing"
            yield finding(Kind.OMITTED, plain(reply.text)[:200], why, missed[0].path, answer.name)


def _wanted(answer: Ordered, order: str) -> list[Fact]:
    """The results that the order names, if it names any: an order for TSH does not ask for the whole thyroid panel."""
    named = stems(order)
    own = [f for f in answer.facts if f.heads and (stems(f.heads[-1]) <= named or stems(f.heads[0]) <= named)]
    return own or list(answer.facts)


_LEFT_OUT = 0.3
"""The share of the results that must be missing: a report may leave out a comment."""


def _summed_up(fact: Fact, report: Sequence[Line], chart: Chart) -> bool:
    """Whether a line says "normal" for a normal result: its values are then summed up, not omitted."""
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
    reply: AuditedReply, ordered: Sequence[Ordered], report: Sequence[Line], chart: Chart
) -> Iterator[Finding]:
    every = asked_of_measurement(reply.asked, chart.case.exam_facts)
    asked = {fact.path for answer in (*ordered, *every) for fact in answer.facts}
    named = stems(reply.asked)
    parts = _parts(report)
    before = tuple(part for text in reply.told_before for part in _parts(lines(text)))
    wanted = [fact for fact in chart.case.facts if fact.path in asked]
    for fact in chart.case.exam_facts:
        heads = stems(" ".join(fact.heads))
        if fact.path in asked or heads & named - _PLAIN or _repeats(fact, wanted):
            continue
        told = disclosed.tells(parts, fact, disclosed.SURE)
        if told and heads & stems(told) and not disclosed.tells(before, fact):
            yield finding(Kind.OVERSHARED, told[:200], "it was not ordered", fact.path)
            return


def _repeats(fact: Fact, wanted: Sequence[Fact]) -> bool:
    mine = stems(fact.text) | disclosed.numbers(fact.text)
    return any(mine <= stems(other.text) | disclosed.numbers(other.text) for other in wanted)
