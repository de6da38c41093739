"""Whether a reply names the diagnosis."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from agentclinic.audit.chart import Chart
from agentclinic.audit.model import AuditedReply, Finding, Kind, finding
from agentclinic.audit.statements import SILENT, statements
from agentclinic.cases.model import Case, Section
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.name_table import name_table
from agentclinic.vocabulary.phrases import Phrasebook
from agentclinic.vocabulary.text import content_words

_HISTORY = frozenset({Section.PAST, Section.DRUGS, Section.FAMILY, Section.ALLERGIES})


def audit_revealed(reply: AuditedReply, chart: Chart) -> Iterator[Finding]:
    """The first statement that names the case's diagnosis, by the rules of the builtin judge, and does not deny it.

    A name in the chart's past history, drugs, allergies or family history does not count: the chart itself has it.
    """
    for statement in statements(reply.text):
        if SILENT.search(statement.text):
            continue
        known = (mention for mention in _known().find(statement.affirmed) if chart.is_diagnosis(mention.key))
        for mention in (*chart.diagnoses.find(statement.affirmed), *known):
            named = Phrasebook({"it": (" ".join(mention.words),)})
            history = (fact.text for fact in chart.case.facts if fact.section in _HISTORY and not fact.denied)
            if mention.negated or any(map(named.find, history)):
                continue
            path = next((path for path, text in chart.texts if any(not m.negated for m in named.find(text))), None)
            why = "names the diagnosis, as the chart does" if path else "names the diagnosis"
            yield finding(Kind.REVEALED, statement.text, why, path, mention.key)
            return
        if _in_any_order(statement.affirmed, chart.case):
            why = "has every word of the diagnosis"
            yield finding(Kind.REVEALED, statement.text, why, term=chart.case.diagnosis)
            return


# Seven letters separate lymphoma from lymphocytes but not keratoses from keratosis.
_LETTERS = 7


def _heads(text: str) -> frozenset[str]:
    return frozenset(word[:_LETTERS] for word in content_words(text))


def _in_any_order(text: str, case: Case) -> bool:
    """Whether a statement has all words of a diagnosis of at least two words."""
    name = _heads(case.diagnosis.split("(")[0])
    history = (fact for fact in case.facts if fact.section in _HISTORY)
    return len(name) > 1 and name <= _heads(text) and not any(name <= _heads(fact.text) for fact in history)


@lru_cache(maxsize=1)
def _known() -> Phrasebook:
    ours = (name for disease in knowledge().diseases.values() for name in (disease.name, *disease.synonyms))
    names = dict.fromkeys([*ours, *(name for group in name_table().synonyms for name in group)])
    return Phrasebook({name: (name,) for name in names})
