"""A score as sections: the rows that the terminal, Markdown, the page and the card all draw."""

from __future__ import annotations

import math
from collections.abc import Mapping

from agentclinic.report.parts import outcome_name
from agentclinic.report.tables import Cells, Recorded, Section, line, plural
from agentclinic.results.record import bias_label
from agentclinic.results.regret import KINDS
from agentclinic.runs.budget import money
from agentclinic.scoring.calibration import SourceCalibration
from agentclinic.scoring.differentials import FLOOR
from agentclinic.scoring.format import as_number, as_percent, as_points, interval, number, percent
from agentclinic.scoring.frontier import SHOWN
from agentclinic.scoring.information import NOT_RECORDED
from agentclinic.scoring.metrics import METRICS, Budget, Measured, Metric, Orders, SourceRanking, TruthScores, Value
from agentclinic.scoring.orders import NO_TESTS, NOT_DONE
from agentclinic.scoring.outcome import Summary, slip_lines, slip_rows
from agentclinic.scoring.score import Score
from agentclinic.scoring.stats import Proportion

DECIDED_BY = {"code": "by code", "model": "by the model", "person": "by a person"}
LEARNED = {"volunteered": "volunteered", "asked": "asked for", "ordered": "ordered"}
"""How the doctor first got a key finding."""
_ANSWERED = {
    "chart": "answered by the chart",
    "chart_equivalent": "answered by an equivalent in the chart",
    "default_normal": "answered as normal by default",
    "pending": "taken, result pending",
    "unavailable": "not available",
    "refused": "refused",
    "unknown": "answered, source unknown",
    "unanswered": "not answered before the end",
}
_UNANSWERED = {"0": "every test was answered", "(0, 0.25]": "up to 25% of tests were not answered"}
_UNANSWERED |= {
    "(0.25, 0.5]": "25% to 50% of tests were not answered",
    "> 0.5": "over 50% of tests were not answered",
    NO_TESTS: "no test was ordered",
}

MOST_FAULTS = 20


def sections(result: Score) -> list[Section]:
    """Every number of a score that is worth reading; sections without any are left out."""
    made = [
        _outcome(result),
        regret_section(result),
        *failure_sections(result.outcome),
        *(_ranking(source, ranked) for source, ranked in result.ranking.by_source.items()),
        repeats_section(result),
        _harm(result),
        *(calibration_section(source) for source in result.calibration.sources),
        _information(result),
        tests_section(result),
        budget_section(result.budget),
        _models(result),
    ]
    return [section for section in made if section.rows]


def failure_sections(outcome: Summary) -> list[Section]:
    """Faults with an example of each, and what language models got wrong in form; those without any are left out."""
    often = sorted(outcome.faults.items(), key=lambda entry: (-entry[1], entry[0]))[:MOST_FAULTS]
    examples = outcome.fault_examples
    faults = [[Recorded(line(kind, 60)), f"{n:,}", Recorded(line(examples.get(kind), 200))] for kind, n in often]
    slips = [[role, kind, did, f"{n:,}", f"{rate:.1f}"] for role, kind, did, n, rate in slip_rows(outcome)]
    made = [
        Section("Faults", faults, head=("fault", "times", "first message")),
        Section("Slips", slips, head=("role", "slip", "what the model did", "utterances", "per 100")),
    ]
    return [section for section in made if section.rows]


def headline(result: Score) -> Section:
    """The main figures in one table."""
    outcome, info, price = result.outcome, result.information, result.orders.price_usd
    rows = outcome_rows(outcome)
    rows += _twins(result)
    if result.regret.encounters:
        lost, best = result.regret.regret, number(result.regret.best_value, 1)
        rows.append(["regret, points", f"{as_number(lost, 1)}; the best play has 0"])
        rows.append(["utility, points", f"{as_number(result.regret.utility, 1)}; the best play {best} on average"])
    for source in result.calibration.sources:
        if source.n:
            sure = f"{as_percent(source.mean_forecast)} sure on average; " if source.mean_forecast else ""
            rows.append([f"confidence ({source.source.value})", f"{sure}AUROC {as_number(source.auroc)}"])
    rows += [*_biases(result), ["turns per encounter", as_number(info.turns, 1)]]
    if info.key_facts.encounters:
        rows.append(["key findings found", as_percent(info.key_facts.recall)])
    if result.repeats.repeated:
        rows.append(["repeats that differ", as_percent(result.repeats.flip_rate)])
    rows += _spent(outcome)
    if price.value:
        rows.append(["simulated tests per encounter", f"${as_number(price, 0)}"])
    rows += _by_budget(result.budget)
    if result.gap_to_full_information:
        rows.append(["gap to full information", as_points(result.gap_to_full_information)])
    return Section("", rows, head=("", "value (95% interval)"))


