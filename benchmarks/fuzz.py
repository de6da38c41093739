"""Every parser of outside data, given far more odd inputs than anyone would write.

python benchmarks/fuzz.py                        every parser, 100,000 inputs each
python benchmarks/fuzz.py --only 'prompt|run:'   the parsers whose name matches
python benchmarks/fuzz.py --inputs 5000 --seed 7 --keep FOLDER

A parser returns, or raises the error it documents, which the program shows as a clear message; where we also write the
format, what was read can be written and read again. Anything else is a failure, and so is an input that takes more than
`LIMIT` seconds of CPU time or `MEMORY` bytes. The parsers and their valid inputs are in `fuzz_parsers.py`.

Some of the inputs are drawn by Hypothesis, which also finds the smallest input that fails; then the coverage guides:
Atheris keeps every input that reaches a new branch and changes it further. Measuring coverage takes three times as long
as parsing, so after `GUIDED` inputs a process without it changes what was kept. Needs `pip install -e '.[fuzz]'`.
"""

from __future__ import annotations

import argparse
import faulthandler
import hashlib
import io
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from functools import partial
from itertools import chain
from pathlib import Path
from random import Random
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis import HealthCheck, given, settings, strategies
from hypothesis import seed as seeded

sys.path.insert(0, str(Path(__file__).parent))
if TYPE_CHECKING:
    from fuzz_parsers import Parser

LIMIT = 5.0
"""Seconds of CPU time for one input. The slowest parser takes a tenth of a second for the longest utterance."""
MEMORY = 6 * 2**30
"""Bytes of memory for the process that reads the inputs: one that needs more is a failure."""
DRAWN = 1000
"""Inputs that Hypothesis draws, at most a tenth: each takes it a few milliseconds, and what it adds is small inputs."""


GUIDED = 5_000
"""Inputs with coverage, at most."""


class Failure(NamedTuple):
    """Something that a parser must not raise, with the input."""

    kind: str
    place: str
    """Where in the package it was raised."""
    message: str
    data: bytes


class TooSlowError(BaseException):
    """An input took longer than `LIMIT`; not an `Exception`, so that no parser takes it for a bad input."""


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise TooSlowError


def failure(parser: Parser, data: bytes) -> Failure | None:
    """What is wrong with how the parser treats an input; None if nothing is."""
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT)
    try:
        parser.read(data)
    except parser.refuses:
        return None
    except (Exception, TooSlowError) as error:  # noqa: BLE001 - that is the question
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        frames = traceback.extract_tb(error.__traceback__)
        inside = [frame for frame in frames if f"agentclinic{os.sep}" in frame.filename] or frames
        place = f"{inside[-1].filename.rpartition('agentclinic' + os.sep)[2]}:{inside[-1].lineno}"
        return Failure(type(error).__name__, "" if isinstance(error, TooSlowError) else place, str(error)[:200], data)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return None


# --- changing an input ------------------------------------------------------------------------------------------------

_RAW = {"\ue000deep": "[" * 1200 + "]" * 1200, "\ue000objects": '{"a":' * 900 + "1" + "}" * 900,
        "\ue000digits": "9" * 4400, "\ue000digits400": "9" * 400,
        "\ue000twice": '{"data_class": 1, "data_class": 2}'}  # fmt: skip
