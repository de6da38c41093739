"""The clinic with a real language model: doctors, patient and laboratory at an OpenAI-compatible endpoint.

    python benchmarks/real_model.py doctors --base-url URL --model NAME --out DIR [--doctors plain,policy] [--cases N]
    python benchmarks/real_model.py roles   --base-url URL --model NAME --out DIR
    python benchmarks/real_model.py tables  --out DIR

`doctors` plays encounters with every role at the model except the judge, which is the builtin one, so that a weak model
does not judge itself. `roles` asks the patient and the laboratory the labelled questions and requests (benchmarks/
labels; needs the public data at `../shared/data`). Both write to DIR and can be interrupted; `tables` prints what is
there. Give `--base-url` several times to spread the encounters over several servers. `--checkout DIR` plays with the
package in another folder, for a comparison with an earlier version.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import anyio

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import faithfulness as labelled
import numpy as np

from agentclinic.cases.registry import load_cases
from agentclinic.clinic.laboratory import Laboratory
from agentclinic.clinic.patient import Patient
from agentclinic.clinic.prompts import load_prompt
from agentclinic.config import Settings
from agentclinic.models.base import ModelError
from agentclinic.results.journal import read_records
from agentclinic.results.record import Record
from agentclinic.results.turn import Turn
from agentclinic.results.utterance import read_utterance
from agentclinic.runs.build import Models
from agentclinic.scoring.outcome import summarise
from agentclinic.scoring.stats import proportion

SEED = 20261115
DOCTORS = {
    "plain": [],
    "uncertainty": ["--doctor", "uncertainty"],
    "policy": ["--doctor-test-policy-enabled"],
    "inline": ["--doctor-test-policy-enabled", "--doctor-test-policy-mode", "inline"],
}
"""Flags of each arm."""
WAYS = ("builtin", "free", "grounded alone", "grounded", "voiced")
"""Ways of playing patient and laboratory; `grounded alone` gets no suggestions from our matcher."""


# ---- encounters


def play(given: argparse.Namespace) -> None:
    """Play the arms one after the other, each spread over the servers."""
    folder = Path(given.out).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    rows = _rows(given)
    for arm in given.doctors.split(","):
        place = folder / f"{arm}{given.label}"
        if place.exists():
            print(f"{place.name}: already there, left alone", flush=True)
            continue
        shards = [rows[k :: len(given.base_url)] for k in range(len(given.base_url))]
        began = time.monotonic()
        processes = [
            _start(given, arm, place / f"server{k}", url, shard)
            for k, (url, shard) in enumerate(zip(given.base_url, shards, strict=True))
            if shard
        ]
        _wait(processes, given.seconds)
        print(
            f"{place.name}: {len(list(_records(place)))} of {len(rows)} in {time.monotonic() - began:.0f} s", flush=True
        )


def _rows(given: argparse.Namespace) -> list[int]:
    """The rows to play: all that are open, or a seeded sample of them."""
    rows = [case.scenario_id for case in load_cases(given.dataset)]
    return sorted(random.Random(SEED).sample(rows, given.cases)) if given.cases and given.cases < len(rows) else rows


def _start(given: argparse.Namespace, arm: str, place: Path, url: str, rows: Sequence[int]) -> subprocess.Popen[bytes]:
    place.mkdir(parents=True)
    runtime = {"llm_api": "chat", "tries": 2, "request_timeout": 300}
    config = {"openai": {"base_url": url}, "llm": {"responses": {"temperature": 0}, "runtime": runtime}}
    (place / "llm.config.json").write_text(json.dumps(config), encoding="utf-8")
    roles = [word for role in ("doctor", "patient", "measurement") for word in (f"--{role}_llm", given.model)]
    command = [
        *(sys.executable, "-m", "agentclinic", "run", "--quiet", "--dataset", given.dataset),
        *("--scenarios", ",".join(map(str, rows)), "--total-inferences", str(given.turns)),
        *("--workers", str(given.workers), "--output-dir", str(place), *roles, *DOCTORS[arm], *given.flag),
    ]
    path = os.pathsep.join([str(given.checkout), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "NO_PROXY": "127.0.0.1,localhost"}
    with (place / "log.txt").open("wb") as log:
        return subprocess.Popen(command, cwd=place, env=environment, stdout=log, stderr=log, start_new_session=True)


def _wait(processes: Sequence[subprocess.Popen[bytes]], seconds: float | None) -> None:
    """Wait for all; when time is up, kill them: a run survives that, and what was played is kept."""
    until = time.monotonic() + seconds if seconds else None
    for process in processes:
        try:
            process.wait(None if until is None else max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _records(place: Path) -> Iterator[Record]:
    for file in sorted(place.glob("**/scenarios.jsonl")):
        yield from read_records(file)


# ---- patient and laboratory


@dataclass(frozen=True)
class Asked:
    """What one way of playing a role told for one labelled row."""

    row: int
    chosen: list[str] | None
    """Paths by provenance; None for free text."""
    as_equivalent: list[str]
    text: str
    by_code: bool
    slips: list[str]
    failed: str | None = None


def ask(given: argparse.Namespace) -> None:
    """Ask every labelled row of every way that needs a model; what is there already is kept."""
    folder = Path(given.out).absolute() / "roles"
    folder.mkdir(parents=True, exist_ok=True)
    cases = load_cases("MedQA_Ext", {"MedQA_Ext": str(_public())})
    for task in labelled.TASKS:
        rows = labelled.items(task, given.rows, cases)
        for way in WAYS[1:]:
            if task.name == "laboratory" and way == "voiced":
                continue  # asks no model: it is the builtin laboratory
            place = folder / f"{task.name}.{given.rows}.{way.replace(' ', '_')}.jsonl"
            if place.exists():
                continue
            began = time.monotonic()
            asked = anyio.run(_ask_all, given, task.name, way, rows)
            place.write_text("".join(json.dumps(vars(one)) + "\n" for one in asked), encoding="utf-8")
            print(f"{place.name}: {len(asked)} rows in {time.monotonic() - began:.0f} s", flush=True)


def _public() -> Path:
    return labelled.DATA / "agentclinic" / "agentclinic_medqa_extended.jsonl"


async def _ask_all(given: argparse.Namespace, role: str, way: str, rows: Sequence[labelled.Item]) -> list[Asked]:
    asked: list[Asked] = []
    queue = list(rows)[::-1]

    async def work(url: str) -> None:
        settings = Settings.model_validate(
            {
                "run": {"workers": given.workers},
                "openai": {"base_url": url},
                "llm": {
                    "responses": {"temperature": 0},
                    "runtime": {"llm_api": "chat", "tries": 2, "request_timeout": 300},
                },
            }
        )
        async with Models(settings) as models, anyio.create_task_group() as group:

            async def one_by_one() -> None:
                while queue:
                    asked.append(await _ask_one(models, given.model, role, way, queue.pop()))

            for _ in range(given.workers):
                group.start_soon(one_by_one)

    async with anyio.create_task_group() as servers:
        for url in given.base_url:
            servers.start_soon(work, url)
    return sorted(asked, key=lambda one: one.row)


async def _ask_one(models: Models, name: str, role: str, way: str, item: labelled.Item) -> Asked:
    simulator: Any = way.split()[0]
    more = {"simulator": simulator, "dialogue": "chat", "suggestions": way != "grounded alone"}
    model = models.get(name)
    try:
        if role == "patient":
            turn = await Patient(item.case, model, load_prompt("patient"), **more).answer(item.said)
        else:
            laboratory = Laboratory(item.case, model, load_prompt("measurement"), **more)
            turn = await laboratory.report(item.said, f"REQUEST TEST: {item.said}")
    except ModelError as error:
        return Asked(item.row, [], [], "", False, [], error.kind)
    return _asked(item.row, turn)


def _asked(row: int, turn: Turn) -> Asked:
    told = [path for one in turn.disclosures for path in one.paths]
    equivalent = [path for one in turn.disclosures if one.provenance == "chart_equivalent" for path in one.paths]
    by_code = any(note.startswith(("worded by code", "chosen by the matcher")) for note in turn.notes)
    return Asked(row, told if turn.details else None, equivalent, turn.text, by_code, list(turn.slips))


# ---- tables


def tables(given: argparse.Namespace) -> None:
    """Print everything that the folder holds."""
    folder = Path(given.out)
    arms = [place for place in sorted(folder.iterdir()) if place.is_dir() and place.name != "roles"]
    print("\n".join(_outcome_table(arms)), end="\n\n")
    print("\n".join(_cost_table(arms)), end="\n\n")
    print("\n".join(_speech_table(arms)), end="\n\n")
    if (folder / "roles").is_dir():
        print("\n".join(_role_tables(folder / "roles")))


def _outcome_table(arms: Sequence[Path]) -> Iterator[str]:
    yield "| arm | n | ended with a diagnosis | right (95 %) | slips per 100 utterances | turn of commitment |"
    yield "|---|---|---|---|---|---|"
    for place in arms:
        records = list(_records(place))
        if not records:
            continue
        ended = [record for record in records if record.status in ("diagnosed", "judge_failed")]
        right = proportion(sum(bool(record.correct) for record in records), len(records))
        slips, said = _slips(records)
        kinds = ", ".join(f"{kind} {100 * count / said:.1f}" for kind, count in slips.most_common())
        turns = [record.num_turns or 0 for record in ended]
        when = f"median {median(turns):g}, {sum(t == 1 for t in turns)} in turn 1" if turns else "none"
        yield (
            f"| {place.name} | {len(records)} | {len(ended)} ({len(ended) / len(records):.0%}) "
            f"| {sum(bool(r.correct) for r in records)} ({right.low:.1%} to {right.high:.1%}) "
            f"| {100 * sum(slips.values()) / said:.1f}: {kinds or 'none'} | {when} |"
        )


def _slips(records: Iterable[Record]) -> tuple[Counter[str], int]:
    """Slips of doctors by kind, read again from the raw words, so that every version is read alike."""
    found: Counter[str] = Counter()
    said = 0
    for record in records:
        earlier: list[str] = []
        for turn in record.transcript or ():
            if turn.role == "doctor":
                found.update(set(read_utterance(turn.raw or turn.text, earlier).slips))
                earlier.append(turn.text)
                said += 1
    return found, max(said, 1)


def _cost_table(arms: Sequence[Path]) -> Iterator[str]:
    yield "| arm | doctor's requests a turn | all requests a turn | tokens in a turn | tokens out a turn |"
    yield "|---|---|---|---|---|"
    for place in arms:
        records = list(_records(place))
        turns = sum(record.num_turns or 0 for record in records)
        if not turns:
            continue
        # Turn by turn: the sum of a record is unknown if a single request was not answered.
        used = [(turn.role, turn.usage) for record in records for turn in record.transcript or () if turn.usage]
        doctor = sum(usage.requests for role, usage in used if role in ("doctor", "planner"))
        every = sum(usage.requests for _, usage in used)
        sent = sum(usage.input_tokens or 0 for _, usage in used)
        received = sum(usage.output_tokens or 0 for _, usage in used)
        yield (
            f"| {place.name} | {doctor / turns:.2f} | {every / turns:.2f} | {sent / turns:.0f} "
            f"| {received / turns:.0f} |"
        )


def _speech_table(arms: Sequence[Path]) -> Iterator[str]:
    yield "| arm | doctor's utterances | ask nothing | patient's replies | worded by code | replies with a slip |"
    yield "|---|---|---|---|---|---|"
    for place in arms:
        outcome = summarise(_records(place))
        slips = ", ".join(f"{kind} {count}" for kind, count in outcome.slips.get("patient", {}).items())
        replies = outcome.utterances.get("patient", 0)
        said = [turn for record in _records(place) for turn in record.transcript or () if turn.role == "doctor"]
        asked = [turn.text for turn in said if turn.action is not None and turn.action.kind == "question"]
        nothing = sum("?" not in text for text in asked)
        code = outcome.by_code.get("patient", 0)
        yield f"| {place.name} | {len(said)} | {nothing} | {replies} | {code} | {slips or 'none'} |"


def _role_tables(folder: Path) -> Iterator[str]:
    cases = load_cases("MedQA_Ext", {"MedQA_Ext": str(_public())})
    for task in labelled.TASKS:
        for part in labelled.PARTS:
            found = {way: folder / f"{task.name}.{part}.{way.replace(' ', '_')}.jsonl" for way in WAYS}
            if not any(place.exists() for place in found.values()):
                continue
            rows = labelled.items(task, part, cases)
            yield f"{task.name}, {part}: {len(rows)} rows, against reader a"
            yield ""
            yield "| way | precision | recall | F1 | in the words: precision | recall | by code | slips |"
            yield "|---|---|---|---|---|---|---|---|"
            ours = [labelled.told_by_ours(task.ours(item)) for item in rows]
            yield _role_line("builtin", rows, ours, None, [])
            for way, place in found.items():
                if place.exists():
                    lines = place.read_text(encoding="utf-8").splitlines()
                    asked = [Asked(**json.loads(line)) for line in lines]
                    chosen = None
                    if asked and asked[0].chosen is not None:
                        told = [(frozenset(one.chosen or ()), frozenset(one.as_equivalent)) for one in asked]
                        chosen = [labelled.Told(*pair) for pair in told]
                    words = [labelled.told_by_recorded(i, one.text) for i, one in zip(rows, asked, strict=True)]
                    yield _role_line(way, rows, chosen, words, asked)
            yield ""


def _role_line(
    way: str,
    rows: Sequence[labelled.Item],
    chosen: Sequence[labelled.Told] | None,
    words: Sequence[labelled.Told] | None,
    asked: Sequence[Asked],
) -> str:
    by_choice = _figures(rows, chosen, provenance=True) if chosen is not None else ["", "", ""]
    by_words = _figures(rows, words, provenance=False)[:2] if words is not None else ["", ""]
    code = f"{sum(one.by_code for one in asked)}" if asked else ""
    slips = Counter(kind for one in asked for kind in set(one.slips))
    failed = sum(one.failed is not None for one in asked)
    named = ", ".join(f"{kind} {count}" for kind, count in slips.most_common()) + (
        f", failed {failed}" if failed else ""
    )
    return f"| {way} | {' | '.join([*by_choice, *by_words, code, named])} |"


def _figures(rows: Sequence[labelled.Item], told: Sequence[labelled.Told], *, provenance: bool) -> list[str]:
    counts = np.array(
        [labelled.hits(t, item.readers[0], provenance=provenance) for item, t in zip(rows, told, strict=True)],
        dtype=np.float64,
    )
    return [labelled.interval(counts, figure) for figure in (labelled.precision, labelled.recall, labelled.f1)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Play, ask or print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("doctors", "roles", "tables"))
    parser.add_argument("--out", required=True, help="folder for runs and replies")
    parser.add_argument("--base-url", action="append", default=[], help="address of a server; repeatable")
    parser.add_argument("--model", default="local", help="name of the model there")
    parser.add_argument("--dataset", default="OpenOSCE", help="name or path of the cases; default: OpenOSCE")
    parser.add_argument("--cases", type=int, help="play a seeded sample of this size; default: all open cases")
    parser.add_argument("--doctors", default="plain", help=f"arms, from {', '.join(DOCTORS)}; default: plain")
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--workers", type=int, default=4, help="encounters at once, per server")
    parser.add_argument("--seconds", type=float, help="most seconds per arm; what was played by then is kept")
    parser.add_argument("--label", default="", help="added to the names of the arms")
    parser.add_argument("--flag", action="append", default=[], help="a further flag of `agentclinic run`; repeatable")
    parser.add_argument("--checkout", default=ROOT, type=Path, help="folder with the package to play with")
    parser.add_argument("--rows", choices=labelled.PARTS, default="test", help="which labelled rows")
    given = parser.parse_args(arguments)
    if given.what != "tables" and not given.base_url:
        parser.error("name a server with --base-url, e.g. http://127.0.0.1:8080/v1")
    {"doctors": play, "roles": ask, "tables": tables}[given.what](given)


if __name__ == "__main__":
    main()
