"""The first screen: how often it is right, how sure it is, what it cost, where it went wrong."""

from __future__ import annotations

from collections.abc import Sequence

from agentclinic.report import charts
from agentclinic.report.collect import RunReport
from agentclinic.report.encounters import Encounter, where_wrong
from agentclinic.report.parts import View
from agentclinic.report.statements import left_out
from agentclinic.report.tables import DASH, Html, dollars, line, plural, tag
from agentclinic.report.tables import html_table as table
from agentclinic.results.turn import Source
from agentclinic.runs.budget import money
from agentclinic.scoring.calibration import SourceCalibration
from agentclinic.scoring.compare import sentence
from agentclinic.scoring.differentials import PREFERRED
from agentclinic.scoring.format import as_number, interval, percent
from agentclinic.scoring.outcome import unread_advice

_FIRST = {source: place for place, source in enumerate((*PREFERRED, Source.PLANNER_SCORE))}
MOST_REASONS = 4


def answers(view: View) -> Html:
    """The answers to the four questions that every reader has."""
    if view.several:
        return _side_by_side(view)
    run, encounters = view.runs[0], view.collected.encounters[0]
    return tag("div", _right(run), _sure(run), _cost(run), _wrong(run, encounters), class_="answers")


def notices(view: View) -> Html | None:
    """What a reader must know before the numbers: what is left out, and whether a run is incomplete."""
    said = []
    for index, run in enumerate(view.runs):
        whose = [view.badge(index), " "] if view.several else []
        gone = left_out(run)
        if gone and (not run.known.transcripts or not run.score.calibration.sources):
            names = "; ".join(text[0].lower() + text.split(":")[0][1:] for text in gone)
            why = tag("a", "Why", href="#limits")
            said.append(tag("p", whose, "The records are incomplete. Left out: ", names, ". ", why, "."))
        if run.planned is not None and run.planned > run.known.records:
            said.append(
                tag("p", whose, f"The run is not finished: {run.known.records:,} of {run.planned:,} encounters.")
            )
    return tag("div", said, class_="notice") if said else None


def _card(question: str, value: str, unit: str, *parts: object) -> Html:
    return tag("div", tag("h2", question), _big(value, unit), *parts, class_="answer")


def _big(value: str, unit: str) -> Html:
    return tag("p", tag("b", value), tag("span", unit), class_="big")


def _scale() -> Html:
    return tag("p", tag("span", "0"), tag("span", "50"), tag("span", "100%"), class_="scale", aria_hidden="true")


# --- how often right ------------------------------------------------------------------------------------------------


def bounds(run: RunReport) -> tuple[float, float] | None:
    """Accuracy if everything missing or not readable were wrong, or right; None if there is nothing of that."""
    low, high = run.score.outcome.if_missing_wrong, run.score.outcome.if_missing_right
    return None if low is None or high is None or low == high else (low, high)


def _marks(run: RunReport, colour: str) -> list[charts.Mark]:
    head = run.headline
    return [] if head.value is None else [charts.Mark(head.value, head.low, head.high, colour, bounds(run))]


def _right(run: RunReport) -> Html:
    outcome, strict, question = run.score.outcome, run.headline, "How often is it right?"
    lenient, outer = outcome.accuracy_lenient, bounds(run)
    if strict.value is None:
        return _card(question, DASH, "nothing could be judged")
    limits = interval(strict) + ", clustered" * strict.clustered
    said = [f"{strict.count:,} of {strict.of:,} by the strict rule. 95% interval {limits}."]
    if lenient and lenient.value != strict.value:
        said.append(f"{percent(lenient.value)} by the lenient rule.")
    if outer:
        said.append(
            f"Dotted: {percent(outer[0])} if everything {outcome.unknown} were wrong, {percent(outer[1])} if it were "
            "right."
        )
    said += [*outcome.unread_advice(), run.score.judged_by]
    drawn = [charts.strip(_marks(run, "c0")), _scale()]
    return _card(question, percent(strict.value), run.headlined("of encounters"), drawn, tag("p", " ".join(said)))


