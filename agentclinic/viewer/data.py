"""What the viewer shows of runs on disk: lists that grow while they are read, and single encounters on request."""

from __future__ import annotations

import codecs
import json
import os
import re
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

from agentclinic import privacy
from agentclinic.errors import AgentClinicError, InputError
from agentclinic.files import is_locked
from agentclinic.jsonl import inert
from agentclinic.report.comparison import compared
from agentclinic.report.encounter_data import RunFolder, encounter_data
from agentclinic.report.encounters import wrong_as
from agentclinic.report.parts import OUTCOMES
from agentclinic.report.runs import ListedRun, describe_run, run_places
from agentclinic.report.tables import line
from agentclinic.results.journal import Reading, parse_record
from agentclinic.results.labels import FOLDER as LABELS
from agentclinic.results.labels import Decisions
from agentclinic.results.record import Record, Verdict
from agentclinic.results.run_data import diagnosis_of, load_run
from agentclinic.results.run_folder import CONFIG, RECORDS, SUMMARY
from agentclinic.runs.budget import money
from agentclinic.scoring.clusters import annotation, case_key
from agentclinic.scoring.compare import compare_arms, load_arm
from agentclinic.scoring.differentials import confidence
from agentclinic.scoring.labels import is_program, played_by
from agentclinic.scoring.orders import ordered_in
from agentclinic.scoring.outcome import RunningSummary, Summary, cost_of, outcome, unread_advice

Data = dict[str, Any]
BRIEF = 0.25
"""Seconds of reading before a request is answered with what was read so far, so that there is something to see at once;
the page asks for the rest."""
LONGER = 1.0
"""Seconds for the rest: fewer answers for the page to draw, and still news every second."""
LARGE = 16 * 2**20
"""Bytes: a longer journal takes more than `BRIEF` to count, so it is read in steps."""
COLUMNS = (
    *("name", "outcome", "why", "truth", "answer", "sure", "turns", "tests", "price", "cost", "regret", "specialty"),
    "key",
)
"""The columns of an encounter's row. `name` is that of its case, with the repeat after a dot; `price` is that of the
tests and `cost` that of the models, in dollars; `regret` is in points; `key` is the same for the same case in another
run."""
UNSAID = frozenset({"planner", "confidence"})
"""Roles in a transcript that are not part of the dialogue."""
SNIPPET = 60
"""Characters shown on each side of what was searched for."""


def row_of(record: Record, name: str) -> list[Any]:
    """An encounter's row, in the order of `COLUMNS`."""
    tests = None if record.status == "model_failed" else ordered_in(record)
    sure, _ = confidence(record)
    ended = outcome(record)
    verdict = record.judgement or Verdict()
    why = verdict.reason if ended == "not_readable" else wrong_as(record)
    return [
        name,
        ended,
        line(why, 120) if ended in ("diagnosed_wrong", "not_readable") else "",
        line(record.ground_truth, 120),
        line(diagnosis_of(record), 120),
        None if sure is None else round(sure, 4),
        record.num_turns,
        tests.orders if tests else None,
        round(tests.bill.usd, 2) if tests else None,
        cost_of(record),
        round(record.regret.regret, 2) if record.regret else None,
        line(annotation(record, "Specialty"), 60),
        case_key(record),
    ]


def said_in(record: Record) -> list[tuple[int, str]]:
    """What was said in an encounter, by turn; some records of the original have only one text."""
    if record.transcript is None:
        return [(0, inert(record.doctor_hist))]
    return [(turn.turn, inert(turn.text)) for turn in record.transcript if turn.role not in UNSAID]


class Place(NamedTuple):
    start: int
    length: int
    number: int
    """Of the line."""
    repeat: int