def overview(title: str, outcome: Summary, notes: list[str]) -> Section:
    """What a summary says in a few rows; a score takes longer."""
    rows = [*outcome_rows(outcome), ["turns per encounter", number(outcome.mean_turns, 1)], *_spent(outcome)]
    return Section(title, rows, [*notes, *outcome.unread_advice()], head=("", "value (95% interval)"))


def _spent(outcome: Summary) -> list[Cells]:
    rows: list[Cells] = [["tokens of the models", f"{outcome.tokens:,}"]] if outcome.tokens else []
    if outcome.cost or (outcome.tokens and outcome.cost is None):
        rows.append(["cost of the models", "unknown" if outcome.cost is None else money(outcome.cost)])
    return rows


def shown(metric: Metric, value: Value | None) -> str:
    """A metric's value with its interval."""
    if metric.unit == "share":
        return as_percent(value)
    if value is None or isinstance(value, Proportion):
        return as_percent(value)
    return as_number(value, 0 if (value.value or 0) >= 100 else 2)


def _measured(name: str, found: Measured) -> list[Cells]:
    """The rows of a section's registered metrics; what the records do not say is left out."""
    rows: list[Cells] = []
    for metric in METRICS.values():
        if metric.section != name or not metric.title:
            continue
        value = found.value(metric.key)
        note = None if value is None or isinstance(value, Proportion) else value.note
        if value is not None and (value.value is not None or note not in (None, NOT_RECORDED)):
            rows.append([metric.title, shown(metric, value), metric.remark])
    return rows


def outcome_rows(outcome: Summary) -> list[Cells]:
    """Accuracy, and how the encounters ended if not all were judged right or wrong."""
    rows: list[Cells] = [["accuracy", outcome.headline()]]
    if outcome.lenient_differs:
        rows = [["accuracy, strict", outcome.headline()], ["accuracy, lenient", as_percent(outcome.accuracy_lenient)]]
    if outcome.outcomes.keys() - {"diagnosed_right", "diagnosed_wrong"}:
        ended = ", ".join(f"{outcome_name(name)} {count}" for name, count in outcome.outcomes.items())
        rows.append(["how encounters ended", ended])
    return rows


def _twins(result: Score) -> list[Cells]:
    if not result.twins.both_right.of:
        return []
    same = result.twins.same_answer
    also = f"; same answer to both in {same.count:,} of {plural(same.of, 'pair')}" if same.of else ""
    return [["both twins right", f"{as_percent(result.twins.both_right)}{also}"]]


def _biases(result: Score) -> list[Cells]:
    asked = result.outcome.unsupported_bias
    return [[name.replace("_", "'s ", 1), Recorded(bias_label(bias))] for name, bias in asked.items()]


def _outcome(result: Score) -> Section:
    outcome, gap = result.outcome, result.gap_to_full_information
    rows = outcome_rows(outcome)
    if outcome.missing:
        rows.append(["right of all presented (the original's accuracy)", percent(outcome.accuracy)])
        limits = f"{percent(outcome.if_missing_wrong)}; {percent(outcome.if_missing_right)}"
        rows.append([f"accuracy, if everything {outcome.unknown} were wrong; right", limits])
    if outcome.decided_by:
        by = [f"{DECIDED_BY[name]} {count:,}" for name, count in outcome.decided_by.items()]
        unread = [f"not readable {outcome.not_readable:,}"] if outcome.not_readable else []
        rows.append(["decided", ", ".join([*by, *unread])])
    rows += [*_twins(result), *_biases(result)]
    if gap:
        rows.append(["gap to full information", f"{as_points(gap)} of strict accuracy, {plural(gap.n, 'case')}"])
    said = [said for said in slip_lines(outcome) if "given by code" in said]
    return _section("Outcome", rows, said)


def _section(title: str, rows: list[Cells], notes: list[str] | None = None) -> Section:
    """A section whose rows all have a third cell."""
    return Section(title, [[*row, ""] if len(row) == 2 else row for row in rows], notes or ())


def _ranking(source: str, ranked: SourceRanking) -> Section:
    rows: list[Cells] = [[f"true diagnosis in the top {k}", as_percent(share)] for k, share in ranked.top.items()]
    rows.append(["mean reciprocal rank", as_number(ranked.mean_reciprocal_rank), "higher is better"])
    rows += truth_rows(ranked.truth)
    return _section(f"Differential ({source})", rows)


