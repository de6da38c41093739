"""Memory: what retrieval finds, what 100,000 experiences cost, and whether appending and keeping copies apart work.

    python benchmarks/memory.py retrieval    recall on the labelled situations, beside chance
    python benchmarks/memory.py retrieval --base-url URL --embedding NAME --picker NAME
    python benchmarks/memory.py scale        time and memory with 1,000, 10,000 and 100,000 made-up experiences
    python benchmarks/memory.py append       eight processes append and are killed at random
    python benchmarks/memory.py copies       how much the charts of different cases have in common

`copies` also reads the public data at `../shared/data`, if it is there. The figures are in benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import itertools
import json
import math
import random
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import cached_property
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from statistics import median
from typing import Any

import anyio
import numpy as np

from agentclinic.cases.model import Case, Door
from agentclinic.cases.registry import load_cases
from agentclinic.clinic.prompts import load_prompt
from agentclinic.config import Settings
from agentclinic.files import waited_lock
from agentclinic.jsonl import repair
from agentclinic.memory.experience import (
    NEAR_COPY,
    SAME_STORY,
    Experience,
    Lesson,
    Source,
    Step,
    dumped,
    fingerprint,
    overlap,
    source_of,
)
from agentclinic.memory.retrieval import (
    CANDIDATES,
    MOST_OFFERED,
    CaseMemory,
    Found,
    Index,
    Memory,
    Picker,
    situation,
    terms,
)
from agentclinic.memory.store import Known, append, load_store
from agentclinic.models.base import ModelError
from agentclinic.results.turn import Exchange
from agentclinic.runs.build import Models
from agentclinic.scoring.stats import proportion
from agentclinic.vocabulary.base import knowledge

LABELS = Path(__file__).parent / "labels"
DATA = Path(__file__).parents[2] / "shared" / "data" / "agentclinic"
SEED = 20261116


def lesson_of(experiences: Sequence[Experience], unit: str, sketch: str = "") -> Lesson:
    """A lesson with these experiences, from a case that no other lesson comes from."""
    source = Source(case=f"case-{unit}", fingerprint=sketch, diagnosis=f"diagnosis-{unit}", run="made up", unit=unit)
    return Lesson(source=source, model="benchmark", prompt="none", experiences=tuple(experiences))


def write_store(path: Path, lessons: Iterator[Lesson]) -> None:
    """Write a store as `append` would, without waiting for the disk after each line."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(
            json.dumps(dumped(lesson), ensure_ascii=False, separators=(",", ":")) + "\n" for lesson in lessons
        )


def patient_at(door: Door) -> Case:
    """A case of which only the door is known, which nothing is kept away from."""
    return Case("none", "none", 0, door, {}, {}, "none", ())


# ---- retrieval


@dataclass(frozen=True)
class Situation:
    """A labelled situation."""

    id: str
    door: Door
    exchanges: tuple[Exchange, ...]
    fits: frozenset[str]
    """Labels of the experiences that both readers marked."""


def labelled(name: str) -> list[dict[str, Any]]:
    """The rows of one of the label files."""
    return [json.loads(line) for line in (LABELS / f"memory_{name}.jsonl").read_text("utf-8").splitlines()]


def labelled_experiences() -> dict[str, Experience]:
    """The experiences by label."""
    return {
        row["id"]: Experience(observation=row["observation"], suggestion=row["suggestion"])
        for row in labelled("experiences")
    }


def labelled_situations() -> list[Situation]:
    """The situations with what fits them."""
    first, second = (
        {row["situation"]: frozenset(row["fits"]) for row in labelled(f"reader_{reader}")} for reader in "ab"
    )
    return [
        Situation(
            row["id"],
            Door(objective=row["objective"], demographics=row["demographics"]),
            tuple(Exchange(each["kind"], each["content"], each["reply"]) for each in row["exchanges"]),
            first[row["id"]] & second[row["id"]],
        )
        for row in labelled("situations")
    ]


class AllCandidates(Picker):
    """Picks everything it is shown: what a picking model can choose from."""

    def __init__(self) -> None:
        pass

    async def pick(self, situation: str, candidates: Sequence[Found]) -> list[Found]:
        """All candidates."""
        del situation
        return list(candidates)


