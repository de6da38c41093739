"""Whether a reply names the diagnosis."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from agentclinic.audit.chart import Chart
from agentclinic.audit.model import Exchange, Finding, Kind
from agentclinic.audit.statements import SILENT, statements
from agentclinic.cases.model import Case, Section
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.name_table import name_table
from agentclinic.vocabulary.phrases import Phrasebook
from agentclinic.vocabulary.text import content_words

_HISTORY = frozenset({Section.PAST, Section.DRUGS, Section.FAMILY, Section.ALLERGIES})


def audit_revealed(exchange: Exchange, chart: Chart) -> Iterator[Finding]:
    """The statements that name the case's diagnosis, by the rules of the builtin judge, and do not deny it.

    A name that stands in the chart's past, drug or family history is excepted: there the chart itself tells it.
    """
    for statement in statements(exchange.reply):
        if SILENT.search(statement.text):
            continue
        known = (mention for mention in _known().find(statement.there) if chart.is_diagnosis(mention.key))
        for mention in (*chart.diagnoses.find(statement.there), *known):
            if mention.negated or _as_history(mention.words, chart.case):
                continue
            path = _stands_at(mention.words, chart)
            why = "names the diagnosis, as the chart does" if path else "names the diagnosis"
            yield Finding(kind=Kind.REVEALED, words=statement.text, path=path, term=mention.key, why=why)
            return
        if _in_any_order(statement.there, chart.case):
            why = "holds every word of the diagnosis"
            yield Finding(kind=Kind.REVEALED, words=statement.text, term=chart.case.diagnosis, why=why)
            return


# Seven letters tell lymphoma from lymphocytes and let keratoses be keratosis.
_LETTERS = 7


def _heads(text: str) -> frozenset[str]:
    return frozenset(word[:_LETTERS] for word in content_words(text))


def _in_any_order(text: str, case: Case) -> bool:
    """Whether a statement holds all words of the diagnosis, of which there must be at least two."""
    name = _heads(case.diagnosis.split("(")[0])
    history = (fact for fact in case.facts if fact.section in _HISTORY)
    return len(name) > 1 and name <= _heads(text) and not any(name <= _heads(fact.text) for fact in history)


@lru_cache(maxsize=1)
def _known() -> Phrasebook:
    ours = (name for disease in knowledge().diseases.values() for name in (disease.name, *disease.synonyms))
    names = dict.fromkeys([*ours, *(name for group in name_table().synonyms for name in group)])
    return Phrasebook({name: (name,) for name in names})


def _as_history(words: tuple[str, ...], case: Case) -> bool:
    named = Phrasebook({"it": (" ".join(words),)})
    return any(named.find(fact.text) for fact in case.facts if fact.section in _HISTORY and not fact.denied)


def _stands_at(words: tuple[str, ...], chart: Chart) -> str | None:
    named = Phrasebook({"it": (" ".join(words),)})
    return next((path for path, text in chart.texts if any(not m.negated for m in named.find(text))), None)