def truth_rows(found: TruthScores | None) -> list[Cells]:
    """The proper scores of the truth, beside those of the prior alone on the same encounters."""
    if found is None:
        return []
    prior, even = number(found.prior_log_score), number(found.even_log_score)
    brier = f"0 is best, 2 worst; the prior alone {number(found.prior_brier)}, skill {percent(found.brier_skill, 0)}"
    log = f"0 is best, {-math.log(FLOOR):.1f} worst; the prior alone {prior}, all diseases alike {even}"
    return [
        ["Brier score of the truth", as_number(found.brier), brier],
        ["log score of the truth, nats", as_number(found.log_score), log],
    ]


def regret_section(result: Score) -> Section:
    """How far the encounters fall short of the best play of their world."""
    found = result.regret
    title = f"Against the best play ({plural(found.encounters, 'encounter')} of a solvable world)"
    if not found.encounters:
        return Section(title, ())
    best: Cells = ["utility of the best play, points", number(found.best_value, 2), "on average"]
    often_zero = [*(f"regret_{kind}" for kind in KINDS), "deferred", "without_answer"]
    nothing = {METRICS[f"regret.{key}"].title for key in often_zero if not found.value(key).value}  # type: ignore[union-attr]
    return _section(title, [best, *(row for row in _measured("regret", found) if row[0] not in nothing)])


def repeats_section(result: Score) -> Section:
    found = result.repeats
    title = f"Repeats ({plural(found.repeated, 'case')})"
    if not found.repeated:
        return Section(title, ())
    passes: list[Cells] = [
        [f"pass^{k}", as_percent(share), f"all of {k} are right"] for k, share in found.pass_k.items()
    ]
    return _section(title, [*_measured("repeats", found), *passes], [found.note] if found.note else [])


def _harm(result: Score) -> Section:
    harm = result.harm
    counted = f"; {plural(harm.diseases, 'disease')} to exclude in {plural(harm.encounters, 'encounter')}"
    title = f"Harm ({plural(harm.stated, 'record')} of cases that state it{counted if harm.diseases else ''})"
    left_out = [f"Not assessed: {plural(n, 'disease')} to exclude; {why}." for why, n in harm.not_assessable.items()]
    shown = harm.stated or harm.diseases
    return _section(title, _measured("harm", harm) if shown else [], left_out if harm.diseases else [])


def calibration_section(source: SourceCalibration) -> Section:
    """How sure the doctor was and whether it should have been, for one source."""
    best = "" if source.aurc_best is None else f"{source.aurc_best:.2f} is best at this accuracy"
    rows: list[Cells] = [
        ["AUROC", as_number(source.auroc), "0.5 is chance, 1 is best"],
        ["area under the risk-coverage curve", as_number(source.aurc), best],
    ]
    if source.brier is not None:
        rows += [
            ["Brier score", as_number(source.brier), "0 is best, always 50% gives 0.25"],
            ["log score, nats", as_number(source.log_score), "0 is best, always 50% gives 0.69"],
        ]
    if source.ece is not None:
        chance = f"perfect forecasts at this n give {source.ece.low:.3f} to {source.ece.high:.3f}"
        rows.append(["calibration error (ECE)", f"{source.ece.value:.3f}", chance])
    if source.unmatched:
        rows.append(["not in its own differential", source.unmatched, "diagnoses left out here"])
    if source.unnumbered:
        rows.append(["without a number", source.unnumbered, "diagnoses left out here"])
    diagnoses = plural(source.n, "diagnosis", "diagnoses")
    title = f"Calibration: does it know when it is right? ({source.source.value}, {source.scale}; {diagnoses})"
    return Section(title, rows, source.notes)


def _information(result: Score) -> Section:
    info, facts = result.information, result.information.key_facts
    nothing = "" if info.images.value else METRICS["information.images"].title  # most cases have no images
    rows = [row for row in _measured("information", info) if row[0] != nothing]
    rows += [
        [Recorded(f"tokens, {role}"), as_number(tokens, 0)] for role, tokens in info.tokens.items() if tokens.value
    ]
    if facts.encounters or facts.shown:
        rows += _measured("key_facts", facts)
        rows += [[f"key findings {LEARNED[way]}", as_percent(share)] for way, share in facts.by_way.items()]
    for source, course in info.differentials.items():
        rows += [
            [f"true diagnosis listed at some point ({source})", as_percent(course.truth_appeared)],
            [f"true diagnosis first at some point ({source})", as_percent(course.truth_led)],
            [f"true diagnosis first, then dropped ({source})", as_percent(course.truth_dropped)],
        ]
    return _section("Information", rows, [facts.note] if facts.encounters and facts.note else [])


