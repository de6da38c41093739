"""`agentclinic run` and `resume`: the run with its progress, and the table at the end."""

from __future__ import annotations

import ast
import os
import re
import sys
import warnings
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentclinic.cli import options as opt
from agentclinic.cli.format import end_incomplete, end_without_result, finish, print_json, progress, show_estimate
from agentclinic.config import ROLE_NAMES, ROLES, RunSettings, is_builtin_or_person, traits_text
from agentclinic.errors import ConfigError, InputError
from agentclinic.jsonl import inert, refuse_other
from agentclinic.report.tables import plural, text_table
from agentclinic.scoring.format import as_percent, number, percent

if TYPE_CHECKING:
    from agentclinic.config import Settings
    from agentclinic.runs.execute import Finished
    from agentclinic.runs.plan import Plan
    from agentclinic.runs.progress import Progress
    from agentclinic.scoring.outcome import Summary

MANY_WASTED = 1 / 3
"""Share of wasted turns from which a run in a solvable world says so: the doctor may not have understood the menu."""
_OUTCOMES = {
    "diagnosed_right": "diagnosed, judged right",
    "diagnosed_wrong": "diagnosed, judged wrong",
    "not_readable": "not readable (counts as not right)",
    "max_infs_reached": "no diagnosis within the turn limit",
    "doctor_failed": "doctor failed (counts as wrong)",
    "model_failed": "model failed (missing, not wrong)",
    "judge_failed": "judge failed (missing, not wrong)",
}


def _use_key(key: str | None) -> str | None:
    if key:
        warnings.warn(
            "--openai-api-key: the key is now in the shell's history and visible in the list of processes; set "
            "OPENAI_API_KEY in the environment or in .env instead",
            stacklevel=2,
        )
        # Not a setting, so that it cannot be written anywhere; like any flag, it wins over .env and the files.
        os.environ["OPENAI_API_KEY"] = key
    return None


_NO_EFFECT = {
    "--run-log-path": "the run's folder holds the transcript of every scenario (docs/runs.md)",
    "--knowledge": "doctors get no reference text; put it into prompts/doctor.json, or use --memory",
}
"""Flags of the original that are accepted, and why they have no effect."""


def _ignored(param: typer.CallbackParam, value: str | None) -> None:
    if value is not None:
        flag = param.opts[0]
        warnings.warn(f"{flag} is ignored: {_NO_EFFECT[flag]}", stacklevel=2)


def _renamed(given: bool | None) -> None:
    if given is not None:
        raise ConfigError(
            "--judge-relation is now --judge: cascade, model or original, each with --moderator-llm MODEL"
        )


_original = partial(typer.Option, show_default=False, rich_help_panel="The original's names")