# --- how sure -------------------------------------------------------------------------------------------------------


def main_source(run: RunReport) -> SourceCalibration | None:
    """The source shown first: probabilities before scores, the doctor's own before those asked for afterwards."""
    sources = [source for source in run.score.calibration.sources if source.n]
    return min(sources, key=lambda source: (source.ece is None, _FIRST[source.source]), default=None)


def mean_confidence(source: SourceCalibration | None) -> float | None:
    """How sure it was on average; None for scores."""
    return source.mean_forecast.value if source and source.mean_forecast else None


def verdict(source: SourceCalibration) -> str:
    """Whether the forecasts can be trusted, in words."""
    error, sure, right = source.ece, mean_confidence(source), source.accuracy.value
    if error is None or sure is None or right is None:
        return "scores, not probabilities"
    if error.value <= error.high:
        return "consistent with perfect calibration"
    return "too sure" if sure > right + 0.02 else "not sure enough" if sure < right - 0.02 else "unreliable"


def _sure(run: RunReport) -> Html:
    source, question = main_source(run), "Is its confidence justified?"
    if source is None:
        return _card(question, DASH, "not recorded", tag("p", "The records contain no differential."))
    sure, right, forecast = mean_confidence(source), source.accuracy, source.mean_forecast
    if source.ece is None or forecast is None or sure is None or right.value is None:
        auroc = DASH if source.auroc.value is None else f"{source.auroc.value:.2f}"
        said = (
            f"It gives scores ({source.source.value.replace('_', ' ')}), not probabilities. 0.5 is chance; 1 ranks "
            f"every right diagnosis above every wrong one. {as_number(source.auroc)}."
        )
        return _card(question, auroc, "AUROC", tag("p", said))
    marks = [
        charts.Mark(sure, forecast.low, forecast.high, "soft"),
        charts.Mark(right.value, right.low, right.high, "c0"),
    ]
    words = verdict(source)
    said = (
        f"{words[0].upper()}{words[1:]}: {percent(sure, 0)} sure (grey), {percent(right.value, 0)} right. Calibration "
        f"error {source.ece.value:.2f}; perfect forecasts would give {source.ece.low:.2f} to {source.ece.high:.2f}."
    )
    return _card(question, percent(sure), "sure on average", charts.strip(marks), _scale(), tag("p", said))


# --- what it cost ---------------------------------------------------------------------------------------------------


def _cost(run: RunReport) -> Html:
    """What the models cost, and what the simulated tests would have cost: two things that are never added up."""
    turns, ordered = run.score.information.turns.value, run.score.orders.items.value
    said = [f"{turns:.1f} turns per encounter."] if turns is not None else []
    if turns and ordered:
        said = [f"{turns:.1f} turns and {ordered:.1f} tests and examinations per encounter."]
    price = run.breakdown.price
    if price.unpriced.count:
        said.append(f"{price.unpriced.count:,} of {price.unpriced.of:,} tests done have no price and are not counted.")
    elif price.mean_usd is None:
        said.append(f"Tests: {price.note}." if run.known.transcripts else "The tests ordered are not recorded.")
    value, unit = models_cost(run)
    tests = _big(tests_price(run), "for simulated tests, per encounter (estimate)")
    return _card("What did it cost?", value, unit, tests, tag("p", " ".join(said)))


def models_cost(run: RunReport) -> tuple[str, str]:
    """What the models cost, and the tokens used, in all and per encounter."""
    outcome = run.score.outcome
    if not run.known.costs and outcome.tokens is None:
        return DASH, "for the models: not recorded"
    used = "tokens unknown"
    if outcome.tokens is not None:
        used = f"{outcome.tokens:,} tokens, {outcome.tokens / outcome.presented:,.0f} per encounter"
    if outcome.cost is None:
        return "unknown", f"for the models: a price is not known; {used}"
    if not outcome.tokens and not outcome.cost:
        return "$0", "for the models: no language model was used"
    each = f", {money(outcome.cost / outcome.presented)} per encounter"
    return money(outcome.cost), f"for the models{each}; {used}"


