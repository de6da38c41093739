"""`agentclinic score`: a run's metrics as text."""

from __future__ import annotations

from pathlib import Path

from agentclinic.cli.format import counted, print_json, text_table
from agentclinic.cli.judge import label_notes, next_lines
from agentclinic.report.parts import outcome_name
from agentclinic.report.text import plural
from agentclinic.results.record import bias_label
from agentclinic.results.run_data import load_run
from agentclinic.runs.budget import money
from agentclinic.scoring.calibration import SourceCalibration
from agentclinic.scoring.format import as_number, as_percent, as_points, interval, percent
from agentclinic.scoring.score import Score, score
from agentclinic.scoring.slips import slip_lines


def score_command(
    place: Path,
    judge: str | None,
    full_information: Path | None,
    seed: int,
    *,
    corrected: bool,
    full: bool,
    as_json: bool,
) -> None:
    """Score a run and print it."""
    run = load_run(place, judge)
    result = score(
        run,
        seed=seed,
        full_information=load_run(full_information, judge) if full_information else None,
        corrected=corrected,
    )
    if as_json:
        print_json(result)
        return
    print(as_text(result) if full else short_text(result))


def as_text(result: Score) -> str:
    """The whole score for a person: unknown numbers are left out, or called unknown if they are main figures."""
    lines = [_title(result)]
    for part in (_outcome, _judge, _ranking, _repeats, _harm, _calibration, _information, _orders):
        lines += part(result)
    lines.append("Intervals are 95%; those of means resample cases. --json prints everything.")
    return "\n".join(lines)


def short_text(result: Score) -> str:
    """The main figures in one table, and one sentence."""
    outcome, info, price = result.outcome, result.information, result.orders.price_usd
    rows = [("", "value (95% interval)"), ("accuracy", as_percent(outcome.accuracy_strict))]
    if outcome.lenient_differs:
        rows[1] = ("accuracy, strict", rows[1][1])
        rows.append(("accuracy, lenient", as_percent(outcome.accuracy_lenient)))
    ended = {outcome_name(name): count for name, count in outcome.outcomes.items()}
    rows.append(("how encounters ended", counted(ended)))
    for source in result.calibration.sources:
        if source.n:
            sure = f"{as_percent(source.mean_forecast)} sure on average; " if source.mean_forecast else ""
            rows.append((f"confidence ({source.source.value})", f"{sure}AUROC {as_number(source.auroc)}"))
    rows += [(name.replace("_", "'s ", 1), bias_label(asked)) for name, asked in outcome.unsupported_bias.items()]
    rows.append(("turns per encounter", as_number(info.turns, 1)))
    if info.key_facts.encounters:
        rows.append(("key findings found", as_percent(info.key_facts.recall)))
    if result.repeats.repeated:
        rows.append(("repeats that differ", as_percent(result.repeats.flip_rate)))
    if outcome.tokens:
        rows.append(("tokens of the models", f"{outcome.tokens:,}"))
    if outcome.cost or (outcome.tokens and outcome.cost is None):
        rows.append(("cost of the models", "unknown" if outcome.cost is None else money(outcome.cost)))
    if price.value:
        rows.append(("simulated tests per encounter", f"${as_number(price, 0)}"))
    gap = result.gap_to_full_information
    if gap:
        rows.append(("gap to full information", as_points(gap)))
    lines = [_title(result), *text_table(rows[0], rows[1:]), "", f"{_sentence(result)}.", result.judged_by]
    lines += _correction(result)
    return "\n".join([*lines, "--full adds calibration, information and tests; --json prints everything."])


def _title(result: Score) -> str:
    return result.run + (f", judged by {result.judge}" if result.judge else "")


def _sentence(result: Score) -> str:
    """How often the doctor was right, and whether anything is missing from that."""
    outcome, share = result.outcome, result.outcome.accuracy_strict
    if share is None or share.value is None:
        said = "Nothing could be judged"
    else:
        said = f"Right in {share.count:,} of {share.of:,} encounters: {percent(share.value)} (95% {interval(share)})"
    low, high = outcome.if_missing_wrong, outcome.if_missing_right
    if low != high:
        missing = plural(outcome.presented - (share.of if share else 0), "encounter")
        said += f"; with {missing} missing, it could be {percent(low)} to {percent(high)}"
    return said + _unfinished(result)


def _unfinished(result: Score) -> str:
    played, planned = result.outcome.presented, result.planned
    if planned is None or played >= planned:
        return ""
    return f"; the run is not finished: {played:,} of {planned:,} encounters were played"


def _outcome(result: Score) -> list[str]:
    outcome = result.outcome
    lines = ["", f"outcome{_unfinished(result)}"]
    if outcome.lenient_differs:
        lines.append(f"  accuracy, strict: {as_percent(outcome.accuracy_strict)}")
        lines.append(f"  accuracy, lenient: {as_percent(outcome.accuracy_lenient)}")
    else:
        lines.append(f"  accuracy: {as_percent(outcome.accuracy_strict)}")
    low, high = outcome.if_missing_wrong, outcome.if_missing_right
    if low != high:
        lines.append(f"  if all missing were wrong {percent(low)}, if all were right {percent(high)}")
    lines.append(f"  {counted(outcome.outcomes)}")
    lines += [f"  fault {name}: {count}" for name, count in outcome.faults.items()]
    lines += [f"  {line}" for line in slip_lines(outcome)]
    lines += [f"  {name}: {bias_label(asked)}" for name, asked in outcome.unsupported_bias.items()]
    gap = result.gap_to_full_information
    if gap:
        lines.append(f"  gap to full information: {as_points(gap)} of strict accuracy, {gap.n} cases")
    return lines