class RunIndex:
    """A row for each encounter of a run, read in short steps as the run's file grows."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / RECORDS
        self._lock = threading.RLock()
        self._begin(0)

    def _begin(self, inode: int) -> None:
        self.version = f"{inode}.{time.monotonic_ns()}"
        """Changes when the file is replaced, so that its rows are read again."""
        self.rows: list[list[Any]] = []
        self.places: dict[str, Place] = {}
        self.summary = RunningSummary()
        self.problem: str | None = None
        """Why the rest of the file cannot be read."""
        self._inode = inode
        self._modified = 0
        self._reading: Reading | None = None
        self._folder: RunFolder | None = None
        self._judged: list[int] = []
        self._labeled = _modified(self.path.parent, LABELS)
        self._people: Decisions | None = None
        self._end = 0
        self._line = 0

    def read(self, seconds: float = BRIEF) -> bool:
        """Read new records for this many seconds, but at least one; returns whether there are more."""
        until = time.monotonic() + seconds
        with self._lock:
            return any(time.monotonic() > until for _ in self.new())

    def new(self) -> Iterator[Record]:
        """The records added since the last call, each once its row is in the index; a problem ends the reading."""
        with self._lock:
            try:
                for number, start, written in self._lines():
                    self._reading = self._reading or Reading(self.path)
                    complete = written.endswith(b"\n")
                    try:
                        record = self._reading.record(number, _content(written), complete=complete)
                    except InputError:
                        if complete:
                            raise
                        return  # incomplete: it is being written
                    self._line, self._end = number, start + len(written)
                    if record is not None:
                        record = self._decided(record)
                        self._add(record, Place(start, len(written), number, record.repeat))
                        yield record
            except AgentClinicError as error:
                self.problem = str(error)

    def _lines(self) -> Iterator[tuple[int, int, bytes]]:
        """The lines after those already read: number, start and content."""
        if not self.path.is_file():
            return
        with self.path.open("rb") as file:
            there = os.fstat(file.fileno())
            changed = self.problem and there.st_mtime_ns != self._modified
            labeled = _modified(self.path.parent, LABELS) != self._labeled
            if there.st_ino != self._inode or there.st_size < self._end or changed or labeled:
                self._begin(there.st_ino)
            self._modified = there.st_mtime_ns
            if self.problem:
                return
            file.seek(self._end)
            start = self._end
            for number, written in enumerate(file, self._line + 1):
                if written.strip():
                    yield number, start, written
                start += len(written)

    def _decided(self, record: Record) -> Record:
        self._people = self._people or Decisions(self.path.parent)
        return self._people.applied(record, diagnosis_of(record))

    def _add(self, record: Record, place: Place) -> None:
        name = line(record.case_name[-80:], 80) + (f".{record.repeat + 1}" if record.repeat else "")
        if name in self.places:  # rows of several data sets
            name = f"{name}-{place.number}"
        self.places[name] = place
        self.rows.append(row_of(record, name))
        self.summary.add(record)

    def encounter(self, name: str) -> Data:
        while name not in self.places and self.read():
            pass
        if name not in self.places:
            raise InputError(f"{self.path}: there is no encounter {name}")
        place = self.places[name]
        record = self._record(self._written(place), place)
        return self.shown(self._decided(record))

    def shown(self, record: Record) -> Data:
        with self._lock:
            judged = _modified(self.path.parent, "judgements")
            if self._folder is None or judged != self._judged:  # judged again since it was read
                self._folder, self._judged = RunFolder(load_run(self.path.parent)), judged
            return encounter_data(record, self._folder.context(record))

    def _written(self, place: Place) -> bytes:
        with self.path.open("rb") as file:
            file.seek(place.start)
            return _content(file.read(place.length))

    def _record(self, written: bytes, place: Place) -> Record:
        record = parse_record(written, self.path, place.number)[0]
        record.repeat = place.repeat
        return record

    def search(self, text: str, first: int, seconds: float = BRIEF) -> tuple[list[tuple[str, int, str]], int | None]:
        """Encounters in which a text was said (name, turn, the words around it), and the row to continue from.

        Begins with the row `first`, which is always searched, and stops after this many seconds.
        """
        wanted = folded(text)
        escaped = json.dumps(wanted, ensure_ascii=False)[1:-1]
        until = time.monotonic() + seconds
        found = []
        for at in range(first, len(self.rows)):
            name = str(self.rows[at][0])
            place = self.places[name]
            written = self._written(place)
            flat = folded(re.sub(r"\\[nrt]", " ", written.decode("utf-8", "replace")))
            if "\\u" in flat or escaped in flat:  # most lines need not be parsed
                hit = first_said(said_in(self._record(written, place)), wanted)
                if hit:
                    found.append((name, *hit))
            if time.monotonic() > until:
                return found, at + 1 if at + 1 < len(self.rows) else None
        return found, None


def _modified(folder: Path, name: str) -> list[int]:
    """A value that changes with the files of a kind in a run's folder."""
    return [path.stat().st_mtime_ns for path in sorted((folder / name).glob("*.jsonl"))]


def _content(line: bytes) -> bytes:
    return line.removeprefix(codecs.BOM_UTF8).strip()


def folded(text: str) -> str:
    """Text as compared in a search: case and the width of spaces do not matter."""
    return " ".join(text.lower().split())


def first_said(said: Sequence[tuple[int, str]], wanted: str) -> tuple[int, str] | None:
    """The turn in which a text was first said, and the words around it."""
    for turn, text in said:
        flat = " ".join(text.split())
        at = flat.lower().find(wanted)
        if at >= 0:
            start, end = max(0, at - SNIPPET), at + len(wanted) + SNIPPET
            return turn, f"{'…' if start else ''}{flat[start:end]}{'…' if end < len(flat) else ''}"
    return None