@opt.with_settings(*RunSettings.model_fields)
def run_command(
    model: opt.Model = None,
    *,
    read: opt.Read,
    dry_run: opt.DryRun = False,
    report: opt.Report = False,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    use_uncertainty_aware: Annotated[
        bool, _original("--use-uncertainty-aware/--no-use-uncertainty-aware", help="Now --doctor uncertainty.")
    ] = False,
    use_memory: Annotated[
        bool, _original("--use-memory/--no-use-memory", help=f"Now --memory {opt.USUAL_STORE}.")
    ] = False,
    output_file: Annotated[
        Path | None, _original(help="Also append the records to this file, with the keys of the original's script.")
    ] = None,
    data_file: Annotated[
        Path | None,
        _original(
            "--data-file",
            "--patient-csv",
            help="Now --dataset FILE; with --dataset NAME as well, the cases count as NAME's.",
        ),
    ] = None,
    dataset_name: Annotated[str | None, _original(help="Name of the data set in the results.")] = None,
    custom_doctor_agent_path: Annotated[
        Path | None, _original(help="Now --doctor FILE.py:Class; here, the class is CustomDoctorAgent or DoctorAgent.")
    ] = None,
    experiment_id: Annotated[str | None, _original(help="Now --name.")] = None,
    _run_log_path: Annotated[
        str | None, _original("--run-log-path", help=f"Ignored: {_NO_EFFECT['--run-log-path']}.", callback=_ignored)
    ] = None,
    _knowledge: Annotated[
        str | None, _original("--knowledge", help=f"Ignored: {_NO_EFFECT['--knowledge']}.", callback=_ignored)
    ] = None,
    _judge_relation: Annotated[
        bool | None, typer.Option("--judge-relation/--no-judge-relation", hidden=True, callback=_renamed)
    ] = None,
    _key: Annotated[
        str | None,
        _original(
            "--openai-api-key", help="Better set OPENAI_API_KEY: it stays out of the history.", callback=_use_key
        ),
    ] = None,
) -> None:
    """Evaluate a doctor on a data set.

    Flags override the config files, which override the defaults. The flags of the original's scripts work too
    (docs/runs.md lists them), and every flag may be written with `_` instead of `-`.
    """
    from agentclinic.runs.execute import execute
    from agentclinic.runs.plan import make_plan

    said: dict[str, Any] = {"doctor": "uncertainty"} if use_uncertainty_aware else {}
    said |= {"memory": opt.USUAL_STORE} if use_memory else {}
    said |= {f"{role}_llm": model for role in ROLES if role != "moderator"} if model else {}
    said |= {"doctor": _custom_doctor(custom_doctor_agent_path)} if custom_doctor_agent_path else {}
    said |= {"name": name} if (name := re.sub(r"[^A-Za-z0-9.-]+", "_", experiment_id or "").strip("._-")[:60]) else {}
    plan = make_plan(_with_data_file(read(**said), data_file, dataset_name))
    if dry_run:
        from agentclinic.runs.estimate import estimate_run

        show_estimate(estimate_run(plan), as_json=json)
        return
    if output_file is not None:
        _refuse_unfit(output_file)
    finished = finish(execute, plan, _progress(plan, quiet=quiet))
    if output_file is not None:
        from agentclinic.compat.folder import append_results

        append_results(finished.folder, output_file)
    _end(plan, finished, as_json=json, report=report)


def _with_data_file(settings: Settings, file: Path | None, label: str | None) -> Settings:
    """The settings with the file of cases of `--data-file`; `label`, or `--dataset` beside it, names its cases."""
    if file is None and label is None:
        return settings
    if file and file.suffix.lower() == ".csv":
        raise InputError(
            f"{file}: tables are not read as cases; `agentclinic generate mimic` makes cases from those of MIMIC-IV"
        )
    if file and not file.expanduser().is_file():
        raise InputError(f"--data-file {file}: no such file")
    from agentclinic.cases.registry import resolve

    path = str((file or resolve(settings.run.dataset, settings.datasets)[1]).absolute())
    # Under both names: a file of MIMICIV stays credentialed, whatever its label.
    names = list(filter(None, (settings.given.flags.get("dataset"), label)))
    datasets = settings.datasets | dict.fromkeys(names, path)
    return settings.model_copy(update={"datasets": datasets}).changed(dataset=names[-1] if names else path)


def _custom_doctor(file: Path) -> str:
    """The doctor in a file of the original's style, as `FILE.py:Class`; nothing in the file runs."""
    from agentclinic.trust import read_program

    try:
        code = ast.parse(read_program(file.expanduser()))
    except (SyntaxError, ValueError) as error:
        raise InputError(f"{file}, line {getattr(error, 'lineno', 1)}: not valid Python ({error})") from None
    own = {node.name for node in code.body if isinstance(node, ast.ClassDef)}
    own |= {
        at.id for node in code.body if isinstance(node, ast.Assign) for at in node.targets if isinstance(at, ast.Name)
    }
    imported = {alias.asname or alias.name for n in code.body if isinstance(n, ast.ImportFrom) for alias in n.names}
    # An imported DoctorAgent is the clinic's, which the file's own class is made from.
    for name in ("CustomDoctorAgent", "DoctorAgent"):
        if name in own or (name in imported and name == "CustomDoctorAgent"):
            return f"{file}:{name}"
    raise InputError(f"{file}: has no class CustomDoctorAgent or DoctorAgent; name yours with --doctor {file}:Class")