@dataclass(frozen=True)
class Way:
    """One way of finding experiences, and what it offered for each situation (None if a model failed)."""

    name: str
    offered: Mapping[str, frozenset[str] | None]

    def hits(self, situations: Sequence[Situation]) -> int:
        """The situations for which something that fits was offered."""
        return sum(bool(each.fits & (self.offered[each.id] or frozenset())) for each in situations)


async def ways_of(given: argparse.Namespace, folder: Path) -> list[Way]:
    """Ask every way for every situation, as a run does."""
    labels = {experience.id: label for label, experience in labelled_experiences().items()}
    store = folder / "experiences.jsonl"
    write_store(store, (lesson_of([each], label) for label, each in labelled_experiences().items()))
    memory = Memory(load_store(store), "bm25")

    async def asked(name: str, index: Index | None, picker: Picker | None) -> Way:
        offered: dict[str, frozenset[str] | None] = {}
        for each in labelled_situations():
            recall = CaseMemory(memory, patient_at(each.door), index, picker).recall
            try:
                found = await recall(each.exchanges, len(each.exchanges) + 1)
                offered[each.id] = frozenset(labels[one.experience.id] for one in found)
            except ModelError as error:
                print(f"{name}: {each.id}: {error}")
                offered[each.id] = None
        return Way(name, offered)

    every = AllCandidates()
    ways = [await asked("BM25", None, None), await asked(f"BM25, first {CANDIDATES}", None, every)]
    if given.embedding or given.picker:
        settings = Settings.model_validate({"openai": {"base_url": given.base_url}})
        async with AsyncExitStack() as stack:
            models = await stack.enter_async_context(Models(settings))
            index = memory.by_meaning(models.get(given.embedding)) if given.embedding else None
            picker = Picker(models.get(given.picker), load_prompt("memory")) if given.picker else None
            if index:
                ways.append(await asked("embeddings", index, None))
                ways.append(await asked(f"embeddings, first {CANDIDATES}", index, every))
            if picker:
                ways.append(await asked("BM25 and picker", None, picker))
            if index and picker:
                ways.append(await asked("embeddings and picker", index, picker))
    return ways


def chance(fits: int, count: int, of: int) -> float:
    """The probability that at least one of the experiences that fit is among `count` drawn from `of`."""
    return 1 - math.comb(of - fits, count) / math.comb(of, count)


def retrieval(given: argparse.Namespace) -> None:
    """Print recall, and what is offered where nothing fits."""
    if (given.embedding or given.picker) and not given.base_url:
        raise SystemExit("--embedding and --picker need --base-url URL, an OpenAI-compatible server")
    situations = labelled_situations()
    fitting = [each for each in situations if each.fits]
    without = [each for each in situations if not each.fits]
    with tempfile.TemporaryDirectory() as folder:
        ways = anyio.run(ways_of, given, Path(folder))
    total = len(labelled_experiences())
    print(f"{total} experiences; {len(fitting)} situations with one that fits, {len(without)} with none\n")
    print("| | an experience that fits is offered | where nothing fits, offered on average | failed |")
    print("|---|---|---|---|")
    for way in ways:
        share = proportion(way.hits(fitting), len(fitting))
        idle = [len(way.offered[each.id] or ()) for each in without]
        failed = sum(offered is None for offered in way.offered.values())
        found = f"{share.count}/{share.of} = {share.value:.2f} ({share.low:.2f} - {share.high:.2f})"
        print(f"| {way.name} | {found} | {sum(idle) / len(idle):.2f} | {failed} |")
    for count in (MOST_OFFERED, CANDIDATES):
        expected = sum(chance(len(each.fits), count, total) for each in fitting) / len(fitting)
        print(f"| {count} drawn by chance (expected) | {expected:.3f} | {count:.2f} | 0 |")
    print(
        f"\nOnly a picker can offer nothing: BM25 and embeddings offer {MOST_OFFERED} whenever anything is similar at "
        "all. The intervals are Wilson's."
    )


# ---- scale


