"""`agentclinic generate`: choose, make and check cases, and show the result."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import BaseModel

from agentclinic.cli import options as opt
from agentclinic.cli.format import counted, end_incomplete, finish, print_json, progress, show_estimate
from agentclinic.config import RunSettings
from agentclinic.files import expanded
from agentclinic.generate.settings import CommonSettings, MedqaSettings, MimicSettings, default_config, load
from agentclinic.scoring.format import as_percent, as_points, plural

if TYPE_CHECKING:
    from agentclinic.generate.make import Made, Work


def _generating(source: str, section: type[BaseModel], about: str) -> Callable[..., None]:
    """The command `generate SOURCE`, with the fields of its section as flags."""

    def command(
        *,
        config: Annotated[
            Path | None,
            typer.Option(
                "--config",
                "--gen-config",
                help="Settings for generating cases. [default: generate_cases/gen.config.json or gen.config.json]",
            ),
        ] = None,
        clinic_config: Annotated[
            Path | None,
            typer.Option(help="File that names `endpoints`. [default: agentclinic.config.json, if it exists]"),
        ] = None,
        retry_quarantined: Annotated[
            bool, typer.Option("--retry-quarantined", help="Also try the cases in quarantine again.")
        ] = False,
        dry_run: opt.DryRun = False,
        allow_host: opt.AllowHost = None,
        trust_address: opt.TrustAddress = None,
        max_cost: opt.MaxCost = None,
        token_limit: opt.TokenLimit = None,
        json: opt.Json = False,
        quiet: opt.Quiet = False,
        overrides: dict[str, Any],
    ) -> None:
        from agentclinic.generate.make import make
        from agentclinic.generate.run import check_writer, estimate_work, plan_work

        run = {"check": overrides.pop("check")} if "check" in overrides else {}
        common, chosen = load(config or default_config(), source, overrides)
        llm_config = expanded(common.llm_config) if common.llm_config else None
        settings = opt.read_settings(
            clinic_config,
            llm_config,
            run,
            allow_host=allow_host,
            trust_address=trust_address,
            token_limit=token_limit,
            max_cost=max_cost,
        )
        shown = progress(quiet=quiet)
        tell = (lambda _: None) if quiet else shown.say
        if dry_run:
            work = plan_work(common, chosen, settings, tell, dry_run=True)
            show_estimate(estimate_work(work), as_json=json)
            return
        finish(check_writer, common, chosen, settings, shown.say)
        work = plan_work(common, chosen, settings, tell)
        made = finish(make, work, shown, retry_quarantined=retry_quarantined)
        _show(work, made, as_json=json)

    command.__doc__ = (
        f"{about}If it stops early, the same command continues. The exit code is 3 if "
        "cases are missing; cases in quarantine are not missing."
    )
    check = RunSettings.model_fields["check"]
    return opt.with_fields({**CommonSettings.model_fields, **section.model_fields, "check": check})(command)


mimic_command = _generating(
    "mimic",
    MimicSettings,
    "Make cases from MIMIC-IV's tables.\n\nA model writes the patient's story; only with --story model is it told "
    "the diagnosis. The program fills in results and label and checks every case. ",
)
medqa_command = _generating("medqa", MedqaSettings, "Make cases from MedQA questions that ask for a diagnosis.\n\n")


def _show(work: Work, made: Made, *, as_json: bool) -> None:
    from agentclinic.generate.files import Files

    manifest = made.manifest
    counts = manifest["counts"]
    if as_json:
        print_json({**manifest, "output": work.output, "stopped": made.reason})
    else:
        print("\n".join(work.selection.lines))
        print(f"\n{counts['made']} of {counts['chosen']} cases made, {counts['quarantined']} in quarantine")
        for title, key in _TABLES.items():
            if manifest[key]:
                print(f"{title}:")
                for name, count in manifest[key].items():
                    print(f"{count:7}  {name}")
        if counts["without_symptoms"]:
            print(f"{plural(counts['without_symptoms'], 'patient')} without symptoms: {_UNKNOWN}")
        print(f"data class: {work.selection.data_class}")
        written = work.output.stat().st_size
        print(f"Written to {work.output}" if written else "No case was made.")
        if counts["quarantined"]:
            print(f"quarantine: {Files(work.output).quarantine}")
        if counts["made"]:
            path = quote(str(work.output))
            print(f"next: agentclinic data check {path}\n      agentclinic run --dataset {path}")
            if work.story == "model":
                model = quote(work.model)
                print(f"      agentclinic generate solvability {path} --doctor-llm {model} --moderator-llm {model}")
    if made.missing:
        failures = counted(manifest["failures"])
        why = "; ".join(part for part in (made.reason, f"the writer failed: {failures}" if failures else "") if part)
        end_incomplete(
            f"{plural(made.missing, 'case')} not made{f' ({why})' if why else ''}; the others are kept.\n"
            "Run the same command again to continue.",
            interrupted=made.interrupted,
        )


_UNKNOWN = (
    "none are on record, so these patients can report none; with --story model, a language model makes them up "
    "(docs/generate.md)"
)
_TABLES = {
    "by source of the history": "by_history_source",
    "by chapter": "by_chapter",
    "drafts rejected and written again, by reason": "rejected_drafts",
    "in quarantine, by reason": "quarantine_reasons",
}
"""The counts in the manifest that are shown, by their titles."""


@opt.with_settings(
    *("doctor_llm", "doctor_endpoint", *opt.JUDGE, "workers", *opt.ENGINE),
    *("num_scenarios", "output_dir", "check"),
    limits=False,
)
def solvability_command(
    file: Annotated[str, typer.Argument(help="Case file, or name of a data set.")],
    *,
    read: opt.Read,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Check that cases can be solved.

    Plays every case twice, with the whole chart (--doctor full_information) and with the door information alone
    (--doctor door_only). A case solved at the door gives something away; a case not solved with the whole chart lacks
    what the diagnosis needs.
    """
    from agentclinic.generate.checks import solvability

    settings = read(dataset=file)
    played = finish(solvability, settings, partial(progress, quiet=quiet))
    finished, gap = played.runs, played.gap
    if gap is None:
        doctor, stopped = list(finished.items())[-1]
        end_incomplete(
            f"{doctor}: {stopped.reason or 'not all cases were played'}; continue with:\n"
            f"  agentclinic resume {quote(str(stopped.folder))}",
            interrupted=stopped.interrupted,
        )
    shares = {name: done.summary.accuracy_strict for name, done in finished.items()}
    if json:
        rows = {"unsolved": played.unsolved, "at_the_door": played.at_the_door}
        print_json({**shares, "gap": gap, **rows, "runs": {name: done.folder for name, done in finished.items()}})
        return
    for name, share in shares.items():
        print(f"{name:17} {as_percent(share)}  {finished[name].folder}")
    print(f"{'the chart adds':17} {as_points(gap, label='95% interval')}")
    for what, found in (
        ("not solved with the whole chart", played.unsolved),
        ("solved at the door", played.at_the_door),
    ):
        if found:
            print(f"{what}: rows {', '.join(map(str, found))}")
    print(f"doctor {settings.run.doctor_llm}, judge {settings.run.moderator_llm}")