def tests_price(run: RunReport) -> str:
    """The price of the simulated tests of an encounter, as far as it is known."""
    price = run.breakdown.price
    return DASH if price.mean_usd is None else f"{'≥ ' if price.unpriced.count else ''}{dollars(price.mean_usd)}"


# --- where it went wrong --------------------------------------------------------------------------------------------


def _wrong(run: RunReport, encounters: Sequence[Encounter]) -> Html:
    bad, judged = _not_right(encounters)
    kinds = where_wrong(encounters).rows[:MOST_REASONS]
    top = [tag("li", tag("b", f"{row[1]:,}"), tag("span", line(str(row[0]), 80))) for row in kinds]
    missing = len(encounters) - judged
    links: list[object] = [tag("a", "Why", href="#outcomes"), ", ", tag("a", "one by one", href="#encounters"), "."]
    more = links if missing or bad else []
    if missing:
        more.append(f" {plural(missing, 'encounter')} failed without a verdict.")
    if unread := sum(one.outcome == "not_readable" for one in encounters):
        more.append(f" {unread:,} of those not right could not be read.")
    if (twins := run.score.twins.both_right).of:
        more.append(f" Both right in {twins.count:,} of {plural(twins.of, 'pair')} of twins.")
    reasons = tag("ul", top, class_="why") if top else None
    return _card("Where did it go wrong?", f"{bad:,}", f"of {judged:,} not right", reasons, tag("p", more))


def _not_right(encounters: Sequence[Encounter]) -> tuple[int, int]:
    judged = [one for one in encounters if one.right is not None]
    return sum(not one.right for one in judged), len(judged)


# --- several runs ---------------------------------------------------------------------------------------------------


def _side_by_side(view: View) -> Html:
    head = ["Run", "Right", "0 to 100%", "Confidence", "Cost of models", "Simulated tests", "Not right"]
    rows = [_line(view, index, run) for index, run in enumerate(view.runs)]
    comparisons = view.report.comparison.comparisons if view.report.comparison else ()
    said = []
    for index, comparison in enumerate(comparisons, start=1):
        found = next((one for one in comparison.verdicts if one.rule == "strict"), None)
        text = "nothing to compare"
        if found and found.difference.value is not None:
            text = sentence(found, view.letters[index], view.letters[0])
            text += "; the runs also differ in other ways" if comparison.warnings else ""
        said.append(tag("p", f"{text}."))
    said += [tag("p", text) for text in unread_advice(sum(run.score.outcome.not_readable for run in view.runs))]
    said += [tag("p", text) for text in dict.fromkeys(run.score.judged_by for run in view.runs)]
    more = tag("div", said, class_="verdicts") if said else None
    return tag(
        "div", table("The runs side by side", head, rows, range(len(head)), stacked=True), more, class_="answers-table"
    )


def _line(view: View, index: int, run: RunReport) -> list[object]:
    source, turns, tokens = main_source(run), run.score.information.turns.value, run.score.outcome.tokens
    sure = mean_confidence(source)
    known = "not recorded" if source is None else f"{percent(sure, 0)} sure" if sure is not None else "scores only"
    bad, judged = _not_right(view.collected.encounters[index])
    kinds = where_wrong(view.collected.encounters[index]).rows
    return [
        view.chip(index),
        _stack(percent(run.headline.value, unknown=DASH), run.headlined(interval(run.headline))),
        charts.strip(_marks(run, view.colour(index)), width=200),
        _stack(known, verdict(source) if source else ""),
        _stack(models_cost(run)[0], f"{tokens:,} tokens" if tokens else ""),
        _stack(tests_price(run), "" if turns is None else f"{turns:.1f} turns"),
        _stack(f"{bad:,} of {judged:,}", line(str(kinds[0][0]), 60) if kinds else ""),
    ]


def _stack(value: str, below: str) -> Html:
    return tag("span", tag("b", value), tag("small", below), class_="stack")
