"""One thing is damaged in a random file of a real run, and the run is then shown as the commands show it.

Mostly one bit is flipped; sometimes a byte is replaced, the file is cut, or two of its lines are swapped. Half of the
tries choose among the files, the others among all bytes of the run. The list of runs, the scores by two judges and
corrected by labels, sessions, card, report and viewer must show what they showed before, or say that something is
wrong. Labels and judgements are not cut after a whole line: that is an earlier state of the file, not damage.
"""

from __future__ import annotations

import json
import random
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

import anyio
from memory_support import store_of

from agentclinic import privacy
from agentclinic.config import Settings
from agentclinic.errors import AgentClinicError
from agentclinic.jsonl import JsonLines
from agentclinic.report.card import card
from agentclinic.report.files import gather, render
from agentclinic.report.runs import list_runs
from agentclinic.results.run_data import load_run
from agentclinic.runs.execute import execute
from agentclinic.runs.plan import make_plan
from agentclinic.runs.progress import Progress
from agentclinic.runs.regrade import regrade
from agentclinic.scoring.score import score
from agentclinic.scoring.sessions import load_sessions, summarise_sessions
from agentclinic.viewer.data import Library

TRIES = 2000
NOTICED = (
    *("cannot be shown", "cannot be read", "unreadable", "incomplete", "not finished", "says otherwise"),
    *("does not hold", "not in the run's folder", "missing, it could be"),
)
"""Words that were not there before, with which something is shown that was damaged."""
LONG = 600.0


def attack(tries: int, seed: int, folder: Path) -> Iterator[str | None]:
    rng = random.Random(seed)
    run = real_run(folder)
    before = {name: shown(run, how) for name, how in READERS.items()}
    files = sorted(path for path in run.rglob("*") if path.is_file() and path.stat().st_size)
    sizes = [path.stat().st_size for path in files]
    for _ in range(tries):
        path = rng.choice(files) if rng.random() < 0.5 else rng.choices(files, sizes)[0]
        content = path.read_bytes()
        how, changed = damaged(content, rng, path)
        path.write_bytes(changed)
        try:
            said = {name: difference(run, read, before[name]) for name, read in READERS.items()}
        finally:
            path.write_bytes(content)
        fell = "; ".join(f"{name} {what}" for name, what in said.items() if what)
        yield f"{path.relative_to(run)}: {how}: {fell}" if fell else None


def damaged(content: bytes, rng: random.Random, path: Path) -> tuple[str, bytes]:
    """What was done, and the content after it."""
    kind = rng.choices(("bit", "byte", "cut", "swap"), (85, 8, 4, 3))[0]
    at, lines = rng.randrange(len(content)), content.splitlines(keepends=True)
    if kind == "swap" and len(lines) > 1:
        one, other = rng.sample(range(len(lines)), 2)
        lines[one], lines[other] = lines[other], lines[one]
        return f"lines {one + 1} and {other + 1} swapped", b"".join(lines)
    if kind == "cut":
        whole = path.parent.name in ("labels", "judgements") and content[:at].endswith(b"\n")
        return f"cut after {at - whole} bytes", content[: at - whole]
    new = rng.randrange(256) if kind == "byte" else content[at] ^ 1 << rng.randrange(8)
    return f"byte {at} is {new:#04x}, was {content[at]:#04x}", content[:at] + bytes([new]) + content[at + 1 :]


def difference(run: Path, how: Callable[[Path], str], before: str) -> str | None:
    """What is wrong with what is shown now; None if it is the same, or if it says that something is wrong."""
    try:
        now = shown(run, how)
    except (AgentClinicError, Warning):
        return None
    except Exception as error:  # noqa: BLE001 - a traceback is what is looked for
        return f"ended with {traceback.format_exception_only(error)[-1].strip()[:200]}"
    if now == before or any(now.count(word) > before.count(word) for word in NOTICED):
        return None
    at = next((n for n, (a, b) in enumerate(zip(now, before, strict=False)) if a != b), min(len(now), len(before)))
    return f"shows {now[max(0, at - 60) : at + 30]!r} instead of {before[max(0, at - 60) : at + 30]!r}"


def shown(run: Path, how: Callable[[Path], str]) -> str:
    """What a command shows; its warnings are errors here, because they are said."""
    privacy.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return how(run)


def real_run(folder: Path) -> Path:
    """A run with repeats, sessions and memory, judged again and labeled."""
    memory = store_of(folder / "experiences.jsonl")
    settings = Settings.model_validate(
        {
            "run": {
                "dataset": "OpenOSCE_Demo",
                "num_scenarios": 2,
                "repeats": 2,
                "total_inferences": 5,
                "doctor": "uncertainty",
                "memory": str(memory),
                "output_dir": str(folder / "runs"),
            }
        }
    )
    run = anyio.run(execute, make_plan(settings), Progress()).folder
    anyio.run(regrade, run, settings, "second")
    (run / "labels").mkdir()
    with JsonLines(run / "labels" / "ada.jsonl", journal=True) as labels:
        for number, record in enumerate(load_run(run).records()):
            given = {"case_hash": record.case_hash, "repeat": record.repeat, "diagnosis": record.diagnosis_text}
            labels.append({"scenario_id": record.scenario_id, "correct": number % 2 == 0, "labeler": "ada", **given})
    return run


def _scores(run: Path) -> str:
    """By the second judge, corrected by labels; the report has the score by the first."""
    return score(load_run(run, "second"), corrected=True).model_dump_json(indent=1)


def _report(run: Path) -> str:
    collected = gather([run], None, 0)
    return render(collected, "json") + render(collected, "csv")


def _viewer(run: Path) -> str:
    library = Library(run)
    listed, rows = library.runs(LONG), library.rows(run.name, 0, None)
    index = library.index(run.name)
    encounters = [index.encounter(str(row[0])) for row in sorted(rows["rows"])]
    data = [listed["runs"], rows["run"], sorted(rows["rows"]), encounters]
    return json.dumps(data, ensure_ascii=False, indent=1)


def _runs(run: Path) -> str:
    return "\n".join(listed.model_dump_json(indent=1) for listed in list_runs(run))


def _sessions(run: Path) -> str:
    found = load_sessions(run)
    texts = [one.session.model_dump_json(indent=1) for one in found.kept]
    return "\n".join([*texts, *(f"cannot be read: {each}" for each in found.damaged), str(summarise_sessions(found))])


def _card(run: Path) -> str:
    """The card without its hashes of files, which differ for every difference."""
    return "\n".join(line for line in card(run).splitlines() if "jsonl |" not in line and "json |" not in line)


READERS: dict[str, Callable[[Path], str]] = {
    "runs": _runs,
    "score": _scores,
    "report": _report,
    "viewer": _viewer,
    "sessions": _sessions,
    "card": _card,
}
