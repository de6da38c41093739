"""A short comparison of runs: one table, one sentence on what it shows, and what else differs between the runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentclinic.report.tables import Section, line, text_table
from agentclinic.runs.budget import money
from agentclinic.scoring.compare import (
    LEVEL,
    REGRET,
    RULES,
    Accuracy,
    AtBudget,
    ComparedRun,
    Comparison,
    ComparisonReport,
    RuleComparison,
    clear,
    sentence,
    telling,
)
from agentclinic.scoring.format import (
    OWN_JUDGE,
    as_number,
    as_percent,
    as_points,
    interval,
    number,
    percent,
    points,
    unread_text,
)
from agentclinic.scoring.frontier import SHOWN
from agentclinic.scoring.labels import letters
from agentclinic.scoring.outcome import unread_advice

_LABEL = 48
"""Characters of a label in a table: with the other columns, a line then fits a terminal of 120."""


@dataclass(frozen=True)
class Compared:
    """What `agentclinic compare` prints and the viewer shows."""

    columns: dict[str, list[str]]
    """The table: the head of each column and its cells, one for each run."""
    words: int
    """The columns before this one are text, the others numbers."""
    sentences: list[str]
    """What the comparisons with the first run show: one sentence for each rule with a result of its own."""
    remarks: list[str]
    """Who judged, and the differences corrected by labels."""
    warnings: list[str]

    def section(self) -> Section:
        notes = [*self.sentences, *self.remarks, *(f"Warning: {warning}" for warning in self.warnings)]
        return Section("Runs compared with A", [*zip(*self.columns.values(), strict=True)], notes, [*self.columns])

    def text(self, width: int | None = None) -> list[str]:
        """As lines, with labels cut; for a terminal of this width so far that the table fits, if it can."""
        shown = self.section()
        for most in range(_LABEL, 11, -4):
            rows = [[line(str(cell), most) for cell in row] for row in shown.rows]
            table = text_table(shown.head, rows, range(self.words, len(shown.head)))
            if width is None or max(map(len, table)) <= width:
                break
        return [*table, "", *shown.notes]


def compared(report: ComparisonReport, against_first: Sequence[Comparison]) -> Compared:
    """The short comparison; `against_first` are the comparisons with the first run, in the order of the table."""
    short = short_names(report)
    told = {
        rule: [(short[c.arm], v) for c in against_first for v in telling(c.verdicts) if v.rule == rule]
        for rule in RULES
    }
    rules = [rule for rule in RULES if told[rule]]
    warnings: dict[str, list[str]] = {}
    for comparison in against_first:
        for warning in comparison.warnings:
            warnings.setdefault(warning, []).append(short[comparison.arm])
    return Compared(
        *_table(report, against_first, rules, short),
        [
            *_regrets(against_first, short),
            *(_conclusion(rule, told[rule], against_first) for rule in rules),
            *_budgets(against_first, short),
        ],
        [
            *unread_advice(sum(run.not_readable for run in report.runs)),
            *_judges(report, short),
            *_corrected(against_first, short),
        ],
        [f"{', '.join(arms)} also differ{'s' * (len(arms) == 1)} from A in {text}." for text, arms in warnings.items()],
    )


def short_names(report: ComparisonReport) -> dict[str, str]:
    """A letter for each run."""
    return dict(zip([run.arm for run in report.runs], letters(len(report.runs)), strict=True))


def _judges(report: ComparisonReport, short: Mapping[str, str]) -> list[str]:
    """Who judged, once if it is the same for all runs."""
    said: dict[str, list[str]] = {}
    for run in report.runs:
        said.setdefault(run.judged_by, []).append(short[run.arm])
        if run.own_judge:
            said.setdefault(f"{OWN_JUDGE[0].upper()}{OWN_JUDGE[1:]}.", []).append(short[run.arm])
    return [
        text if len(arms) == len(report.runs) else f"{', '.join(arms)}: {text}" for text, arms in said.items() if text
    ]


def _corrected(against_first: Sequence[Comparison], short: Mapping[str, str]) -> list[str]:
    """The differences corrected by labels."""
    lines = []
    for comparison in against_first:
        found = comparison.corrected
        if found is None:
            continue
        letter, baseline = short[comparison.arm], short[comparison.baseline]
        if found.difference.value is None:
            lines.append(f"Corrected by labels: unknown; {found.difference.note}")
            continue
        clearly = found.p_holm is not None and found.p_holm < LEVEL
        better = "better" if found.difference.value > 0 else "worse"
        said = f"{letter} is clearly {better} than {baseline}" if clearly else f"no clear difference: {letter}"
        lines.append(
            f"Corrected by labels, {said}{': ' if clearly else ' '}{as_points(found.difference, label='95%')}; "
            f"right {baseline} {as_percent(found.before)}, {letter} {as_percent(found.after)}"
        )
        if found.difference.note:
            lines.append(f"  note: {found.difference.note}")
    return lines


def _table(
    report: ComparisonReport, against_first: Sequence[Comparison], rules: Sequence[str], short: Mapping[str, str]
) -> tuple[dict[str, list[str]], int]:
    rights = {(one.arm, one.rule): one for one in report.accuracies}
    differences = {(c.arm, v.rule): v.difference for c in against_first for v in c.verdicts}
    columns = {"": [short[run.arm] for run in report.runs], "run": [run.label for run in report.runs]}
    for rule in rules or ["strict"]:
        by = "" if len(rules) < 2 else f"{rule}: "
        clustered = any(one.accuracy.clustered for one in report.accuracies)
        columns[f"{by}right (95%{', clustered' * clustered})"] = [
            _right(rights.get((run.arm, rule))) for run in report.runs
        ]
        shown = [as_points(differences.get((run.arm, rule))).replace(" points", "") for run in report.runs]
        if rule == "strict" and any(run.not_readable for run in report.runs):
            columns["with unread"] = [_unread(run, rights.get((run.arm, rule))) for run in report.runs]
        columns[f"{by}difference in points (95%)"] = ["baseline", *shown[1:]]
    changed = regret_differences(against_first)
    if any(changed):
        (before, *_) = (one.before for c in against_first for one in c.beside if one.measure == REGRET)
        columns["regret (95% of the difference)"] = [number(before, 1), *changed]
    if any(comparison.at_budgets for comparison in against_first):
        budgets = ", ".join(f"${usd:,}" for usd in SHOWN)
        columns[f"right by budget: {budgets}; area"] = [_within(run) for run in report.runs]
    words = len(columns)
    columns["turns"] = [number(run.turns, 1) for run in report.runs]
    if any(run.tokens for run in report.runs):
        columns["tokens"] = [number(run.tokens, 0) for run in report.runs]
    if any(run.cost_usd for run in report.runs):
        columns["cost"] = ["unknown" if run.cost_usd is None else money(run.cost_usd) for run in report.runs]
    return columns, words


def _within(run: ComparedRun) -> str:
    shares = ", ".join(percent(share, 0) for share in run.within.values())
    return f"{shares}; {number(run.accuracy_area)}" if shares else "unknown"


def regret_differences(comparisons: Sequence[Comparison]) -> list[str]:
    """The regret of each run against the first, on the cases of both: `6.4, +3.2 (+1.5 to +4.8)`; empty without any."""
    found = [next((one for one in c.beside if one.measure == REGRET), None) for c in comparisons]
    return [f"{number(one.after, 1)}, {as_number(one.difference, 1, signed=True)}" if one else "" for one in found]


def _right(found: Accuracy | None) -> str:
    return f"{percent(found.accuracy.value, 0)} ({interval(found.accuracy, 0)})" if found else "unknown"


def _unread(run: ComparedRun, found: Accuracy | None) -> str:
    return unread_text(found.at_most if found else None, run.not_readable, run.scored, 0)


def _regrets(against_first: Sequence[Comparison], short: Mapping[str, str]) -> list[str]:
    """How regret differs from that of A, in solvable worlds: a sentence for each run, by its own interval."""
    said = []
    for comparison in against_first:
        for found in (one for one in comparison.beside if one.measure == REGRET):
            by, letter = found.difference, short[comparison.arm]
            differ = by.low is not None and by.high is not None and (by.low > 0 or by.high < 0)
            words = (
                f"{letter} loses {'less' if (by.value or 0) < 0 else 'more'} than A:"
                if differ
                else f"no clear difference: {letter}"
            )
            said.append(f"Regret: {words} {as_number(by, 1, signed=True)} points per encounter.")
    return said


def _budgets(against_first: Sequence[Comparison], short: Mapping[str, str]) -> list[str]:
    """What the comparisons with A show at equal budget for tests, in one line."""
    found = [(short[c.arm], one) for c in against_first for one in c.at_budgets]
    areas = [(letter, one) for letter, one in found if one.usd is None]
    if not areas:
        return []
    kinds = {True: "clearly different from A", False: "no clear difference"}
    parts = []
    for kind, name in kinds.items():
        told = [_area(letter, one, len(areas) == 1) for letter, one in areas if clear(one) is kind]
        parts += [f"{name}: {', '.join(told)}"] if told else []
    at = [(letter, one) for letter, one in found if one.usd is not None and clear(one)]
    apart = ", ".join(f"{letter} ${one.usd:,} {points(one.difference.value)}" for letter, one in at)
    single = f" Clear at a single budget: {apart} points." if apart else ""
    return [f"At equal budgets for tests (area under accuracy): {'; '.join(parts)}.{single}"]


def budget_cells(one: AtBudget) -> tuple[str, str, str, str]:
    """What is compared at a budget, its value before and after, and the difference."""
    if one.usd is None:
        values = number(one.before), number(one.after), as_number(one.difference, signed=True)
        return "area under accuracy by budget", *values
    return f"right within ${one.usd:,} of tests", percent(one.before), percent(one.after), as_points(one.difference)


def _area(letter: str, one: AtBudget, alone: bool) -> str:
    shown = as_number(one.difference, signed=True) if alone else number(one.difference.value, signed=True)
    return f"{letter} {shown}"


def _conclusion(rule: str, told: Sequence[tuple[str, RuleComparison]], against_first: Sequence[Comparison]) -> str:
    """What the comparisons with A show under one rule, in one sentence."""
    by = "" if rule == "strict" else f"By the {rule} rule: "
    if any(one.measure == REGRET for comparison in against_first for one in comparison.beside):
        by = f"{by}Accuracy: "
    if len(told) == 1:
        letter, verdict = told[0]
        return f"{by}{sentence(verdict, letter, 'A')}."
    kinds = {True: "Clearly different from A", False: "No clear difference"}
    parts = []
    for kind, name in kinds.items():
        found = [(letter, verdict) for letter, verdict in told if clear(verdict) is kind]
        if found:
            listed = ", ".join(f"{letter} {points(verdict.difference.value)}" for letter, verdict in found)
            alone = [letter for letter, verdict in found if not kind and verdict.p < LEVEL]
            adjusted = f" ({', '.join(alone)} would be clear without the adjustment for {len(told)} comparisons)"
            parts.append(f"{name}: {listed} points{adjusted if alone else ''}")
    return f"{by}{'. '.join(parts)}."