"""JSON that `json.dumps` cannot write, by what stands for it until the rest has been written."""
_ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 0.5, 3.0, 1e308, -1e308, 10**20, float("nan"), float("inf"), float("-inf"), "", " ",
    "0", "nan", "yes", "None", "\ud800", "\x00", "\u2028", "\x1b[2J", "́", "٣", "²", "a" * 1000, "~nosuchuser/x", "http://[",
    "../../etc", "2026-02-31", [], {}, [[]], [None], {"": None}, [1, "a"], {"text": "x"}, "builtin", "human",
    "replay:x", "credentialed", *_RAW,
)  # fmt: skip
_PIECES = (
    "DIAGNOSIS READY: ", "REQUEST TEST: ", "REQUEST IMAGES", "RESULTS: ", "Patient: ", "Doctor:", "ASK PATIENT: ", "\n",
    "\r", "\u2028", "\u2003", "\t", " ", "(", ")", "[", "]", "{", "}", '"', "'", "\\", ",", ";", ":", "/", "-", "%",
    "50 %", "0.5", "1e999", "٣", "²", "½", "ﬁ", "é", "ß", "İ", "\ud800", "\x00", "\x1b[31m", "\ufeff", "___", "or ",
    "due to ", "no ", "denies ", "```", "**", "<think>", "null", "true", "NaN", "&x ", "*x ", "!!binary ", "? ", "- ",
    "|\n", "%TAG ! !", "{agent_hist}", "{}", "{0}", "{x", "--", "=", "_", ".", "~", "..", "2026-01-01 00:00:00",
)  # fmt: skip
_BYTES = (b"\xff", b"\x00", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xc3", b"\xff\xfe", b"\r", b"\x1f\x8b\x08\x00")


def mutated(data: bytes, random: Random, most: int, value: Any = None) -> bytes:
    """The input, up to `most` bytes, with one to three changes, most of them to values and keys of the JSON in it."""
    for _ in range(random.randint(1, 3)):
        lines = data.splitlines(keepends=True) or [b""]
        place = random.randrange(len(lines))
        try:
            if random.random() < 0.2:
                raise ValueError("as text")
            whole = len(lines) > 1 and not lines[0].rstrip().endswith(b"}")
            changed = _dumped(_edited(json.loads(data if whole else lines[place]), random, value), random)
            if whole:
                lines, place = [changed], 0
            else:
                lines[place] = changed + b"\n"
        except (ValueError, RecursionError):
            lines[place] = _retyped(lines[place], random, value)
        if random.random() < 0.1:
            lines.insert(random.randrange(len(lines) + 1), lines[place])
        data = b"".join(lines)
    return data[:most]


def _dumped(document: Any, random: Random) -> bytes:
    text = json.dumps(document, ensure_ascii=random.random() < 0.7)
    for mark, raw in _RAW.items():
        text = text.replace(json.dumps(mark), raw).replace(f'"{mark}"', raw)
    return text.encode("utf-8", "surrogatepass")


def _edited(document: Any, random: Random, value: Any) -> Any:
    """The document with one of its values or keys replaced, removed, repeated, nested or moved."""
    nodes: list[tuple[Any, Any]] = [([document], 0)]
    for holder, key in nodes:
        node = holder[key]
        if isinstance(node, dict | list):
            nodes += [(node, each) for each in (list(node) if isinstance(node, dict) else range(len(node)))]
    root = nodes[0][0]
    holder, key = random.choice(nodes)
    other = random.choice(nodes)
    what = random.randrange(9)
    if what < 3:
        holder[key] = value if value is not None and random.random() < 0.5 else random.choice(_ODD)
    elif what == 3:
        holder[key] = json.loads(json.dumps(other[0][other[1]]))
    elif what == 4:
        holder[key] = random.choice(([holder[key]], {"text": holder[key]}, str(holder[key]), [holder[key]] * 2))
    elif what == 5 and holder is not root:
        del holder[key]
    elif what == 6 and isinstance(holder, dict):
        name = other[1] if isinstance(other[1], str) else random.choice(("", "_x", "data_class", "subject_id", key))
        holder[name] = holder.pop(key)
    elif isinstance(holder[key], str):
        holder[key] = _retyped(holder[key].encode("utf-8", "surrogatepass"), random, value).decode("utf-8", "replace")
    elif isinstance(holder[key], int | float):
        holder[key] = random.choice((-holder[key], holder[key] * 1000, str(holder[key]), 0.5))
    else:
        holder[key] = random.choice(_ODD)
    return root[0]


def _retyped(line: bytes, random: Random, value: Any) -> bytes:
    """The line with a piece inserted, removed, repeated, or replaced."""
    start = random.randrange(len(line) + 1)
    end = min(len(line), start + random.choice((0, 1, 1, 2, 5, 20)))
    what = random.randrange(6)
    if what == 0:
        return line[:start] + line[end:]
    if what == 1:
        return line[:end] + line[start:end] * random.choice((1, 3, 40)) + line[end:]
    if what == 2:
        return line[:start] + random.choice(_BYTES) + line[end:]
    if what == 3 and isinstance(value, str):
        return line[:start] + value.encode("utf-8", "replace") + line[end:]
    piece = random.choice(_PIECES).encode("utf-8", "surrogatepass")
    return line[:start] + piece + line[end if what == 4 else start :]


# --- driving a parser -------------------------------------------------------------------------------------------------

_LEAF = strategies.none() | strategies.booleans() | strategies.integers() | strategies.floats() | strategies.text()
_VALUES = strategies.recursive(
    _LEAF,
    lambda inner: strategies.lists(inner, max_size=3) | strategies.dictionaries(strategies.text(), inner, max_size=3),
    max_leaves=5,
)


def drawn(parser: Parser, inputs: int, seed: int) -> Failure | None:
    """Let Hypothesis draw inputs; the smallest that fails, if any does."""
    found: list[Failure] = []

    @seeded(seed)
    @settings(
        max_examples=inputs, database=None, deadline=None, suppress_health_check=list(HealthCheck), print_blob=False
    )
    @given(strategies.sampled_from(parser.seeds), strategies.randoms(use_true_random=False), _VALUES)
    def holds(data: bytes, random: Random, value: Any) -> None:
        wrong = failure(parser, mutated(data, random, parser.longest, value))
        if wrong:
            found.append(wrong)
            raise AssertionError(wrong.place)

    try:
        holds()
    except (AssertionError, ExceptionGroup):
        return found[-1]
    return None


def mutations(parser: Parser, inputs: int, seed: int, kept: Sequence[bytes] = ()) -> Iterator[Failure]:
    """Change the seeds, and half of the time inputs that guidance has kept: without these the share in the tests."""
    random = Random(seed)
    changed = (
        mutated(random.choice(kept if kept and random.random() < 0.5 else parser.seeds), random, parser.longest)
        for _ in range(inputs - len(kept))
    )
    for data in chain(parser.seeds, kept, changed):
        if wrong := failure(parser, data):
            yield wrong


def smaller(parser: Parser, wrong: Failure, tries: int = 400) -> Failure:
    """The same failure with a shorter input, found by leaving out pieces, large ones first."""
    size = len(wrong.data) // 2
    while size and tries > 0:
        start = 0
        while start < len(wrong.data) and tries > 0:
            tries -= 1
            again = failure(parser, wrong.data[:start] + wrong.data[start + size :])
            if again and again[:2] == wrong[:2]:
                wrong = again
            else:
                start += size
        size //= 2
    return wrong


@contextmanager
def watched() -> Iterator[None]:
    """Stop inputs that take too long, and keep warnings to ourselves."""
    before = signal.signal(signal.SIGVTALRM, _stop)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            signal.signal(signal.SIGVTALRM, before)


def keep(folder: Path, wrong: Failure) -> None:
    """Write a failure to a file, one for each place; a much shorter input replaces a longer one."""
    path = folder / f"{hashlib.sha256(f'{wrong.kind} {wrong.place}'.encode()).hexdigest()[:8]}.json"
    if not path.exists() or len(json.loads(path.read_text())["data"]) > 2 * len(wrong.data):
        path.write_text(json.dumps({**wrong._asdict(), "data": wrong.data.hex()}))


def _prepare(folder: Path) -> None:
    """In a process that reads inputs: a folder for its files, and a limit on its memory."""
    faulthandler.enable()
    tempfile.tempdir = str(folder)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def guided(name: str, parser: Parser, inputs: int, seed: int, folder: Path) -> None:
    """In a process of its own: draw, then follow the coverage until Atheris ends the process. Failures go to files."""
    import atheris

    def once(data: bytes) -> None:
        if wrong := failure(parser, data):
            keep(folder, wrong)

    def change(data: bytes, most: int, number: int) -> bytes:
        random = Random(number)
        how = random.random()
        if how < 0.25:
            return bytes(atheris.Mutate(data, most))
        return mutated(random.choice(parser.seeds) if how < 0.5 or not data else data, random, most)

    _prepare(folder)
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, data in enumerate(parser.seeds):
        (corpus / f"{number}").write_bytes(data)
    with (folder / "log").open("wb") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    with watched():
        if wrong := drawn(parser, min(DRAWN, inputs // 10), seed):
            keep(folder, wrong)
        runs = f"-runs={inputs - min(DRAWN, inputs // 10)}"
        # Inputs stay as large as they are, or the seeds would be replaced by shorter ones that reach the same.
        fixed = ["-mutate_depth=1", "-reduce_inputs=0", "-timeout=3600", "-rss_limit_mb=0"]
        flags = [name, runs, f"-seed={seed + 1}", f"-max_len={parser.longest}", *fixed, str(corpus)]
        atheris.Setup(flags, once, custom_mutator=change)
        atheris.Fuzz()


class Row(NamedTuple):
    """A line of the table."""

    name: str
    inputs: int
    places: int
    """Branches of the package that were reached."""
    failures: list[Failure]


def forked(work: Callable[[], None]) -> int:
    """Do something in a process of its own; returns how it ended."""
    child = os.fork()
    if not child:
        status = 1
        try:
            work()
            status = 0
        except BaseException:  # noqa: BLE001 - the log says what it was
            traceback.print_exc()
        os._exit(status)
    return os.waitpid(child, 0)[1]


def unguided(parser: Parser, inputs: int, seed: int, folder: Path) -> None:
    """In a process of its own, without coverage: change what guidance has kept. Failures go to files."""
    _prepare(folder)
    kept = [path.read_bytes() for path in sorted((folder / "corpus").iterdir())]
    with watched():
        for wrong in mutations(parser, inputs, seed + 2, kept):
            keep(folder, wrong)


def fuzzed(
    name: str,
    parser: Parser,
    inputs: int,
    seed: int,
    folder: Path,
    rest: Callable[[int, Path], int] | None = None,
) -> Row:
    """Give a parser its inputs; `rest` gives those without coverage, and returns how its process ended."""
    folder.mkdir(parents=True)
    first = min(inputs, GUIDED) if rest else inputs
    status = forked(lambda: guided(name, parser, first, seed, folder))
    log = (folder / "log").read_text(errors="replace")
    reached = [int(number) for number in re.findall(r" cov: (\d+)", log)] or [0]
    done = [int(number) for number in re.findall(r"^#(\d+)", log, re.MULTILINE)] or [0]
    tried = done[-1] + min(DRAWN, first // 10)
    if rest and not status and inputs > tried:
        status = rest(inputs - tried, folder)
        tried = inputs if not status else tried
    found = [
        Failure(**{**entry, "data": bytes.fromhex(entry["data"])})
        for entry in (json.loads(path.read_text()) for path in sorted(folder.glob("*.json")))
    ]
    with watched():
        found = [smaller(parser, wrong) for wrong in found]
    if status:
        found.append(Failure("the process ended", "", log.rpartition("\n#")[2][:1500], b""))
    return Row(name, tried, reached[-1], found)


class Rest:
    """A second process of this program, in which the package was imported without coverage."""

    def __init__(self, seed: int) -> None:
        command = [sys.executable, __file__, "--rest", "--seed", str(seed)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def give(self, name: str, inputs: int, folder: Path) -> int:
        """Give a parser further inputs; returns how the process that did it ended."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps([name, inputs, str(folder)]) + "\n")
        return int(self._process.stdout.readline())


def answer(seed: int) -> None:
    """In that process: do what the lines of standard input say."""
    with redirect_stderr(io.StringIO()):
        from fuzz_parsers import parsers

        known = parsers()
    for line in sys.stdin:
        name, inputs, folder = json.loads(line)
        print(forked(partial(unguided, known[name], inputs, seed, Path(folder))), flush=True)


def main(argv: list[str] | None = None) -> None:
    """Fuzz, and print a table."""
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--only", default="", help="a regular expression for the names of parsers")
    flags.add_argument("--inputs", type=int, default=100_000, help="inputs for each parser")
    flags.add_argument("--seed", type=int, default=0)
    flags.add_argument("--keep", type=Path, help="folder for the smallest input of each failure")
    flags.add_argument("--rest", action="store_true", help=argparse.SUPPRESS)
    options: Any = flags.parse_args(argv)
    if options.rest:
        answer(options.seed)
        return
    import atheris

    with atheris.instrument_imports(include=["agentclinic"]), redirect_stderr(io.StringIO()):
        from fuzz_parsers import parsers

        chosen = {name: parser for name, parser in parsers().items() if re.search(options.only, name)}
    print(f"{'parser':42} {'inputs':>9} {'branches':>9} {'failures':>9}")
    failed = 0
    memory = Path("/dev/shm")  # most parsers read files, and a disk would take longer than they do
    rest = Rest(options.seed)
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as scratch:
        for number, (name, parser) in enumerate(chosen.items()):
            folder = Path(scratch, str(number))
            row = fuzzed(name, parser, options.inputs, options.seed, folder, partial(rest.give, name))
            failed += len(row.failures)
            print(f"{name:42} {row.inputs:9,} {row.places:9,} {len(row.failures):9}", flush=True)
            for each, wrong in enumerate(row.failures):
                print(f"    {wrong.kind} at {wrong.place}: {wrong.message!r}; input {wrong.data[:200]!r}", flush=True)
                if options.keep:
                    options.keep.mkdir(parents=True, exist_ok=True)
                    file = options.keep / f"{re.sub(r'[^a-z0-9]+', '-', name.lower())}-{each}"
                    file.write_bytes(wrong.data)
    print(f"{len(chosen)} parsers, {failed} failures")


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets decides what is reached, and so what is tried next
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": "0"})
    main()