def tests_section(result: Score) -> Section:
    found = result.orders
    if not found.encounters:
        return Section("Tests", ())
    if not found.tests:
        return _section("Tests", [["tests and examinations ordered", 0]])
    rows = _measured("orders", found)
    rows += [
        [_ANSWERED.get(name) or Recorded(f"answered by {name}"), as_percent(share)]
        for name, share in found.answered_by.items()
        if share.count
    ]
    for stratum, share in found.accuracy_by_unanswerable.items():
        rows.append([f"accuracy where {_UNANSWERED.get(stratum, stratum)}", as_percent(share)])
    return _section("Tests", rows, [tests_line(found), f"Prices: {'; '.join(found.price_table)}."])


def tests_line(found: Orders) -> str:
    """How the counts add up: `370 tests in 350 orders: 325 done, 45 not available; 1 was ordered before ...`."""
    not_done = [(share.count, _ANSWERED[how]) for how, share in found.answered_by.items() if how in NOT_DONE]
    parts = [f"{found.done:,} done", *(f"{count:,} {how}" for count, how in not_done if count)]
    again = found.repeated.count
    before = f"{again:,} {'was' if again == 1 else 'were'} ordered before in the same encounter"
    return f"{plural(found.tests, 'test')} in {plural(found.messages, 'order')}: {', '.join(parts)}; {before}."


def _by_budget(found: Budget) -> list[Cells]:
    """Accuracy by budget in one row; none if the budget makes no difference."""
    if found.flat:
        return []
    within = ", ".join(f"{percent(one.right.value)} within ${one.usd:,}" for one in found.within if one.usd in SHOWN)
    return [["right, by budget for tests", f"{within}; area {as_number(found.accuracy_area)}"]]


def budget_section(found: Budget) -> Section:
    """The share that is right within a few budgets for tests, and the area under the curve."""
    title = f"Accuracy by budget for tests ({plural(found.encounters, 'encounter')})"
    if found.flat:
        return Section(title, ())
    rows: list[Cells] = [
        [f"right within ${one.usd:,}", as_percent(one.right)] for one in found.within if one.usd in SHOWN
    ]
    rows.append(["right without a limit", as_percent(found.without_limit)])
    return _section(title, [*rows, *_measured("budget", found)], _estimated(found))


def by_budget(budgets: Mapping[str, Budget]) -> Section:
    """Accuracy at every budget and as an area, a column for each run by its letter; no rows if no budget matters."""
    known = {letter: budget for letter, budget in budgets.items() if budget.within}
    head = ["budget", *(f"{letter} right (95%)".lstrip() for letter in known)]
    title = "Accuracy by budget for tests"
    if all(budget.flat for budget in known.values()):
        return Section(title, (), head=head)
    rows: list[Cells] = [
        [f"${points[0].usd:,}", *(_rounded(one.right) for one in points)]
        for points in zip(*(budget.within for budget in known.values()), strict=True)
    ]
    rows.append(["no limit", *(_rounded(budget.without_limit) for budget in known.values())])
    rows.append(["area, 0 to 1", *(as_number(budget.accuracy_area) for budget in known.values())])
    notes = [f"{letter}: {said}".removeprefix(": ") for letter, one in known.items() for said in _estimated(one)]
    return Section(title, rows, notes, head)


def _rounded(share: Proportion) -> str:
    return f"{percent(share.value, 0)} ({interval(share, 0)})"


def _estimated(found: Budget) -> list[str]:
    """In how many encounters a price had to be estimated."""
    if not found.estimated:
        return []
    of = plural(found.encounters, "encounter")
    return [f"{found.estimated:,} of {of} had a test without a price, which counts at the middle price of its kind."]


def _models(result: Score) -> Section:
    rows: list[Cells] = []
    for role, usage in result.outcome.usage.items():
        tokens = [usage.get("input_tokens"), usage.get("output_tokens")]
        if tokens == [0, 0]:  # a builtin role
            continue
        cost = result.outcome.cost_usd.get(role)
        said = "; ".join("unknown" if count is None else f"{count:,}" for count in tokens)
        rows.append([Recorded(f"tokens in; out, {role}"), said, "" if cost is None else f"{cost:.4f} USD"])
    return _section("Models", rows)
