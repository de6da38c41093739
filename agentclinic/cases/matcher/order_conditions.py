"""What an order asks for under a condition: after a drug, during an attack, again in an hour.

Such a result is only that of the condition: a chart that has none is not answered with what was found without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from agentclinic import lazy
from agentclinic.cases.matcher.not_tests import is_treatment
from agentclinic.cases.matcher.order_kinds import MEASURED
from agentclinic.cases.matcher.order_spellings import OXYGEN_TRIAL
from agentclinic.cases.matcher.order_text import one_line
from agentclinic.cases.matcher.order_words import Reading, joined, reading, same_site
from agentclinic.cases.model import Fact
from agentclinic.vocabulary.text import fold, words


@dataclass(frozen=True)
class Condition:
    """A clause of an order that wants something measured under a condition."""

    clause: str
    """As ordered."""
    what: str
    """What is to be measured: the clause without its condition, or the clause before it."""
    under: str
    """The condition, or empty: at some later time."""
    again: bool
    """Whether the clause only repeats a measurement, so that nothing of it can be done now."""
    left: str
    """What is left of the clause to be done now."""

    kin: bool = False
    """Whether it is wanted of someone else."""

    @property
    def untold(self) -> str:
        """What is said where there is no such result."""
        if self.kin:
            return f"{self.clause}: only the patient is examined here."
        if self.again:
            named = (
                self.clause if _AGAIN.search(self.clause) or self.what in self.clause else f"{self.what} {self.under}"
            )
            return f"{named}: not done yet."
        if _DURING.match(self.under):
            return f"{self.what} {self.under}: no result apart from that of this visit."
        return f"{self.what} {self.under or 'afterward'}: no result under this condition."

    def told_by(self, facts: Iterable[Fact]) -> list[Fact]:
        """The results of what is to be measured that say they were obtained under the condition."""
        if self.kin:
            return []
        asked, there = reading(one_line(self.what)), reading(self.under).of("sites")
        marks = _marks(self.under) or (frozenset() if self.again else _marks(self.what))
        return [fact for fact in facts if _is_about(asked, there, fact) and _says(fact, marks)]


@lru_cache(maxsize=4096)
def conditions(order: str) -> tuple[Condition, ...]:
    """The clauses of an order that want something measured under a condition that is not met when it is given."""
    if not _ANY.search(order):
        return ()
    found: list[Condition] = []
    before = ""
    given = False
    for part in _clauses(order):
        condition = _condition(part.strip(" ()"), before, after_treatment=given)
        if condition and not OXYGEN_TRIAL.search(part):
            found.append(condition)
        before = _NOW.sub("", (condition.what if condition else part)).strip() or before
        given = is_treatment(part)
    return tuple(found)


def without(order: str, left_out: Iterable[Condition]) -> str:
    """An order without these conditions, and without the clauses that only repeat something under them."""
    for condition in left_out:
        order = order.replace(condition.clause, condition.left, 1)
    return order if re.search(r"\w", order) else ""


def _clauses(order: str) -> list[str]:
    """An order in clauses; what is in brackets belongs to its clause."""
    return [clause for clause in _BETWEEN.split(order) if clause.strip()]


def _condition(clause: str, before: str, *, after_treatment: bool) -> Condition | None:
    kin = _OF_KIN.search(clause)
    if kin and any(reading(clause[: kin.start()]).of(kind) for kind in MEASURED):
        return Condition(clause, clause, "", again=True, left="", kin=True)
    found = _LEADING.match(clause) or _TAIL.search(clause)
    if found is None:
        what = _AGAIN.sub(" ", clause).strip()
        if what != clause and after_treatment and reading(what).named:
            return Condition(clause, what, "", again=True, left="")
        return None
    named = f"{clause[: found.start()]} {clause[found.end() :]}"
    what = " ".join(_AGAIN.sub(" ", named).split()).strip(" ,:")
    alone = not reading(what).named or fold(what) in _ANYTHING
    again = alone or bool(_AGAIN.search(named)) or bool(found["in"])
    if not _is_meant(found, what, repeated=again and (not found["in"] or alone or bool(_AGAIN.search(named)))):
        return None
    under = _AND_BEFORE.sub("", found[0]).strip() if found["both"] else found[0].strip()
    return Condition(clause, before if alone else what, under, again=again, left="" if again else named.strip())


def _is_meant(found: re.Match[str], what: str, *, repeated: bool) -> bool:
    """Whether a condition is one that a measurement waits for, rather than how the test is always done."""
    said = found[0]
    tested = not reading(what).named or any(reading(what).of(kind) for kind in ("tests", "modalities", "vitals"))
    if _PART_OF_TEST.search(said) or (tested and reading(said).of("qualifiers")):
        return False
    if found["in"]:
        return repeated or bool(_DAYS.search(said))
    if found["during"]:
        return bool(_ATTACK.search(said))
    if found["after"]:
        return repeated or bool(_TIME.search(said)) or bool(_DONE.search(said)) or is_treatment(said)
    return True


def _says(fact: Fact, marks: frozenset[str]) -> bool:
    said = frozenset(words(" ".join((*fact.heads, fact.text))))
    if marks:
        return bool(marks & said) and bool(_UNDER.search(" ".join((*fact.heads, fact.text))))
    return bool(_AT_A_LATER_TIME.search(" ".join((*fact.heads, fact.text))))


def _is_about(asked: Reading, there: frozenset[str], fact: Fact) -> bool:
    """Whether a result tells something of what is asked for, or of the place where the condition is brought about."""
    own = joined(map(reading, (*fact.heads, fact.text)))
    if _of_lungs(asked) and _of_lungs(joined(map(reading, fact.heads))):
        return True
    if there:
        return any(same_site(a, b) for a in there for b in own.of("sites"))
    same = any(asked.of(kind) & own.of(kind) for kind in _MEASURES if kind != "vitals")
    vitals = asked.of("vitals")
    return same or bool(vitals & own.of("vitals")) or ("vital signs" in vitals and bool(own.of("vitals")))


def _of_lungs(read: Reading) -> bool:
    return bool((read.of("values") | read.of("panels")) & _BLOWN)


_BLOWN = frozenset({"peak flow", "fev1", "fvc", "spirometry", "pulmonary function", "bronchodilator response"})
"""What one blows: any of these shows what a bronchodilator does."""
_MEASURES = ("values", "panels", "tests", "modalities", "vitals", "parts", "systems", "sites")


@lru_cache(maxsize=1024)
def _marks(under: str) -> frozenset[str]:
    """The words by which a result shows that it was obtained under a condition."""
    said = frozenset(words(under)) - _EMPTY
    said = frozenset(word for word in said if not word[0].isdigit())
    return said.union(*(alike for alike in _ALIKE if alike & said))


_EMPTY = frozenset(
    words(
        "before and after pre post following while during at in the a an of on this that his her trial"
        " dose giving their given two three four five ten fifteen thirty h hr hour min minute second day week month"
        " im iv sc po oral x repeat next later time home using with between within about tomorrow morning course"
        " now same again some any one high flow large volume"
    )
)
"""Words of a condition that do not say what it is."""
_ALIKE = tuple(
    frozenset(words(names))
    for names in (
        "salbutamol albuterol ventolin nebulizer nebuliser nebulized nebulised inhaler bronchodilator",
        "adrenaline epinephrine epipen",
        "tap removal drainage drained",
        "attack attacks episode episodes spell spells bout bouts event",
        "exercise exertion effort exercising walking walk stairs repetitions repeated repetition fatigue bites biting",
        "upright standing",
        "straining valsalva",
        "nitroglycerin nitroglycerine gtn nitrate",
    )
)
"""Words of which one names the same condition as another."""

_NUMBER = r"(?:\d+(?:\s*(?:-|–|to|and|,)\s*\d+)*|an?|one|two|three|four|five|ten|fifteen|twenty|thirty|sixty)"
_UNIT = r"(?:s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?|days?|weeks?|months?)"
_LONGER = r"(?:minutes?|h|hrs?|hours?|days?|weeks?|months?)"
_DURING = lazy.regex(r"(?:while|when|during|at the time of|in the course of)\b", re.IGNORECASE)
_TAIL = lazy.regex(
    rf"(?:^|(?<=\s)|(?<=\())(?:"
    rf"(?P<both>(?:both )?(?:before (?:and|&|/|or) after|pre[- ]?(?: ?(?:and|&|/|,) ?)post)\b.*)"
    rf"|(?P<after>(?:(?:at )?{_NUMBER} ?{_UNIT} )?(?:after|following|post(?!-| void)) .+)"
    rf"|(?P<during>{_DURING.pattern}.+)"
    rf"|(?P<in>(?:(?:in|at|after|within|every) {_NUMBER} ?{_UNIT}\b|tomorrow|next (?:day|morning|week)).*"
    rf"|(?:hourly|daily|serially)(?=\)?$))"
    rf")\)?$",
    re.IGNORECASE,
)
_LEADING = lazy.regex(
    rf"^(?P<both>(?!))?(?P<during>(?!))?(?P<in>(?!))?"
    rf"(?P<after>(?:{_NUMBER} ?{_UNIT} )?(?:after|following) .+?)(?=[, ]+(?:repeat|retest|re-?check|re-?measure)\b)",
    re.IGNORECASE,
)
_AGAIN = lazy.regex(
    r"\b(?:then )?(?:repeat(?:ed)?|re-?test|re-?check|re-?measure|re-?examine|redo|reassess"
    r"|again)\b"
    r"(?: (?:the|it|both|this))?",
    re.IGNORECASE,
)
_KIN = (
    r"(?:mother|father|parents?|siblings?|brothers?|sisters?|children|sons?|daughters?|relatives?|family(?: members?)?"
    r"|partner|wife|husband|spouse|(?:household )?contacts?)"
)
_OF_KIN = lazy.regex(
    rf"\b(?:of|in|for|on|from) (?:(?:the|his|her|both|all|any|first degree|close) )*{_KIN}"
    rf"(?:(?:,| and| or|/) ?(?:(?:the|his|her) )?{_KIN})*$",
    re.IGNORECASE,
)
"""Of whom a test is wanted, if not of the patient."""
_AND_BEFORE = lazy.regex(
    r"^(?:both )?(?:before (?:and|&|/|or) (?:(?=after .)|after$)|pre[- ]?(?: ?(?:and|&|/|,) ?)(?=post))|^after$",
    re.IGNORECASE,
)
_NOW = lazy.regex(r"^and | (?:now|at baseline)$", re.IGNORECASE)
_ANYTHING = frozenset({"and", "then", "also", "baseline", "it", "the same", "the test", "now", "test"})
_BETWEEN = lazy.regex(
    r"\s*(?:[;\n]|\.\s|(?<!\d),(?:\s*and\b)?|,(?!\s*\d)|\b(?:and )?then\b"
    r"|(?:\b(?:and|with) |\()(?=repeat|re-?test|re-?check))\s*(?![^(]*\))"
    r"|\((?=(?:repeat|re-?test|re-?check)\b[^()]*\))",
    re.IGNORECASE,
)
_PART_OF_TEST = lazy.regex(
    r"\b(?:contrast|gadolinium|void\w*|urinat\w*|mic?turi?t\w*|glucose|sugar|dextrose|lactose|dexamethasone|synacthen"
    r"|cosyntropin|acth|levodopa|meals?|food|eating|fast(?:ing)?|spinning|centrifug\w*|massage|birth|onset|admission"
    r"|ductal|consent|stopping|stimulation|suppression|clearance|antibiotics?|transfer|ingestion|waking|ovulation"
    r"|inspiration|expiration)\b",
    re.IGNORECASE,
)
"""Conditions that belong to the test itself, or that are already met."""
_TIME = lazy.regex(rf"^(?:at )?{_NUMBER} ?{_UNIT} ", re.IGNORECASE)
_DAYS = lazy.regex(r"\b(?:tomorrow|next|days?|weeks?|months?)\b", re.IGNORECASE)
_ATTACK = lazy.regex(
    r"\b(?:attacks?|symptomatic|episodes?|spells?|bouts?|seizures?|headaches?|pain|symptom\w*|palpitations?|events?|flare\w*|crisis"
    r"|cramps?|at home|faints?)\b",
    re.IGNORECASE,
)
_DONE = lazy.regex(
    r"\b(?:salbutamol|albuterol|bronchodilator|nebuli\w*|inhaler|adrenaline|epinephrine|oxygen|fluids?|bolus"
    r"|nitroglycerine?|gtn|analges\w*|insulin|adenosine|cardioversion|treatment|therapy|steroids?|epley|semont|tap"
    r"|removal|drain\w*|exerc\w*|exertion|effort|repeated|repetiti\w*|walk\w*|stairs|exercise|rest|cooling|ice"
    r"|trial|passing|passage|surgery|operation|stent\w*|delivery)\b",
    re.IGNORECASE,
)
"""What is given or done to a patient before something is measured again."""
_UNDER = lazy.regex(
    r"\b(?:after|during|following|later|while|in an?|when|response|fall(?:s|en)?|rises?|rose|drop\w*|unchanged|repeated"
    r"|repetitions?|not changed|recovery)\b",
    re.IGNORECASE,
)
_AT_A_LATER_TIME = lazy.regex(
    rf"\b(?:repeat(?:ed)?|later|follow-?up|(?:after|at) {_NUMBER} {_LONGER}|{_NUMBER} {_LONGER} (?:later|after))\b"
    r"|^second\b",
    re.IGNORECASE,
)
_ANY = lazy.regex(
    rf"{_AGAIN.pattern}|\b(?:after|following|post|during|while|when|tomorrow|next|pre|hourly|daily|of|in|for|from)\b"
    rf"|\b(?:in|at) {_NUMBER} ?{_UNIT}\b",
    re.IGNORECASE,
)