class Library:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not folder.is_dir():
            raise InputError(
                f"{folder}: there is no such folder; runs are written to run.output_dir, by default `runs`"
            )
        self._lock = threading.Lock()
        self._indexes: dict[Path, RunIndex] = {}
        self._listed: dict[Path, tuple[Any, Data]] = {}
        self._places: dict[str, Path] = {}

    def places(self) -> dict[str, Path]:
        """The folders of the runs that exist now, by name."""
        found = run_places(self.folder)
        self._places = {p.name if p == self.folder else str(p.relative_to(self.folder)): p for p in found}
        return self._places

    def index(self, name: str) -> RunIndex:
        if name not in self._places and name not in self.places():
            raise InputError(f"{self.folder}: there is no run {name}")
        return self._index(self._places[name])

    def _index(self, place: Path) -> RunIndex:
        with self._lock:
            return self._indexes.setdefault(place, RunIndex(place))

    def runs(self, seconds: float = BRIEF) -> Data:
        """The list of runs; `more` if there was not enough time to read all of them."""
        shown = []
        until: float | None = None
        more = False
        for place in self.places().values():
            state = _state(place)
            with self._lock:
                before = self._listed.get(place)
            if before and before[0] == state:
                shown.append(before[1])
                continue
            index = self._index(place)
            if until is None:  # so that at least one is read
                until = time.monotonic() + seconds
            elif time.monotonic() > until:
                more = True
                shown.append({**run_data(describe_run(place, self.folder, Summary()), None), "reading": True})
                continue
            large = index.path.is_file() and index.path.stat().st_size > LARGE
            unread = large and index.read(max(0.0, until - time.monotonic()))
            listed = describe_run(place, self.folder, index.summary.summary() if large else None)
            shown.append({**run_data(listed, index.problem if large else None), "reading": unread})
            more = more or unread
            if not unread:
                with self._lock:
                    self._listed[place] = (state, shown[-1])
        return {"runs": shown, "more": more, "outcomes": OUTCOMES, "columns": COLUMNS, "private": privacy.silent()}

    def rows(self, name: str, first: int, version: str | None) -> Data:
        """The rows of a run, beginning with `first`; all of them if the file was replaced since that version."""
        index = self.index(name)
        more = index.read(LONGER if first else BRIEF)
        first = first if version == index.version else 0
        run = run_data(describe_run(index.path.parent, self.folder, index.summary.summary()), index.problem)
        return {"version": index.version, "first": first, "rows": index.rows[first:], "more": more, "run": run}

    def compare(self, names: Sequence[str]) -> Data:
        """The table and the sentence of `agentclinic compare`, and the cases on which runs differ from the first."""
        if len(names) < 2:
            raise InputError("select two runs or more to compare them; the first is the baseline")
        report = compare_arms([load_arm(load_run(self.index(name).path.parent), name) for name in names])
        table = compared(report, report.comparisons)
        flips = []
        for comparison in report.comparisons:
            strict = next((verdict for verdict in comparison.verdicts if verdict.rule == "strict"), None)
            gained, lost = (strict.gained, strict.lost) if strict else ([], [])
            sides = {"gained": [flip.name for flip in gained], "lost": [flip.name for flip in lost]}
            flips.append({"run": comparison.arm, **sides})
        return {
            "columns": list(table.columns),
            "rows": [list(cells) for cells in zip(*table.columns.values(), strict=True)],
            "words": table.words,
            "sentences": table.sentences,
            "remarks": table.remarks,
            "warnings": table.warnings,
            "runs": list(names),
            "flips": flips,
        }


def _state(place: Path) -> Any:
    """A value that changes when there is something new about a run."""
    files = [place / name for name in (RECORDS, CONFIG, SUMMARY)]
    stats = [path.stat() if path.is_file() else None for path in files]
    seen = [(there.st_mtime_ns, there.st_size) if there else None for there in stats]
    return is_locked(place), seen, _modified(place, LABELS)


def run_data(run: ListedRun, problem: str | None) -> Data:
    """What is shown about a run; `right` and `cost` as numbers to sort by, with their texts."""
    share = run.accuracy
    return {
        "name": run.name,
        "state": "unreadable" if problem else run.state,
        "dataset": run.dataset,
        "doctor": run.doctor,
        "model": None if run.model == "builtin" and is_program(run.doctor) else run.model,
        "played": played_by(run.doctor, run.model),
        "encounters": run.encounters,
        "planned": run.planned,
        "right": share.value if share else None,
        "right_text": run.right_text("–"),
        "advice": " ".join(unread_advice(run.not_readable, quote(run.name))),
        "cost": run.cost_usd,
        "cost_text": "unknown" if run.cost_usd is None else money(run.cost_usd),
        "problem": problem or run.problem or run.note,
    }