@opt.with_fields({name: RunSettings.model_fields[name] for name in ("workers", *opt.ENGINE, "record", "check")})
def resume_command(
    folder: opt.RunArgument,
    *,
    config: opt.Config = None,
    llm_config: opt.LLMConfig = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Also play the scenarios that failed without a verdict again.")
    ] = False,
    allow_host: opt.AllowHost = None,
    trust_address: opt.TrustAddress = None,
    trust_program: opt.TrustProgram = None,
    max_cost: opt.MaxCost = None,
    token_limit: opt.TokenLimit = None,
    report: opt.Report = False,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    overrides: dict[str, Any],
) -> None:
    """Finish an incomplete run.

    Uses the run's own settings; only keys and passwords, which are never written to a run's folder, come from the
    environment and the config files. If anything that affects the results has changed, the command stops and lists it.
    """
    from agentclinic.runs.resume import plan_again, resume

    given = opt.read_settings(
        config, llm_config, allow_host=allow_host, trust_address=trust_address, trust_program=trust_program
    )
    plan = plan_again(folder, overrides, given, token_limit, max_cost)
    finished = finish(resume, plan, folder, _progress(plan, quiet=quiet), retry_failed=retry_failed)
    if not finished.missing and not finished.played and not quiet:
        sys.stderr.write("already complete: nothing was left to play\n")
    _end(plan, finished, as_json=json, report=report)


def _progress(plan: Plan, *, quiet: bool) -> Progress:
    if plan.people:
        from agentclinic.cli.people import People

        return People(plan.settings.run)
    return progress(quiet=quiet)


def _end(plan: Plan, finished: Finished, *, as_json: bool, report: bool) -> None:
    from agentclinic.scoring.outcome import nothing_judged

    if as_json:
        result = {"run": finished.folder, "missing": finished.missing, "stopped": finished.reason}
        print_json({**result, **finished.summary.model_dump(mode="json")})
    else:
        _show_result(plan, finished)
    if finished.missing:
        why = f" ({finished.reason})" if finished.reason else ""
        end_incomplete(
            f"{finished.missing} of {len(plan.units)} scenarios were not played{why}; continue with:\n"
            f"  agentclinic resume {quote(str(finished.folder))}",
            interrupted=finished.interrupted,
        )
    if failed := finished.summary.missing:
        sys.stderr.write(
            f"{plural(failed, 'scenario')} failed without a verdict; fix the cause, then play again with:\n"
            f"  agentclinic resume {quote(str(finished.folder))} --retry-failed\n"
        )
    if report:
        from agentclinic.report.files import write_report

        # With --json, standard output is for another program.
        print(f"Report written to {write_report([finished.folder])}", file=sys.stderr if as_json else sys.stdout)
    if nothing_judged(finished.summary):
        end_without_result("nothing could be judged: every scenario failed without a verdict")


def _refuse_unfit(output_file: Path) -> None:
    """Refuse a file that results cannot be appended to, before the run rather than after it."""
    if output_file.is_dir() or not output_file.parent.is_dir():
        raise InputError(f"--output-file {output_file}: cannot be written; name a file in a folder that exists")
    if output_file.exists():
        refuse_other(output_file, "JSON Lines, so results cannot be appended to it")


def _memory(plan: Plan, summary: Summary) -> str:
    assert plan.memory is not None
    offered = f"{plural(len(plan.memory.experiences), 'experience')} by {plan.memory.how}"
    used = summary.memory
    failed = f", failed on {plural(used['failed'], 'turn')}" if used.get("failed") else ""
    return f"{offered}; {used.get('offered', 0)} offered, {used.get('followed', 0)} followed{failed}"


