"""`agentclinic score`: a run's metrics as text."""

from __future__ import annotations

from pathlib import Path

from agentclinic.results.run_data import load_run
from agentclinic.scoring.calibration import CalibrationError, SourceCalibration
from agentclinic.scoring.estimates import Estimate, Proportion
from agentclinic.scoring.score import Score, score


def score_command(
    place: Path,
    judge: str | None,
    full_information: Path | None,
    recalibrate_on: Path | None,
    seed: int,
    *,
    as_json: bool,
) -> None:
    """Score a run and print it."""
    result = score(
        load_run(place, judge),
        seed=seed,
        full_information=load_run(full_information, judge) if full_information else None,
        recalibrate_on=load_run(recalibrate_on, judge) if recalibrate_on else None,
    )
    print(result.model_dump_json(indent=2) if as_json else as_text(result))


def as_text(result: Score) -> str:
    """The score for a person: what is null is left out, or said to be unknown where it is a main figure."""
    lines = [f"{result.run}" + (f", judged by {result.judge}" if result.judge else "")]
    for part in (_outcome, _ranking, _repeats, _harm, _calibration, _information, _orders):
        lines += part(result)
    lines.append("Intervals are 95 %; those of means are resampled by case. --json prints everything.")
    return "\n".join(lines)


def _outcome(result: Score) -> list[str]:
    outcome = result.outcome
    lines = ["", "outcome", f"  accuracy, strict: {as_share(outcome.accuracy_strict)}"]
    if outcome.accuracy_lenient:
        lines.append(f"  accuracy, lenient: {as_share(outcome.accuracy_lenient)}")
    if outcome.if_missing_wrong is not None and outcome.if_missing_wrong != outcome.if_missing_right:
        low, high = outcome.if_missing_wrong, outcome.if_missing_right or 0.0
        lines.append(f"  with what is missing all wrong {low:.1%}, all right {high:.1%}")
    lines.append("  " + ", ".join(f"{name} {count}" for name, count in outcome.outcomes.items()))
    lines += [f"  fault {name}: {count}" for name, count in outcome.faults.items()]
    if result.gap_to_full_information:
        lines.append(f"  gap to full information: {_points(result.gap_to_full_information)}")
    return lines


def _ranking(result: Score) -> list[str]:
    lines = []
    for source, ranked in result.ranking.by_source.items():
        tops = ", ".join(f"top-{k} {as_share(share)}" for k, share in ranked.top.items())
        mrr = as_value(ranked.mean_reciprocal_rank)
        lines += ["", f"differential ({source})", f"  {tops}", f"  mean reciprocal rank {mrr}"]
    return lines


def _repeats(result: Score) -> list[str]:
    repeated = result.repeats
    if not repeated.repeated:
        return []
    passes = ", ".join(f"pass^{k} {as_percent(estimate)}" for k, estimate in repeated.pass_k.items())
    lines = [
        "",
        f"repeats ({repeated.repeated} cases)",
        f"  flip rate {as_percent(repeated.flip_rate)}",
        f"  {passes}",
    ]
    lines.append(f"  majority vote {as_percent(repeated.majority_vote)}")
    return [*lines, f"  {repeated.note}"] if repeated.note else lines


def _harm(result: Score) -> list[str]:
    harmed = result.harm
    if not harmed.stated:
        return []
    return [
        "",
        f"harm ({harmed.stated} records of cases that state it)",
        f"  harm-weighted loss {as_percent(harmed.weighted_loss)}",
        f"  wrong on cases of harm 3 or more: {as_share(harmed.serious_wrong)}",
        f"  must-not-miss diseases never considered: {as_percent(harmed.must_not_miss_missed)}",
    ]


def _calibration(result: Score) -> list[str]:
    lines = []
    for source in result.calibration.sources:
        lines += ["", f"calibration ({source.source.value}, {source.scale}; {source.n} diagnoses)", *_source(source)]
    return lines


