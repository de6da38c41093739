"""`agentclinic sessions`: the notes of uncertainty-aware doctors, one by one and all together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agentclinic.cli.score import as_share, as_text, as_value
from agentclinic.doctors.uncertainty.steps import read_uncertainties, stated_differential
from agentclinic.doctors.uncertainty.store import Session
from agentclinic.errors import InputError
from agentclinic.scoring.score import score
from agentclinic.scoring.sessions import Kept, Sessions, load_sessions, summarise_sessions


def sessions_command(
    place: Path, which: str | None, judge: str | None, seed: int, *, summary: bool, as_json: bool
) -> None:
    """List the sessions, show one of them, or summarise them all."""
    found = load_sessions(place, judge)
    if which is not None:
        _show_one(_chosen(found, which), as_json=as_json)
    elif summary:
        _show_summary(found, seed, as_json=as_json)
    else:
        _show_list(found, as_json=as_json)


def _chosen(found: Sessions, which: str) -> Kept:
    """By session id, by an unmistakable beginning of it, or by the scenario's number."""
    for kept in found.kept:
        if kept.session.session_id == which:
            return kept
    if which.isdigit():
        matching = [kept for kept in found.kept if kept.session.session_id.startswith(f"scenario_{which}_")]
    else:
        matching = [kept for kept in found.kept if kept.session.session_id.startswith(which)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        names = ", ".join(kept.session.session_id for kept in matching[:5])
        raise InputError(f"{which!r} fits {len(matching)} sessions ({names}); give the whole name")
    raise InputError(
        f"{found.folder} has no session {which!r}; `agentclinic sessions {found.folder.parent}` lists them"
    )


def _verdict(kept: Kept) -> str:
    if kept.record is None:
        return ""
    return {True: "right", False: "wrong", None: kept.record.status}[kept.record.correct]


def _entry(kept: Kept) -> dict[str, Any]:
    session, record = kept.session, kept.record
    leader = _leader(session)
    return {
        "session_id": session.session_id,
        "scenario_id": record.scenario_id if record else None,
        "repeat": record.repeat if record else None,
        "steps": len(session.steps),
        "final_diagnosis": kept.final,
        "leader": leader[0] if leader else None,
        "leader_probability": leader[1] if leader else None,
        "ground_truth": record.ground_truth if record else None,
        "correct": record.correct if record else None,
    }


def _leader(session: Session) -> tuple[str, float | None] | None:
    given = getattr(session.steps[-1], "differential", None) if session.steps else None
    differential = stated_differential(read_uncertainties(given)) if given else None
    return (differential.hypotheses[0].diagnosis, differential.hypotheses[0].probability) if differential else None


def _show_list(found: Sessions, *, as_json: bool) -> None:
    entries = [_entry(kept) for kept in found.kept]
    if as_json:
        print(json.dumps({"sessions": entries, "damaged": list(found.damaged)}, indent=2, ensure_ascii=False))
        return
    wide = max((len(entry["session_id"]) for entry in entries), default=7)
    print(f"{'session':{wide}}  steps  final diagnosis (probability of the leader)")
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
    print(f"\n{len(entries)} sessions in {found.folder}")


def _show_one(kept: Kept, *, as_json: bool) -> None:
    session, record = kept.session, kept.record
    if as_json:
        data = session.model_dump(mode="json")
        print(json.dumps({**_entry(kept), "session": data}, indent=2, ensure_ascii=False))
        return
    print(session.session_id)
    if record is not None:
        place = f"scenario {record.scenario_id} of {record.dataset}"
        print(f"{place}{f', repeat {record.repeat}' if record.repeat else ''}; truth: {record.ground_truth}")
    for step in session.steps:
        by = "  (written by the clinic)" if getattr(step, "recorded_by", None) == "clinic" else ""
        print(f"\nstep {step.step_number}{by}")
        print(f"  learned: {step.new_information}")
        given = getattr(step, "differential", None) or step.current_uncertainties
        for item in read_uncertainties(given).items:
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
        print(f"\nfinal diagnosis: {final}; made anew: {kept.final} ({verdict})")
    if getattr(session, "reason_ready", None):
        print(f"  reason: {session.reason_ready}")  # type: ignore[attr-defined]
    error = getattr(session, "synthesis_error", None)
    print(
        f"  synthesis by {getattr(session, 'synthesis_model', 'unknown')}{f', which failed ({error})' if error else ''}"
    )


def _show_summary(found: Sessions, seed: int, *, as_json: bool) -> None:
    summary = summarise_sessions(found, seed)
    scored = score(found.run, seed=seed) if found.run else None
    if as_json:
        data = {
            "sessions": summary.model_dump(mode="json"),
            "score": scored.model_dump(mode="json") if scored else None,
            "damaged": list(found.damaged),
        }
        print(json.dumps(data, indent=2, ensure_ascii=False))
        return
    print(f"{summary.sessions} sessions in {found.folder}")
    print(f"  steps {as_value(summary.steps)}, facts {as_value(summary.facts)} per session")
    print(f"  diagnoses in a differential {as_value(summary.hypotheses)}")
    print(f"  steps with a probability for each {as_share(summary.with_probabilities)}")
    print(f"  steps written by the clinic {as_share(summary.recorded_by_clinic)}")
    print(f"  concluded {as_share(summary.concluded)}")
    print(f"  synthesis failed {as_share(summary.synthesis_failed)}")
    print(f"  synthesis names another disease than the doctor's favourite {as_share(summary.synthesis_differs)}")
    if summary.mended or summary.spoiled:
        print(f"    favourite wrong and synthesis right {summary.mended}, the other way round {summary.spoiled}")
    for problem in found.damaged:
        print(f"  damaged: {problem}")
    if scored:
        print()
        print(as_text(scored))
    else:
        print("  no records beside these sessions: whether the diagnoses are right is not known")
