"""The builtin planner with `scoring: bayes`: its knowledge base in the words of the planner's table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from agentclinic.builtin.beliefs import Beliefs, Floats
from agentclinic.builtin.doctor import Thought, think
from agentclinic.doctors.planner.payloads import PlannerPayload
from agentclinic.doctors.planner.schema import NewFinding, OldRating, Prior, Rating, Seen, TableReply, TableState
from agentclinic.doctors.planner.table import OTHER, REST, Table, nearest_word
from agentclinic.vocabulary.base import Finding

_NEW = 8
"""The most findings that a plan adds; the first plan may add more."""
_OPEN = 2
"""How many of them are not known, those that should tell most; more in the first plan."""
_OPEN_AT_FIRST = 6
_STATES: dict[bool | None, TableState] = {None: "unknown", True: "present", False: "absent"}


def additions(payload: PlannerPayload, table: Table) -> TableReply:
    """What the table lacks: the likeliest diseases, what has become known, and what would tell most."""
    now = think(payload.door, (*payload.baseline, *payload.exchanges))
    at_door = think(payload.door, ())
    return _Additions(now, at_door, table, payload.max_hypotheses).reply()


class _Additions:
    def __init__(self, now: Thought, at_door: Thought, table: Table, most: int) -> None:
        self._now = now
        self._mind: Beliefs = now.mind
        self._table = table
        self._at_door = at_door
        known = self._mind.known
        in_table = [disease.id for name in table.priors if (disease := known.disease_named(name))]
        self._new = [disease for disease in now.ranked(most) if disease.id not in in_table]
        rows = [self._mind.hypotheses.index(id_) for id_ in (*in_table, *(disease.id for disease in self._new))]
        self._letters = {row: chr(ord("A") + place) for place, row in enumerate(rows)}
        self._other = self._of_others(rows)
        self._names = {finding.name: finding for finding in known.findings.values()}

    def reply(self) -> TableReply:
        mind, evidence = self._mind, self._now.evidence
        door = self._at_door.posterior
        seen = [
            Seen(finding=str(place), observed=_STATES[evidence[found.id]])
            for place, row in enumerate(self._table.rows, start=1)
            if not row.known and (found := self._names.get(row.finding)) and found.id in evidence
        ]
        added = {mind.hypotheses.index(disease.id) for disease in self._new}
        return TableReply(
            hypotheses=[
                Prior(diagnosis=disease.name, prior=round(float(door[mind.hypotheses.index(disease.id)]), 4))
                for disease in self._new
            ],
            findings=[self._row(finding) for finding in self._chosen()],
            ratings=[
                OldRating(finding=str(place), of=self._letters[row], how=nearest_word(self._expected(found, row)))
                for place, listed_row in enumerate(self._table.rows, start=1)
                if (found := self._names.get(listed_row.finding))
                for row in sorted(added)
            ],
            observed=seen,
        )

    def _chosen(self) -> Iterator[Finding]:
        """What has become known since the door, the most telling first, and then what would tell most."""
        findings = list(self._mind.known.findings.values())
        gains = self._mind.expected_information(self._now.posterior)
        order = [findings[place] for place in np.argsort(-gains, kind="stable")]
        listed = {row.finding for row in self._table.rows}
        new = [f for f in order if f.name not in listed and f.id not in self._at_door.evidence and self._tells(f)]
        known = [finding for finding in new if finding.id in self._now.evidence]
        open_ = [finding for finding in new if finding.id not in self._now.evidence]
        yield from known[: _NEW - _OPEN]
        yield from open_[: _OPEN if self._table.rows else _OPEN_AT_FIRST]

    def _tells(self, finding: Finding) -> bool:
        """Whether the words differ between the hypotheses."""
        return len(self._ratings(finding)) > 1

    def _ratings(self, finding: Finding) -> list[Rating]:
        """Those that differ from the most common one, and that for the rest."""
        words = {letter: nearest_word(self._expected(finding, row)) for row, letter in self._letters.items()}
        words[OTHER] = nearest_word(float(self._other[self._mind.column[finding.id]]))
        ((common, _),) = Counter(words.values()).most_common(1)
        differing = [Rating(of=of, how=word) for of, word in words.items() if word != common]
        return [*differing, Rating(of=REST, how=common)]

    def _row(self, finding: Finding) -> NewFinding:
        column = self._mind.column[finding.id]
        test = self._mind.known.tests[finding.order].name if finding.order else None
        return NewFinding(
            finding=finding.name,
            request=f"REQUEST TEST: {test}" if test else finding.ask or f"Do you have {finding.name}?",
            group=self._mind.group[column] or "",
            ratings=self._ratings(finding),
            observed=_STATES[self._now.evidence.get(finding.id)],
        )

    def _expected(self, finding: Finding, row: int) -> float:
        return float(self._mind.likelihood[row, self._mind.column[finding.id]])

    def _of_others(self, rows: Sequence[int]) -> Floats:
        """How expected each finding is under all that is not in the table, weighted by its probability at the door."""
        left = self._at_door.posterior.copy()
        left[list(rows)] = 0.0
        left = left / left.sum() if left.sum() > 0 else np.full_like(left, 1 / len(left))
        expected: Floats = left @ self._mind.likelihood
        return expected
