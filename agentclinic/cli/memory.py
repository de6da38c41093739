"""`agentclinic memory`: look at files of experiences, check, merge and import them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentclinic.cli import options as opt
from agentclinic.cli.format import clipped, print_json
from agentclinic.errors import ConfigError, InputError
from agentclinic.report.tables import plural

if TYPE_CHECKING:
    from agentclinic.cases.model import Case
    from agentclinic.memory.experience import Experience, Lesson

StoreArgument = Annotated[
    Path, typer.Argument(help="File of experiences, made by `agentclinic learn` or `memory import`.")
]


@opt.with_output
def list_command(store: StoreArgument, json: opt.Json = False) -> None:
    """List the experiences in a file."""
    every = _experiences(store)
    if json:
        print_json([_dumped(lesson, experience) for lesson, experience in every])
        return
    for _, experience in every:
        print(f"{experience.id}  {clipped(experience.observation, 70)} -> {clipped(experience.suggestion, 90)}")
    print(f"{plural(len(every), 'experience')}; `agentclinic memory show {shlex.quote(str(store))} ID` shows one")


@opt.with_output
def show_command(
    store: StoreArgument,
    experience: Annotated[str, typer.Argument(help="Id of an experience, or the start of it.", metavar="ID")],
    json: opt.Json = False,
) -> None:
    """Show one experience, and where it comes from."""
    found = [(lesson, each) for lesson, each in _experiences(store) if each.id.startswith(experience)]
    if not found:
        raise InputError(
            f"{store}: no experience has the id {experience}; `agentclinic memory list {store}` lists them"
        )
    if len({each.id for _, each in found}) > 1:
        raise InputError(f"{store}: several experiences begin with {experience}; write more of the id")
    lesson, chosen = found[0]
    if json:
        print_json(_dumped(lesson, chosen))
        return
    step = chosen.step
    source = lesson.source
    print(f"{chosen.id}\n")
    print(f"observation  {chosen.observation}")
    print(f"suggestion   {chosen.suggestion}")
    if step:
        print(f"step         {step.kind}: {step.what}{f' ({step.id})' if step.id else ''}")
    outcome = "right" if lesson.right else "failed"
    print(f"from         run {source.run}, unit {source.unit} (case {source.case}, {outcome})")
    print(f"written by   {lesson.model}, prompt {lesson.prompt}")
    print(f"split        {source.split or 'none'}")


@opt.with_output
def check_command(
    store: StoreArgument,
    *,
    split: Annotated[
        Path | None, typer.Option(help="Split that the experiences should respect.", metavar="FILE")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="Data set on which they will be tested: says what may be shown on its cases.")
    ] = None,
    config: opt.Config = None,
    json: opt.Json = False,
) -> None:
    """Check a file of experiences.

    Checks its form and limits, repetitions, its split, and what may be shown on a data set. The exit code is 2 if the
    file cannot be used.
    """
    from agentclinic.cases.registry import load_cases
    from agentclinic.memory.retrieval import Memory
    from agentclinic.memory.split import read_split
    from agentclinic.memory.store import Known, load_store, read_lessons

    loaded = load_store(store)
    lessons = list(read_lessons(store))
    written = [each for lesson in lessons for each in lesson.experiences]
    known = Known()
    new = sum(known.add(each) for each in written)
    found: dict[str, Any] = {
        "path": str(store),
        "lessons": len(lessons),
        "experiences": len(written),
        "repetitions": len(written) - new,
        "with_step": sum(bool(each.step and each.step.id) for each in written),
        "data_class": loaded.data_class.value,
        "splits": sorted(each or "none" for each in loaded.splits),
    }
    if split:
        made = read_split(split)
        outside = sorted({s.case for s in loaded.every_source if made.part_of(s.case) != "train"})
        if outside or loaded.splits != {made.checksum}:
            what = (
                f"{len(outside)} sources are not in its train part" if outside else "made with another split, or none"
            )
            raise ConfigError(f"{store}: does not respect {split}: {what}; learn again with --split {split}")
    if dataset:
        memory = Memory(loaded, "bm25")
        cases = load_cases(dataset, opt.dataset_paths(config), lockbox=True)
        found["cases"] = len(cases)
        found["cases_kept_apart"] = sum(not memory.allowed(case).all() for case in cases)
    if json:
        print_json(found)
        return
    print("{} in {}, {}".format(*(plural(found[f"{one}s"], one) for one in ("experience", "lesson", "repetition"))))
    print(f"with a step that the builtin doctor can follow: {found['with_step']}")
    print(f"data class {found['data_class']}; split {', '.join(found['splits'])}")
    if dataset:
        print(
            f"cases in {dataset} that are the source of an experience, its twin or a near copy, and are not shown it: "
            f"{found['cases_kept_apart']} of {found['cases']}"
        )
    print("The file can be used.")


def merge_command(
    stores: Annotated[list[Path], typer.Argument(help="Files of experiences.", metavar="FILE...")],
    output: Annotated[Path, opt.output("--output", "-o", help="File to write; it must not exist yet.")],
    json: opt.Json = False,
) -> None:
    """Merge files of experiences, without repetitions."""
    from agentclinic.memory.store import read_lessons

    lessons, total, dropped = _write_new(output, [lesson for store in stores for lesson in read_lessons(store)])
    if json:
        print_json({"path": str(output), "lessons": lessons, "experiences": total, "dropped": dropped})
    else:
        print(f"{_counted(lessons, total, dropped)}; written to {output}")


def import_command(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Files of experiences: a JSON list, an object by case or id, or JSON Lines; and files that say which "
            "case the ids belong to.",
            metavar="FILE...",
        ),
    ],
    output: Annotated[Path, opt.output("--output", "-o", help="File to write; it must not exist yet.")],
    *,
    dataset: Annotated[
        str | None, typer.Option(help="Data set of the cases they come from, if their ids do not name it.")
    ] = None,
    config: opt.Config = None,
    json: opt.Json = False,
) -> None:
    """Import experiences that other programs wrote.

    A case such as MedQA_Ext_7 (data set and row) is looked up, so that its experiences are not shown on it. If a case
    is not found, they may be, and the command says so.
    """
    from agentclinic.cases.registry import class_by_name, default_class
    from agentclinic.memory.foreign import as_lessons, read_entries
    from agentclinic.privacy import strictest

    lessons, entries = read_entries(files)
    find = _finder(opt.dataset_paths(config), dataset)
    named = [dataset or "", *(entry.case for _, entry in entries)]
    least = strictest((*map(class_by_name, named), *(default_class("", file) for file in files)))
    lessons += as_lessons(entries, find, least)
    count, total, dropped = _write_new(output, lessons)
    unknown = sum(len(lesson.experiences) for lesson in lessons if not lesson.source.fingerprint)
    shortened = sum(entry.shortened for _, entry in entries)
    found = {"path": str(output), "lessons": count, "experiences": total, "dropped": dropped}
    if json:
        print_json({**found, "shortened": shortened, "case_unknown": unknown})
        return
    print(f"{_counted(count, total, dropped)}, {shortened} shortened; written to {output}")
    if unknown:
        print(
            f"The case of {plural(unknown, 'experience')} was not found, so nothing keeps a run from showing them on "
            "that case. If the ids do not name a data set, give it with --dataset; its file must be where `agentclinic "
            "data list` expects it."
        )


def _finder(paths: Mapping[str, str], dataset: str | None) -> Callable[[str], Case | None]:
    """Finds a case by data set and row (MedQA_Ext_7), or by its name or row in the given data set."""
    from agentclinic.cases.registry import load_cases
    from agentclinic.errors import AgentClinicError

    @cache
    def cases(name: str) -> list[Case]:
        try:
            return load_cases(name, paths, lockbox=True)
        except AgentClinicError:
            if name == dataset:
                raise
            return []

    def find(name: str) -> Case | None:
        place, _, row = name.rpartition("_")
        for source in filter(None, (place, dataset)):
            known = cases(source)
            if row.isdecimal() and int(row) < len(known) and place in ("", source):
                return known[int(row)]
            if named := next((case for case in known if case.name == name), None):
                return named
        return None

    return find


def _write_new(output: Path, every: Sequence[Lesson]) -> tuple[int, int, int]:
    """Write lessons to a new file without repetitions; the numbers of lessons, experiences and repetitions."""
    from agentclinic.memory.store import Known, append

    if output.exists():
        raise InputError(f"{output} exists; name a new file")
    known, seen, dropped = Known(), set[tuple[str, str, str]](), 0
    for lesson in every:
        kept = [] if lesson.key in seen else [each for each in lesson.experiences if known.add(each)]
        dropped += len(lesson.experiences) - len(kept)
        if lesson.key not in seen:
            append(output, lesson.model_copy(update={"experiences": tuple(kept)}))
        seen.add(lesson.key)
    return len(seen), sum(len(lesson.experiences) for lesson in every) - dropped, dropped


def _counted(lessons: int, experiences: int, dropped: int) -> str:
    left = f"{plural(experiences, 'experience')} in {plural(lessons, 'lesson')}"
    return f"{left}, {plural(dropped, 'repetition')} dropped"


def _experiences(store: Path) -> list[tuple[Lesson, Experience]]:
    if not store.exists():
        raise InputError(f"{store}: does not exist; `agentclinic learn RUN -o {store}` makes it")
    from agentclinic.memory.store import read_lessons

    return [(lesson, each) for lesson in read_lessons(store, limits=False) for each in lesson.experiences]


def _dumped(lesson: Lesson, experience: Experience) -> dict[str, Any]:
    source = lesson.source.model_dump(mode="json", exclude={"fingerprint"})
    return {**experience.model_dump(mode="json"), "model": lesson.model, "prompt": lesson.prompt, "source": source}