def _judge(result: Score) -> list[str]:
    return ["", "judge", f"  {result.judged_by}", *(f"  {line}" for line in _correction(result))]


def _correction(result: Score) -> list[str]:
    """The accuracy corrected for the judge's errors, and what more labels would do."""
    found = result.corrected
    if found is None:
        return []
    lines = [
        f"Corrected by {plural(found.labeled, 'label')}: {as_percent(found.corrected)} (prediction-powered, PPI++)",
        f"  by the judge's sensitivity and specificity (Rogan and Gladen): {as_percent(found.rogan_gladen)}",
        *(f"  note: {note}" for note in label_notes(found)),
    ]
    return [*lines, *next_lines(found)]


def _ranking(result: Score) -> list[str]:
    lines = []
    for source, ranked in result.ranking.by_source.items():
        tops = ", ".join(f"top-{k} {as_percent(share)}" for k, share in ranked.top.items())
        mrr = as_number(ranked.mean_reciprocal_rank)
        lines += ["", f"differential ({source})", f"  {tops}", f"  mean reciprocal rank {mrr}"]
    return lines


def _repeats(result: Score) -> list[str]:
    repeated = result.repeats
    if not repeated.repeated:
        return []
    passes = ", ".join(f"pass^{k} {as_percent(estimate)}" for k, estimate in repeated.pass_k.items())
    lines = [
        "",
        f"repeats ({plural(repeated.repeated, 'case')})",
        f"  flip rate {as_percent(repeated.flip_rate)}",
        f"  {passes}",
        f"  majority vote {as_percent(repeated.majority_vote)}",
    ]
    return [*lines, f"  {repeated.note}"] if repeated.note else lines


def _harm(result: Score) -> list[str]:
    harmed = result.harm
    if not harmed.stated:
        return []
    return [
        "",
        f"harm ({harmed.stated} records of cases that state it)",
        f"  harm-weighted loss {as_percent(harmed.weighted_loss)}",
        f"  wrong on cases of harm 3 or more: {as_percent(harmed.serious_wrong)}",
        f"  must-not-miss diseases never considered: {as_percent(harmed.must_not_miss_missed)}",
    ]


def _calibration(result: Score) -> list[str]:
    lines = []
    for source in result.calibration.sources:
        lines += [
            "",
            f"calibration ({source.source.value}, {source.scale}; {plural(source.n, 'diagnosis', 'diagnoses')})",
            *_source(source),
        ]
    return lines


def _source(source: SourceCalibration) -> list[str]:
    lines = [f"  AUROC {as_number(source.auroc)}, area under risk-coverage {as_number(source.aurc)}"]
    if source.brier:
        lines.append(f"  Brier {as_number(source.brier)}, log score {as_number(source.log_score)}")
    if source.ece:
        ece = source.ece
        perfect = f"{ece.expected:.3f} ({ece.low:.3f} to {ece.high:.3f})"
        lines.append(f"  ECE {ece.value:.3f}; perfect forecasts at this n give {perfect}")
    if source.unmatched:
        lines.append(f"  left out: {source.unmatched} diagnoses that are not in their own differential")
    lines += [f"  {note}" for note in source.notes]
    return lines


def _information(result: Score) -> list[str]:
    info = result.information
    lines = ["", "information"]
    lines.append(
        f"  per encounter: turns {as_number(info.turns)}, questions {as_number(info.questions)}, "
        f"tests {as_number(info.tests)}"
    )
    lines += [f"  tokens, {role}: {as_number(tokens, 0)}" for role, tokens in info.tokens.items() if tokens.value]
    if info.questions.value is not None:
        lines.append(
            f"  repeated questions {as_percent(info.repeated_questions)}, "
            f"repeated tests {as_percent(info.repeated_tests)}"
        )
    if info.key_facts.encounters:
        ways = ", ".join(f"{way} {as_percent(share)}" for way, share in info.key_facts.by_way.items() if share)
        lines.append(f"  key facts: recall {as_percent(info.key_facts.recall)}; {ways}")
        lines.append(f"  key facts per request {as_number(info.key_facts.yield_per_request)}")
    if info.premature_closure.of:
        lines.append(f"  premature closure {as_percent(info.premature_closure)}")
    for source, course in info.differentials.items():
        lines.append(
            f"  truth ({source}): ever listed {as_percent(course.truth_appeared)}, "
            f"ever first {as_percent(course.truth_led)}"
        )
        lines.append(f"    dropped after being first {as_percent(course.truth_dropped)}")
    return lines


def _orders(result: Score) -> list[str]:
    ordered = result.orders
    if not ordered.encounters:
        return []
    given = ", ".join(f"{name} {as_percent(share)}" for name, share in ordered.answered_by.items() if share.count)
    lines = [
        "",
        "tests",
        f"  ordered per encounter {as_number(ordered.orders)}; repeated {as_percent(ordered.repeated)}",
        f"  answered by {given}",
    ]
    if ordered.price_usd.value is None:
        total = ordered.priced + ordered.unpriced
        lines.append(f"  price unknown: {ordered.unpriced} of {total} tests done have no price")
    else:
        lines.append(f"  price per encounter, USD (estimates): {as_number(ordered.price_usd)}")
    for stratum, share in ordered.accuracy_by_unanswerable.items():
        if share.of:
            where = "no test was ordered" if stratum == "no tests" else f"the share of unanswered tests is {stratum}"
            lines.append(f"  accuracy where {where}: {as_percent(share)}")
    return lines