def made_up(count: int) -> Iterator[Lesson]:
    """Lessons with that many experiences, three each, in the words of the knowledge base."""
    draw = random.Random(SEED)
    findings, tests = list(knowledge().findings.values()), list(knowledge().tests.values())
    common = [sketch[at : at + 8] for sketch in map(fingerprint, demo_cases()) for at in range(0, len(sketch), 8)]

    def written() -> Experience:
        seen = [draw.choice([each.name, *each.terms, *each.lay]) for each in draw.sample(findings, 4)]
        who = f"{draw.randrange(1, 95)}-year-old {draw.choice(('man', 'woman'))}"
        observation = (
            f"{who} with {seen[0]}, {seen[1]} and {seen[2]}, since {draw.randrange(2, 99)} days; no {seen[3]}."
        )
        finding, test = draw.choice([each for each in findings if each.ask]), draw.choice(tests)
        if draw.random() < 0.5:
            suggestion = f"{finding.ask} It tells {seen[0]} from {draw.choice(findings).name}."
            return Experience(
                observation=observation,
                suggestion=suggestion,
                step=Step(kind="question", what=finding.ask or "", id=f"finding:{finding.id}"),
            )
        suggestion = f"Order {test.name}: it shows {finding.name} early, which {seen[1]} may hide."
        return Experience(
            observation=observation, suggestion=suggestion, step=Step(kind="test", what=test.name, id=f"test:{test.id}")
        )

    for number in range(math.ceil(count / 3)):
        experiences = [written() for _ in range(min(3, count - 3 * number))]
        # Runs of words that many charts share, and others of its own.
        hashes = {f"{draw.getrandbits(32):08x}" for _ in range(58)} | set(draw.sample(common, 6))
        yield lesson_of(experiences, str(number), "".join(sorted(hashes)))


def demo_cases() -> list[Case]:
    """The bundled demo cases."""
    return load_cases("OpenOSCE_Demo")


def conversation(draw: random.Random) -> tuple[Exchange, ...]:
    """Eight exchanges."""
    chosen = draw.sample([each for each in knowledge().findings.values() if each.ask], 8)
    return tuple(
        Exchange("question", each.ask or "", f"Yes, {draw.choice([*each.terms, *each.lay])}, for a while now.")
        for each in chosen
    )


def seconds(job: Callable[[], Any], repeats: int = 1) -> float:
    """CPU seconds of a job, the median of several."""
    taken = []
    for _ in range(repeats):
        began = time.process_time()
        job()
        taken.append(time.process_time() - began)
    return median(taken)


@dataclass
class Loaded:
    """A store that is loaded, indexed and asked, in this order."""

    path: Path

    @cached_property
    def memory(self) -> Memory:
        """The store, read from its file."""
        return Memory(load_store(self.path), "bm25")


def measured(path: Path) -> dict[str, float]:
    """What one size costs: seconds of CPU and peak megabytes, in a process of its own."""
    importlib.import_module("bm25s")
    cases = demo_cases()
    source_of(cases[0])  # everything that is loaded once
    loaded = Loaded(path)
    draw = random.Random(SEED)
    empty = _peak()
    costs = {"load the store": seconds(lambda: loaded.memory)}
    costs["build the index"] = seconds(lambda: loaded.memory.bm25)
    memory = loaded.memory
    costs["first allowed(case)"] = seconds(lambda: memory.allowed(cases[0]))
    costs["allowed(case)"] = seconds(lambda: memory.allowed(draw.choice(cases)), 21)
    case = CaseMemory(memory, cases[0], None)
    costs["a retrieval"] = seconds(lambda: anyio.run(case.recall, conversation(draw), 9), 21) - _nothing()
    costs["MB at most"] = _peak() - empty
    costs["find repetitions"] = seconds(lambda: Known(memory.experiences))
    if importlib.util.find_spec("rank_bm25"):
        texts = [terms(f"{each.observation}\n{each.suggestion}") for each in memory.experiences]
        other = importlib.import_module("rank_bm25").BM25Okapi(texts)
        door = cases[0].door
        costs["a retrieval, rank-bm25"] = seconds(
            lambda: np.argsort(-other.get_scores(terms(situation(door, conversation(draw)))))[:2], 5
        )
    return costs


def _nothing() -> float:
    """What starting an event loop costs, which is no part of a retrieval."""
    return seconds(lambda: anyio.run(anyio.lowlevel.checkpoint), 21)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def exponent(sizes: Sequence[int], costs: Sequence[float]) -> float:
    """The slope of log cost over log size, by least squares: 1 is linear growth."""
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(costs, 1e-9)), 1)[0])