def _source(source: SourceCalibration) -> list[str]:
    lines = [f"  AUROC {as_value(source.auroc)}, area under risk-coverage {as_value(source.aurc)}"]
    if source.brier:
        lines.append(f"  Brier {as_value(source.brier)}, log score {as_value(source.log_score)}")
        lines.append(f"  intercept {as_value(source.intercept)}, slope {as_value(source.slope)}")
    if source.ece:
        lines.append(f"  ECE {_error(source.ece)}")
    if source.unmatched:
        lines.append(f"  {source.unmatched} diagnoses are not in their own differential and are left out")
    lines += [f"  {note}" for note in source.notes]
    for mark in source.landmarks:
        when = f"turn {mark.turn}" if mark.turn else "end"
        sure = f", mean confidence {as_percent(mark.mean_forecast)}" if mark.mean_forecast else ""
        lines.append(f"  {when}: leader right {as_percent(mark.accuracy)}{sure} (n {mark.n})")
    return lines


def _error(error: CalibrationError) -> str:
    band = f"{error.expected:.3f} ({error.low:.3f} to {error.high:.3f})"
    return f"{error.value:.3f}; perfect forecasts at this n give {band}"


def _information(result: Score) -> list[str]:
    told = result.information
    lines = ["", "information"]
    lines.append(
        f"  per encounter: turns {as_value(told.turns)}, questions {as_value(told.questions)}, "
        f"tests {as_value(told.tests)}"
    )
    lines += [f"  tokens, {role}: {as_value(tokens, 0)}" for role, tokens in told.tokens.items() if tokens.value]
    if told.questions.value is not None:
        lines.append(
            f"  repeated questions {as_share(told.repeated_questions)}, repeated tests {as_share(told.repeated_tests)}"
        )
    if told.key_facts.encounters:
        ways = ", ".join(f"{way} {as_share(share)}" for way, share in told.key_facts.by_way.items() if share)
        lines += [f"  key facts: recall {as_percent(told.key_facts.recall)}; {ways}"]
        lines.append(f"  key facts per request {as_value(told.key_facts.yield_per_request)}")
    if told.premature_closure.of:
        lines.append(f"  premature closure {as_share(told.premature_closure)}")
    for source, course in told.differentials.items():
        lines.append(
            f"  truth ({source}): ever listed {as_share(course.truth_appeared)}, led {as_share(course.truth_led)}"
        )
        lines.append(f"    dropped after leading {as_share(course.truth_dropped)}")
    return lines


def _orders(result: Score) -> list[str]:
    ordered = result.orders
    if not ordered.encounters:
        return []
    lines = [
        "",
        "tests",
        f"  ordered per encounter {as_value(ordered.orders)}; repeated {as_share(ordered.repeated)}",
    ]
    given = {name: share for name, share in ordered.answered_by.items() if share.count}
    lines.append("  answered by " + ", ".join(f"{name} {as_share(share)}" for name, share in given.items()))
    if ordered.price_usd.value is None:
        lines.append(f"  price unknown: {ordered.unpriced} of {ordered.priced + ordered.unpriced} done are unpriced")
    else:
        lines.append(f"  price per encounter, USD (estimates): {as_value(ordered.price_usd)}")
    for stratum, share in ordered.accuracy_by_unanswerable.items():
        if share.of:
            where = "no test was ordered" if stratum == "no tests" else f"the share of unanswered tests is {stratum}"
            lines.append(f"  accuracy where {where}: {as_share(share)}")
    return lines


def as_share(share: Proportion | None) -> str:
    """A share with its interval and count."""
    if share is None or share.value is None or share.low is None or share.high is None:
        return "unknown"
    return f"{share.value:.1%} ({share.low:.1%} to {share.high:.1%}; {share.count} of {share.of})"


def as_percent(estimate: Estimate | None) -> str:
    """An estimate as a percentage with its interval."""
    if estimate is None or estimate.value is None:
        return "unknown"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.1%}"
    return f"{estimate.value:.1%} ({estimate.low:.1%} to {estimate.high:.1%})"


def _points(estimate: Estimate) -> str:
    return f"{as_percent(estimate)} of strict accuracy, {estimate.n} cases"


def as_value(estimate: Estimate | None, digits: int = 2) -> str:
    """An estimate as a number with its interval."""
    if estimate is None or estimate.value is None:
        return "unknown"
    shown = f"{estimate.value:,.{digits}f}"
    if estimate.low is None or estimate.high is None:
        return shown
    return f"{shown} ({estimate.low:,.{digits}f} to {estimate.high:,.{digits}f})"