def _show_result(plan: Plan, finished: Finished) -> None:
    """The final table: what was evaluated, what came out, what to do next."""
    from agentclinic.cases.solvable import is_world
    from agentclinic.cli.format import print_lines
    from agentclinic.results.record import bias_label
    from agentclinic.scoring.judges.against_labels import builtin_judge_warning
    from agentclinic.scoring.outcome import slip_lines

    run, summary = plan.settings.run, finished.summary
    played = f"{len(plan.cases)} of {plan.dataset}" + (f", {run.repeats} times each" if run.repeats > 1 else "")
    roles = ", ".join(f"{name} {getattr(run, f'{role}_llm')}" for role, name in ROLE_NAMES.items())
    if is_world(run.dataset):
        who = run.doctor_llm if run.doctor in ("plain", "uncertainty") else run.doctor
        roles = f"doctor {who}; patient, laboratory and judge are exact"
    table = [("scenarios", played), ("roles", roles)]
    if run.doctor != "plain":
        table.append(("doctor", run.doctor))
    if planner := plan.settings.planner:
        policy = f"{planner.policy}, planning starts from {planner.baseline} information"
        table.append(("test policy", policy))
    if plan.memory:
        table.append(("memory", _memory(plan, finished.summary)))
    biases = {name: value for name in ("doctor_bias", "patient_bias") if (value := getattr(run, name))}
    for name, bias in (biases | {name: bias_label(asked) for name, asked in plan.unsupported_bias.items()}).items():
        table.append((name, bias))
    if run.patient_traits:
        only_prompt = plan.roles.patient == "free" and not is_builtin_or_person(run.patient_llm)
        uncontrolled = ", only in the prompt (simulator free)" if only_prompt else ""
        table.append(("patient's traits", f"{traits_text(run.patient_traits)}{uncontrolled}"))
    table.append(("accuracy (strict)", summary.headline("95% interval")))
    if summary.lenient_differs:
        table.append(("accuracy (lenient)", as_percent(summary.accuracy_lenient, label="95% interval")))
    low, high = summary.if_missing_wrong, summary.if_missing_right
    if summary.missing:
        table.append((f"bounds with {summary.unknown}", f"{percent(low)} (all wrong) to {percent(high)} (all right)"))
    for name, count in summary.outcomes.items():
        table.append((_OUTCOMES.get(name, name), str(count)))
    if summary.deferred:
        table.append(("  deferred, among these", str(summary.deferred)))
    for fault, count in summary.faults.items():
        example = summary.fault_examples.get(fault)
        table.append((f"  {fault}", f"{count}, e.g. {' '.join(inert(example).split())}" if example else str(count)))
    if summary.mean_regret is not None:
        table.append(("regret per encounter", f"{summary.mean_regret:.1f} points; the best play has 0"))
        table.append(("utility per encounter", f"{number(summary.mean_utility, 1)} points"))
    if (summary.wasted_turns or 0) >= MANY_WASTED:
        why = "they name nothing on the lists, or what is known already; read a transcript"
        table.append(("wasted turns", f"{percent(summary.wasted_turns, 0)}: {why}"))
    if summary.mean_turns is not None:
        table.append(("turns per encounter", f"{summary.mean_turns:.1f}"))
    table.extend((name, counts) for name, _, counts in (slips.partition(": ") for slips in slip_lines(summary)))
    tokens = _tokens(summary)
    if tokens:
        table.append(("tokens", tokens))
        costs = {role: usd for role, usd in summary.cost_usd.items() if usd != 0}
        if costs:
            shown = [f"{_named(role)} {'unknown' if usd is None else f'${usd:.4f}'}" for role, usd in costs.items()]
            table.append(("cost", ", ".join(shown)))
    table.append(("time", f"{finished.seconds:.1f} s"))
    print_lines("", *text_table(table[0], table[1:]), "", f"Written to {finished.folder}")
    print_lines(*summary.unread_advice(quote(str(finished.folder))))
    warning = builtin_judge_warning(run.doctor_llm, run.moderator_llm)
    if warning and not is_world(run.dataset):
        print(warning)
    if run.doctor_llm == "builtin" and run.doctor == "plain":
        # A solvable world has its own patient, laboratory and judge.
        models = (
            f"--dataset {quote(run.dataset)} --doctor-llm MODEL"
            if is_world(run.dataset)
            else "--model MODEL --moderator-llm MODEL"
        )
        print(
            "The builtin doctor is a small Bayesian program, not a language model. To test your own model:\n"
            "  export OPENAI_API_KEY=...   (or OPENAI_BASE_URL=... for another server; docs/endpoints.md)\n"
            f"  agentclinic run {models}"
        )
    print("A research benchmark, not medical advice.")


def _named(role: str) -> str:
    return ROLE_NAMES.get(role, role)


def _tokens(summary: Summary) -> str:
    """Tokens by role; empty if no role used any."""
    used = {role: (usage.get("input_tokens"), usage.get("output_tokens")) for role, usage in summary.usage.items()}
    if all(pair == (0, 0) for pair in used.values()):
        return ""
    return ", ".join(
        f"{_named(role)} unknown"
        if sent is None or received is None
        else f"{_named(role)} {sent:,} in / {received:,} out"
        for role, (sent, received) in used.items()
    )
