"""`agentclinic sessions`: the notes of uncertainty-aware doctors, one by one or summarized."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentclinic.cli import options as opt
from agentclinic.cli.format import print_json
from agentclinic.cli.score import as_text
from agentclinic.errors import InputError
from agentclinic.report.tables import plural
from agentclinic.scoring.format import as_number, as_percent

if TYPE_CHECKING:
    from agentclinic.doctors.uncertainty.store import Session
    from agentclinic.scoring.sessions import Kept, Sessions


@opt.with_output
def sessions_command(
    run: Annotated[
        Path, opt.run(help="A run with --doctor uncertainty: its folder, name or latest; or a folder of session files.")
    ],
    session: Annotated[
        str | None,
        typer.Argument(help="Show only this session: its name, the start of it, or the id or row of its case."),
    ] = None,
    summary: Annotated[
        bool, typer.Option("--summary", help="Summarize all sessions and print the metrics of `score`.")
    ] = False,
    judge: opt.Judge = None,
    seed: opt.Seed = 0,
    json: opt.Json = False,
) -> None:
    """Show the notes of uncertainty-aware doctors.

    Lists a run's sessions, shows one step by step with its facts, doubts and actions, or summarizes them all.
    """
    from agentclinic.scoring.sessions import load_sessions

    found = load_sessions(run, judge)
    if session is not None:
        _show_one(_chosen(found, session), as_json=json)
    elif summary:
        _show_summary(found, seed, as_json=json)
    else:
        _show_list(found, as_json=json)


def _chosen(found: Sessions, which: str) -> Kept:
    """The session with this id, the only one whose id starts like this, or the only one of this case."""
    start = f"scenario_{which}_" if which.isdigit() else which
    named = [kept for kept in found.kept if kept.record and kept.record.case_name == which]
    matching = named or [kept for kept in found.kept if kept.session.session_id.startswith(start)]
    exact = [kept for kept in found.kept if kept.session.session_id == which]
    if len(matching) == 1 or exact:
        return (exact or matching)[0]
    if matching:
        names = ", ".join(kept.session.session_id for kept in matching[:5])
        raise InputError(f"{which!r} matches {len(matching)} sessions ({names}); give the whole name")
    raise InputError(
        f"{found.folder} has no session {which!r}; `agentclinic sessions {quote(str(found.folder.parent))}` lists them"
    )


def _verdict(kept: Kept) -> str:
    if kept.record is None:
        return ""
    return {True: "right", False: "wrong", None: kept.record.status}[kept.record.correct]


def _entry(kept: Kept) -> dict[str, Any]:
    session, record = kept.session, kept.record
    leader, probability = _leader(session)
    return {
        "session_id": session.session_id,
        "scenario_id": record.scenario_id if record else None,
        "repeat": record.repeat if record else None,
        "steps": len(session.steps),
        "final_diagnosis": kept.final,
        "leader": leader,
        "leader_probability": probability,
        "ground_truth": record.ground_truth if record else None,
        "correct": record.correct if record else None,
    }


def _leader(session: Session) -> tuple[str | None, float | None]:
    """The first hypothesis of the newest differential, and its probability."""
    from agentclinic.doctors.uncertainty.steps import stated_differential

    differential = stated_differential(session.doubts)
    if not differential:
        return None, None
    return differential.hypotheses[0].diagnosis, differential.hypotheses[0].probability


def _show_list(found: Sessions, *, as_json: bool) -> None:
    entries = [_entry(kept) for kept in found.kept]
    if as_json:
        print_json({"sessions": entries, "damaged": found.damaged})
        return
    wide = max((len(entry["session_id"]) for entry in entries), default=7)
    print(f"{'session':{wide}}  steps  final diagnosis (probability of the leading diagnosis)")
    for entry, kept in zip(entries, found.kept, strict=True):
        probability = entry["leader_probability"]
        sure = f" ({probability:.2f})" if probability is not None else ""
        verdict = _verdict(kept)
        final = entry["final_diagnosis"] or "none"
        truth = f": {entry['ground_truth']}" if verdict == "wrong" else ""
        end = f"  {verdict}{truth}" if verdict else ""
        print(f"{entry['session_id']:{wide}}  {entry['steps']:5}  {final}{sure}{end}")
    for problem in found.damaged:
        print(f"damaged: {problem}")
    print(f"\n{plural(len(entries), 'session')} in {found.folder}")


def _show_one(kept: Kept, *, as_json: bool) -> None:
    session, record = kept.session, kept.record
    if as_json:
        print_json({**_entry(kept), "session": session})
        return
    print(session.session_id)
    if record is not None:
        print(f"{record.unit_name}; truth: {record.ground_truth}")
    for step in session.steps:
        by = "  (written by the clinic)" if getattr(step, "recorded_by", None) == "clinic" else ""
        print(f"\nstep {step.step_number}{by}")
        print(f"  learned: {step.new_information or 'nothing new'}")
        for item in step.doubts.items:
            share = "   ?" if item.probability is None else f"{item.probability:4.2f}"
            print(f"  {share}  {item.diagnosis}{f': {item.reason}' if item.reason else ''}")
        print(f"  action: {step.next_step_action}")
        for remark in getattr(step, "remarks", None) or []:
            print(f"  note: {remark}")
    final = getattr(session, "final_diagnosis", None)
    if not final:
        print("\nno final diagnosis")
        return
    verdict = _verdict(kept)
    if kept.final == final:
        print(f"\nfinal diagnosis: {final}{f' ({verdict})' if verdict else ''}")
    else:
        print(f"\nfinal diagnosis: {final}; synthesized again: {kept.final} ({verdict})")
    reason = getattr(session, "reason_ready", None)
    if reason:
        print(f"  reason: {reason}")
    error = getattr(session, "synthesis_error", None)
    failed = f", which failed ({error})" if error else ""
    print(f"  synthesis by {getattr(session, 'synthesis_model', 'unknown')}{failed}")


def _show_summary(found: Sessions, seed: int, *, as_json: bool) -> None:
    from agentclinic.scoring.score import score
    from agentclinic.scoring.sessions import summarise_sessions

    summary = summarise_sessions(found, seed)
    scored = score(found.run, seed=seed) if found.run else None
    if as_json:
        print_json({"sessions": summary, "score": scored, "damaged": found.damaged})
        return
    print(f"{plural(summary.sessions, 'session')} in {found.folder}")
    print(f"  per session: steps {as_number(summary.steps)}, facts {as_number(summary.facts)}")
    print(f"  diagnoses in a differential {as_number(summary.hypotheses)}")
    print(f"  steps with a probability for every diagnosis {as_percent(summary.with_probabilities)}")
    print(f"  steps written by the clinic {as_percent(summary.recorded_by_clinic)}")
    print(f"  concluded {as_percent(summary.concluded)}")
    print(f"  synthesis failed {as_percent(summary.synthesis_failed)}")
    print(f"  synthesis differs from the doctor's leading diagnosis {as_percent(summary.synthesis_differs)}")
    if summary.fixed or summary.broken:
        print(f"    synthesis fixed {summary.fixed}, broke {summary.broken}")
    for problem in found.damaged:
        print(f"  damaged: {problem}")
    if scored:
        print()
        print(as_text(scored))
    else:
        print("  these sessions have no records, so it is not known which diagnoses are right")