def in_child(job: Callable[..., Any], *given: Any) -> Any:
    """Call a function in a new process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(job, *given).result()


def write_made_up(path: Path, count: int) -> None:
    """Write a made-up store."""
    write_store(path, made_up(count))


def scale(given: argparse.Namespace) -> None:
    """Measure every size and print the growth."""
    sizes: list[int] = given.sizes
    results: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            path = Path(folder) / f"{size}.jsonl"
            in_child(write_made_up, path, size)
            results.append(in_child(measured, path))
            results[-1]["MB in the file"] = path.stat().st_size / 2**20
            path.unlink()
    print(f"| | {' | '.join(f'{size:,}' for size in sizes)} | per experience | exponent |")
    print(f"|---|{'---|' * len(sizes)}---|---|")
    for job in results[0]:
        costs = [result[job] for result in results]
        growth = (costs[-1] / sizes[-1]) / (costs[0] / sizes[0]) if costs[0] > 0 else math.nan
        shown = " | ".join(f"{cost:.0f} MB" if job.startswith("MB") else _time(cost) for cost in costs)
        print(f"| {job} | {shown} | x {growth:.2f} | {exponent(sizes, costs):.2f} |")


def _time(taken: float) -> str:
    return f"{taken:.1f} s" if taken >= 1 else f"{1000 * taken:.1f} ms"


# ---- append


def keep_appending(store: Path, acknowledged: Path, name: str) -> None:
    """Append lessons until killed; write down each one when `append` has returned."""
    draw = random.Random(name)
    with acknowledged.open("ab", buffering=0) as file:
        for number in itertools.count():
            # Lines of 1 kB to 100 kB: long ones take long enough for another process to interfere.
            text = "x" * int(10 ** draw.uniform(2, 4.3))
            unit = f"{name}.{number}"
            written = [Experience(observation=f"{unit} {part} {text}", suggestion="Ask.") for part in range(5)]
            append(store, lesson_of(written, unit))
            file.write(f"{unit}\n".encode())


def appending(given: argparse.Namespace) -> None:
    """Start the processes, kill them at random, start others, and count the lines."""
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        store, place = Path(folder) / "experiences.jsonl", Path(folder) / "acknowledged"
        place.mkdir()
        began = time.monotonic()
        kills = killing(given.processes, given.appends, store, place)
        taken = time.monotonic() - began
        acknowledged = {unit for file in place.iterdir() for unit in file.read_text("utf-8").split()}
        found: Counter[str] = Counter()
        unreadable = 0
        *lines, rest = store.read_bytes().split(b"\n")
        for line in lines:
            try:
                found[Lesson.model_validate_json(line).source.unit] += 1
            except ValueError:
                unreadable += 1
        size = store.stat().st_size / 2**20
        print(f"{given.processes} processes, {kills} kills, {kills // _TORN} half lines, {taken:.0f} s, {size:.0f} MB")
        print(f"appended (acknowledged)  {len(acknowledged)}")
        print(f"found                    {len(found)}, of which {len(set(found) - acknowledged)} were not acknowledged")
        print(f"lost                     {len(acknowledged - set(found))}")
        print(f"found twice              {sum(count > 1 for count in found.values())}")
        print(f"unreadable lines         {unreadable}")
        print(f"incomplete last line     {len(rest)} bytes, which the next append removes")


def killing(processes: int, appends: int, store: Path, place: Path) -> int:
    """Run until so many appends are acknowledged; returns how many processes were killed on the way."""
    draw = random.Random(SEED)
    fork = get_context("fork")  # starts at once, so that most of the time is spent appending
    names = itertools.count()

    def start() -> BaseProcess:
        name = str(next(names))
        process = fork.Process(target=keep_appending, args=(store, place / name, name))
        process.start()
        return process

    running = [start() for _ in range(processes)]
    kills = 0
    while sum(_lines(file) for file in place.iterdir()) < appends:
        time.sleep(draw.uniform(0, 0.05))
        victim = draw.randrange(processes)
        running[victim].kill()
        running[victim].join()
        kills += 1
        if kills % _TORN == 0:
            _leave_half_a_line(store)
        running[victim] = start()
    for process in running:
        process.kill()
        process.join()
    return kills


_TORN = 5
"""After every fifth kill half a line is left behind: a crash in the middle of a write does that, and a signal alone
hardly ever, because the system takes a line of this length in one go."""


def _leave_half_a_line(store: Path) -> None:
    with store.open("ab", buffering=0) as file:
        waited_lock(file.fileno())
        repair(store)
        file.write(b'{"source":{"case":"half')


def _lines(file: Path) -> int:
    return file.read_bytes().count(b"\n")


# ---- copies


def all_cases() -> list[Case]:
    """OpenOSCE without its lockbox and, where they are, the public files; of copies in several files the first."""
    files = {
        "MedQA_Ext": DATA / "agentclinic_medqa_extended.jsonl",
        "MedQA": DATA / "agentclinic_medqa.jsonl",
        "NEJM_Ext": DATA / "agentclinic_nejm_extended.jsonl",
        "NEJM": DATA / "agentclinic_nejm.jsonl",
    }
    cases = load_cases("OpenOSCE")
    for name, path in files.items():
        if path.is_file():
            cases += load_cases(name, {name: str(path)})
        else:
            print(f"{path}: no such file; {name} is left out")
    return list({case.id: case for case in reversed(cases)}.values())[::-1]


@dataclass(frozen=True, order=True)
class Pair:
    """Two cases and the share of their charts that they have in common."""

    shared: float
    one: str
    other: str
    data: str
    kind: str
    """Twins, cases with the same diagnosis, or with different ones."""


def pairs_of(cases: Sequence[Case]) -> Iterator[Pair]:
    """Every pair of cases whose charts have anything in common."""
    sources = [source_of(case) for case in cases]
    for (case, source), (other, another) in itertools.combinations(zip(cases, sources, strict=True), 2):
        shared = overlap(source.fingerprint, another.fingerprint)
        if shared:
            names = (f"{case.dataset} {case.scenario_id}", f"{other.dataset} {other.scenario_id}")
            data = " and ".join(sorted({each.split("_")[0] for each in (case.dataset, other.dataset)}))
            twins = set(source.names) & set(another.names)
            kind = "twins" if twins else "same" if source.diagnosis == another.diagnosis else "different"
            yield Pair(shared, *names, data, kind)


def copies(given: argparse.Namespace) -> None:
    """Print the pairs that have most in common, by kind."""
    cases = all_cases()
    pairs = sorted(pairs_of(cases), reverse=True)
    print(f"{len(cases)} cases, {len(pairs)} pairs with anything in common")
    print(f"near copies: more than {NEAR_COPY}, or more than {SAME_STORY} with the same diagnosis\n")
    for data, kind in sorted({(pair.data, pair.kind) for pair in pairs}):
        chosen = [pair for pair in pairs if (pair.data, pair.kind) == (data, kind)]
        print(f"{data}, {kind if kind == 'twins' else f'{kind} diagnosis'}: {len(chosen)} pairs")
        for pair in chosen[: given.most]:
            print(f"  {pair.shared:.2f}  {pair.one} and {pair.other}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    found = commands.add_parser("retrieval", help="recall on the labelled situations")
    found.add_argument("--base-url", help="an OpenAI-compatible server")
    found.add_argument("--embedding", help="name of its embedding model")
    found.add_argument("--picker", help="name of its model that picks")
    found.set_defaults(job=retrieval)
    grown = commands.add_parser("scale", help="time and memory by number of experiences")
    grown.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    grown.set_defaults(job=scale)
    added = commands.add_parser("append", help="append from several processes that are killed")
    added.add_argument("--processes", type=int, default=8)
    added.add_argument("--appends", type=int, default=2_000)
    added.add_argument("--folder", help="where to write (default: the system's temporary folder)")
    added.set_defaults(job=appending)
    alike = commands.add_parser("copies", help="what charts have in common")
    alike.add_argument("--most", type=int, default=5, help="pairs to list of each kind")
    alike.set_defaults(job=copies)
    given = parser.parse_args(arguments)
    given.job(given)


if __name__ == "__main__":
    main()
