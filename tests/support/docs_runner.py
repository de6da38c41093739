"""Does what README and docs say, in a clean folder, and fails on the first line that is not true.

`python tests/support/docs_runner.py [PAGE...]` follows the pages and stops with page and line; `--list` shows what is
not run, and why. `tests/test_docs_run.py` does the same page by page, and `make docs-test` in a new environment made
from a clean clone. What a block is, its fence says:

- nothing, or `sh`: commands, one a line; `\\` continues a line, `&&` joins two, `#` begins a comment
- `console`: lines that begin with `$ ` are commands; the lines below one are what it prints
- `python`: run in one interpreter, after the commands of the page
- `json`: read, and checked if it is part of a config, or a case; `...` in it stands for more of the same
- `text` or another word: only shown; no command may be hidden there

An HTML comment above a fence says more about it: `<!-- not run: REASON -->`, or `<!-- file: NAME -->` for the content
of a file that the commands of the page read. In shown output, a line `...` stands for any lines and `…` for any
characters; time stamps of runs, and seconds, may differ. Commands in the text (`agentclinic ...` in backquotes, and
flags) must exist.

Models are played by the scripted server, and runs are short: the folder has an `agentclinic.config.json` that says so.
What a reader has before the first line is in `Clinic`, and `WORDS` are the words that stand for it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
DATA = ROOT.parent / "shared" / "data" / "agentclinic"
"""Copies of the public data sets, where there are any."""
COMMANDS = ("", "sh", "bash", "console")
STAMP = r"\d{8}_\d{6}"
DEMO = "http://127.0.0.1:8808/v1"
"""Where `agentclinic demo-server` listens; here the scripted server takes its place."""
LONG = 600
"""Seconds no command of the docs takes, however busy the machine."""


class NotTrueError(AssertionError):
    """A line of the documentation that is not true."""


class Block(NamedTuple):
    """The inside of a fence."""

    page: Path
    line: int
    """The number of its first line."""
    language: str
    text: str
    marks: Mapping[str, str]

    def fail(self, why: str, line: int = 0) -> NotTrueError:
        shown = self.page.relative_to(ROOT) if self.page.is_relative_to(ROOT) else self.page
        return NotTrueError(f"{shown}:{self.line + line}: {why}")


class Command(NamedTuple):
    """A command, its line in the block, and what it prints, where that is shown."""

    line: int
    text: str
    output: list[str] | None


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    stdout: str
    stderr: str


Call = Callable[[list[str], Path, Mapping[str, str]], Done]
"""Runs `agentclinic` with arguments, in a folder, with these variables added to the environment."""


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page."""
    lines = page.read_text(encoding="utf-8").splitlines()
    marks: dict[str, str] = {}
    fence: tuple[int, str, str] | None = None
    for number, line in enumerate(lines, start=1):
        opened = re.match(r"(\s*)```(\w*)\s*$", line)
        if fence:
            if opened:
                first, indent, language = fence
                inside = [inner.removeprefix(indent) for inner in lines[first - 1 : number - 1]]
                yield Block(page, first, language, "\n".join(inside), marks)
                fence, marks = None, {}
        elif opened:
            fence = (number + 1, opened[1], opened[2])
        elif mark := re.fullmatch(r"\s*<!-- (not run|file): (.+) -->", line):
            marks[mark[1]] = mark[2]
        elif line.strip():
            marks = {}
    if fence:
        raise Block(page, fence[0] - 1, "", "", {}).fail("a fence that is not closed")


def commands(block: Block) -> Iterator[Command]:
    """The commands of a block, without comments; a continued line is one command."""
    console = block.language == "console"
    text, first = "", 0
    found: list[Command] = []
    for number, line in enumerate(block.text.splitlines()):
        if console and not line.startswith("$ ") and not text:
            if not found or found[-1].output is None:
                raise block.fail("a console block begins with `$ ` and a command", number)
            found[-1].output.append(line)
            continue
        first = first if text else number
        text += line.removeprefix("$ ") if console and not text else line
        if text.endswith("\\"):
            text = text[:-1]
            continue
        if shlex.split(text, comments=True):
            found.append(Command(first, text, [] if console else None))
        text = ""
    yield from found


class _Quiet(SimpleHTTPRequestHandler):
    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""


@dataclass
class Clinic:
    """What readers of a page have: a folder, a server with models, and what earlier pages have left them with."""

    call: Call
    server: str
    """The address of the scripted server."""
    home: Path
    """Where the things that every page may use are made once."""

    @cached_property
    def run(self) -> Path:
        """A run of a few cases, some of them not solved, whose doctor kept sessions."""
        self.home.mkdir(parents=True, exist_ok=True)
        self._clinic("run --doctor uncertainty --dataset OpenOSCE --scenarios 0-5 --output-dir sample --quiet")
        (folder,) = (self.home / "sample").iterdir()
        return folder

    @cached_property
    def experiences(self) -> Path:
        """Experiences from that run."""
        self._clinic(f"learn {shlex.quote(str(self.run))} -o sample.jsonl --quiet")
        return self.home / "sample.jsonl"

    def _clinic(self, command: str) -> None:
        done = self.call(shlex.split(command), self.home, {})
        assert done.code == 0, done.stderr

    def fetch(self, block: Block, command: Command, folder: Path) -> None:
        """Fetch a data set from a copy on this machine, if it has one; otherwise the command need only exist."""
        if not DATA.is_dir():
            return
        files = partial(_Quiet, directory=str(DATA))
        with ThreadingHTTPServer(("127.0.0.1", 0), files) as mirror:
            Thread(target=mirror.serve_forever, daemon=True).start()
            address = f"http://127.0.0.1:{mirror.server_port}/"
            names = shlex.split(command.text, comments=True)[1:]
            done = self.call([*names, "--output", "fetched"], folder, {"AGENTCLINIC_MIRROR": address})
            mirror.shutdown()
        if done.code:
            raise block.fail(f"{command.text}: exit code {done.code}\n{done.stderr}", command.line)

    def prepare(self, page: Path, folder: Path) -> None:
        """Put into the folder what the page takes for granted."""
        from runs_support import own_rows

        said = (block for block in blocks(page) if block.language in COMMANDS)
        text = "\n".join(command.text for block in said for command in commands(block))
        rows = "\n".join(own_rows(3)) + "\n"
        _write(folder / "few_cases.jsonl", rows)
        _write(folder / "agentclinic_medqa.jsonl", rows)
        named = ("MedQA", "MedQA_Ext", "NEJM", "NEJM_Ext", "MIMICIV")
        few = {"run": {"num_scenarios": 2}, "datasets": dict.fromkeys(named, "few_cases.jsonl")}
        _write(folder / "agentclinic.config.json", json.dumps(few))
        runtime = {"tries": 2, "timeout": 0}
        # Any price will do: without one, a limit on the cost is refused.
        prices = {"*": {"input": 0.1, "output": 0.1}}
        openai = {"base_url": self.server, "prices": prices}
        _write(folder / "llm.config.json", json.dumps({"openai": openai, "llm": {"runtime": runtime}}))
        shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
        for path in set(re.findall(rf"\b(?:runs/)\w+_{STAMP}\b", text)):
            shutil.copytree(self.run, folder / path)
        if re.search(r"\bRUN\b", text):
            for name in ("first", "second"):
                shutil.copytree(self.run, folder / "runs" / name)
        if page.name in PREPARE:
            PREPARE[page.name](self, folder)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _put(path: Path, text: str) -> None:
    """Write a file that a page shows; sections of a config that is already there are added to it."""
    if path.exists() and path.suffix == ".json":
        text = json.dumps({**json.loads(path.read_text(encoding="utf-8")), **json.loads(_whole(text))})
    _write(path, text)


def _whole(text: str) -> str:
    """The JSON of a block, which may show only some sections of a config, and `...` for more of the same."""
    text = re.sub(r",\s*(?:\.\.\.|…)(?=\s*[\]}])", "", text)
    return text if text.lstrip().startswith("{") else f"{{{text}}}"


def _for_memory(clinic: Clinic, folder: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        shutil.copy(clinic.experiences, folder / name)
    settings = json.loads((folder / "agentclinic.config.json").read_text(encoding="utf-8"))
    settings["run"]["num_scenarios"] = 16  # a study needs cases to divide, and failures to learn from
    _write(folder / "agentclinic.config.json", json.dumps(settings))


def _for_the_policy(_: Clinic, folder: Path) -> None:
    _write(folder / "prompts" / "no_discriminators.json", '{"differential_settings": {"discriminators": "off"}}')


def _for_scoring(clinic: Clinic, folder: Path) -> None:
    clinic.call(["regrade", "runs/first", "--moderator-llm", "scripted"], folder, {})
    made = ["run", "--dataset", "OpenOSCE_1", "--doctor", "door_only", "--limit", "60", "--name", "labeled"]
    clinic.call([*made, "--quiet"], folder, {})
    (labeled,) = (folder / "runs").glob("*_labeled")
    records = [json.loads(line) for line in (labeled / "scenarios.jsonl").read_text(encoding="utf-8").splitlines()]
    labels = [
        {"scenario_id": one["scenario_id"], "correct": one["correct"] if number % 12 else not one["correct"]}
        for number, one in enumerate(records[:48])
    ]
    _write(labeled / "labels" / "ann.jsonl", "".join(json.dumps(label) + "\n" for label in labels))
    settings = json.loads((folder / "agentclinic.config.json").read_text(encoding="utf-8"))
    del settings["run"]["num_scenarios"]  # the page shows the figures of whole runs
    _write(folder / "agentclinic.config.json", json.dumps(settings))


def _for_reports(clinic: Clinic, folder: Path) -> None:
    arms = {"name": "SWEEP", "run": {"dataset": "OpenOSCE_Demo"}, "matrix": {"doctor": ["plain", "door_only"]}}
    _write(folder / "arms.json", json.dumps(arms))
    clinic.call(["sweep", "arms.json"], folder, {})


def _with_folder(clinic: Clinic, folder: Path) -> None:
    """A folder `clinic` as `init` makes it, and the data set that a reader has put there."""
    clinic.call(["init", "clinic"], folder, {})
    cases = (folder / "few_cases.jsonl").read_text(encoding="utf-8")
    _write(folder / "clinic" / "processed_data" / "agentclinic_medqa.jsonl", cases)


def _for_uncertainty(clinic: Clinic, folder: Path) -> None:
    from agentclinic.clinic.prompts import SHIPPED

    clinic.call(["init", "--original", "."], folder, {})
    shutil.copytree(clinic.run / "diagnosis_sessions", folder / "agent" / "diagnosis_sessions", dirs_exist_ok=True)
    agents = folder / "agent" / "agent_config.yaml"
    written = agents.read_text(encoding="utf-8")
    mine = re.sub(r"(?s).*?agents:\n", "", written).replace("uncertainty_aware_doctor", "my_doctor")
    _write(agents, f"{written}\n{mine}")
    _write(folder / "tuned" / "synthesis.json", (SHIPPED / "synthesis.json").read_text(encoding="utf-8"))


def _for_generating(_: Clinic, folder: Path) -> None:
    from generate_support import question, write_questions
    from mimic_rows import ward

    for base in ("physionet/mimiciv/3.1", "mimic-iv-demo"):
        (folder / base).mkdir(parents=True)
        ward().write(folder / base)
    (folder / "medqa").mkdir()
    write_questions(folder / "medqa" / "questions.jsonl", [question(number) for number in range(3)])


PREPARE: Mapping[str, Callable[[Clinic, Path], None]] = {
    "memory.md": _for_memory,
    "test-policy.md": _for_the_policy,
    "uncertainty.md": _for_uncertainty,
    "generate.md": _for_generating,
    "getting-started.md": _with_folder,
    "report.md": _for_reports,
    "scoring.md": _for_scoring,
    "original.md": _with_folder,
}
"""What only one page takes for granted."""


def _judge(folder: Path) -> str:
    return next((folder / "runs" / "first" / "judgements").glob("resynthesized_*")).stem


def _experience(folder: Path) -> str:
    from agentclinic.memory.store import load_store

    return load_store(folder / "experiences.jsonl").experiences[0].id


WORDS: Mapping[str, str | Callable[[Path], str]] = {
    "RUN...": "runs/second",
    "RUN": "runs/first",
    "DIR": "clinic",
    "FILE": "sweep.json",
    "MODEL": "scripted",
    "resynthesized_gpt-5_1a2b3c4d": _judge,
    "3f2a": _experience,
}
"""Words in commands that stand for something of the reader's own."""

LIBRARIES = {"inspect.md": "inspect_ai"}
"""Pages that are followed only where a library is installed."""

GIVEN = {
    "custom-doctor.md": "import sys; sys.path.insert(0, 'examples'); from my_doctor import MyDoctor",
    "privacy.md": """
from pathlib import Path
from agentclinic.config import load_settings
from agentclinic.models.base import Message, Purpose, Request
settings = load_settings(None, Path("llm.config.json"))
request = Request(Purpose.CHECK, (Message("user", "ready?"),))
""",
    "uncertainty.md": """
import sys; sys.path.insert(0, "benchmarks/AgentClinic")
from agentclinic import ScenarioMedQA, load_cases
scenario, doctor_llm, reply = ScenarioMedQA(load_cases("OpenOSCE_Demo")[0]), "scripted", "It hurts."
""",
}
"""Names that the Python examples of a page take for granted."""


def follow(page: Path, clinic: Clinic, folder: Path) -> int:
    """Do what a page says; returns how many commands and snippets were run."""
    check_text(page)
    if page.name in LIBRARIES and find_spec(LIBRARIES[page.name]) is None:
        return 0
    clinic.prepare(page, folder)
    every = list(blocks(page))
    for block in every:
        if "file" in block.marks:
            _put(folder / block.marks["file"], block.text + "\n")
    place, variables, ran = folder, dict[str, str](), 0
    for block in every:
        if block.language == "json":
            check_json(block)
        if block.language not in COMMANDS or block.marks:
            if block.language not in COMMANDS and re.search(r"^(\$ )?agentclinic ", block.text, re.MULTILINE):
                raise block.fail(f"a command in a block of {block.language}, which is not run")
            continue
        for command in commands(block):
            for part in command.text.split(" && "):
                place = _do(block, command, part, clinic, place, variables, folder)
            ran += 1
    return ran + _snippets(page, every, folder)


def _do(
    block: Block, command: Command, text: str, clinic: Clinic, place: Path, variables: dict[str, str], folder: Path
) -> Path:
    """Do one command; returns the folder in which the next one runs."""
    words = [_meant(word, place) for word in shlex.split(text, comments=True)]
    if words[0] in ("python", ".venv/bin/python") and words[1:2] == ["agentclinic.py"]:
        words = ["agentclinic", *(words[2:] or ["run"])]
    match words:
        case ["export", assignment]:
            name, _, value = assignment.partition("=")
            own = {"...": "sk-of-the-docs", DEMO: clinic.server}
            variables[name] = own.get(value, value)
            # The server stands for OpenAI's own address, which no one has to confirm.
            confirmed = json.dumps({"what": name, "where": clinic.server})
            variables["XDG_CONFIG_HOME"] = str(folder / ".config")
            _write(folder / ".config" / "agentclinic" / "trusted.jsonl", f"{confirmed}\n")
        case ["cd", where]:
            if not (place / where).is_dir():
                raise block.fail(f"{text}: there is no such folder", command.line)
            return place / where
        case ["make", target]:
            if not re.search(rf"^{re.escape(target)}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE):
                raise block.fail(f"{text}: the Makefile has no such target", command.line)
        case [".", ".venv/bin/activate"] | ["python", "-m", "venv", ".venv"]:
            pass
        case ["pip", "install", *what]:
            if not re.fullmatch(r"(-e )?\.(\[[a-z,]+\])?", " ".join(what)):
                raise block.fail(f"{text}: install from the clone, `pip install .`", command.line)
        case ["agentclinic", "view" | "play" | "demo-server"] | ["agentclinic", "serve-env", *_]:
            pass  # until Ctrl-C: `first_hour.py` opens them in a browser
        case ["agentclinic", "data", "fetch", *_]:
            clinic.fetch(block, command, place)
        case ["inspect", "view", *_]:
            pass  # until Ctrl-C
        case ["inspect", *arguments]:
            program = str(Path(sys.executable).with_name("inspect"))
            ended = subprocess.run(
                [program, *arguments],
                cwd=place,
                env={**os.environ, **variables},
                capture_output=True,
                text=True,
                timeout=LONG,
            )
            if ended.returncode:
                raise block.fail(f"{text}: exit code {ended.returncode}\n{ended.stdout}{ended.stderr}", command.line)
        case ["python", script]:
            ended = subprocess.run([sys.executable, script], cwd=place, capture_output=True, text=True, timeout=LONG)
            if ended.returncode:
                raise block.fail(f"{text}: exit code {ended.returncode}\n{ended.stdout}{ended.stderr}", command.line)
        case ["agentclinic", *arguments]:
            expanded = [path for word in arguments for path in _expanded(word, place)]
            done = clinic.call(expanded, place, variables)
            said = f"{text}: exit code {done.code}\n{done.stdout}{done.stderr}"
            if done.code or "Traceback" in said:
                raise block.fail(said, command.line)
            if command.output is not None:
                _compare(block, command, done.stdout)
        case _:
            raise block.fail(f"{text}: unknown command; say `<!-- not run: REASON -->` above the block", command.line)
    return place


def _meant(word: str, place: Path) -> str:
    for name, stands_for in WORDS.items():
        if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", word):
            meant = stands_for if isinstance(stands_for, str) else stands_for(place)
            return word.replace(name, meant)
    return word


def _expanded(word: str, place: Path) -> list[str]:
    found = sorted(str(path.relative_to(place)) for path in place.glob(word)) if "*" in word else []
    return found or [word]


def _compare(block: Block, command: Command, printed: str) -> None:
    """Compare the shown output; a line `...` is any lines, `…` any characters."""
    shown = [_timeless(line) for line in command.output or []]
    pattern = "\n".join("(?s:.*)" if line == "..." else re.escape(line).replace("…", ".*") for line in shown)
    lines = printed.strip("\n").splitlines()
    if not re.fullmatch(pattern.strip("\n"), "\n".join(map(_timeless, lines))):
        wanted = "\n".join(command.output or [])
        raise block.fail(f"{command.text} prints\n{printed}\nand the page shows\n{wanted}", command.line)


def _timeless(line: str) -> str:
    """A line without its time stamps and seconds."""
    return re.sub(r"\b[\d.]+ s\b", "1.0 s", re.sub(STAMP, "20260101_120000", line)).rstrip()


def _snippets(page: Path, every: list[Block], folder: Path) -> int:
    """Run the Python examples of a page in an interpreter of their own."""
    snippets = [block for block in every if block.language == "python" and "not run" not in block.marks]
    if snippets:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
        done = subprocess.run(
            [sys.executable, __file__, "--python", str(page)],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LONG,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode:
            lines = re.findall(rf'File "{re.escape(str(page))}", line (\d+)', done.stderr)
            where = int(lines[-1]) if lines else snippets[0].line
            raise Block(page, where, "", "", {}).fail(f"the example does not run\n{done.stderr}")
    return len(snippets)


def run_python(page: Path) -> None:
    """Run the Python examples of a page here, one after the other, with the page's own line numbers."""
    import ast
    import asyncio
    import inspect

    names: dict[str, Any] = {"__name__": "examples"}
    exec(GIVEN.get(page.name, ""), names)
    for block in blocks(page):
        if block.language == "python" and "not run" not in block.marks:
            source = "\n" * (block.line - 1) + block.text
            code = compile(source, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            if code.co_flags & inspect.CO_COROUTINE:
                asyncio.run(eval(code, names))
            else:
                exec(code, names)


def check_json(block: Block) -> None:
    """Read a JSON block; part of a config is checked as a config, a case as a case."""
    from agentclinic.cases.formats import Row, read_case
    from agentclinic.config import ClinicFile, LLMFile, parse_settings
    from agentclinic.errors import InputError

    try:
        data = json.loads(_whole(block.text))
        for model in (ClinicFile, LLMFile):
            if data.keys() <= model.model_fields.keys():
                parse_settings(model, data, "the settings")
        if data.keys() & {"OSCE_Examination", "question"}:
            read_case(Row(block.page, block.line, 0, data), "docs")
    except (ValueError, InputError) as error:
        raise block.fail(str(error)) from None


def check_text(page: Path) -> None:
    """Check that the commands and flags in a page's text, and in what is not run, exist."""
    import typer

    from agentclinic.cli import normalized
    from agentclinic.cli.app import app

    root: Any = typer.main.get_command(app)
    root.load()
    programs = (
        path.read_text(encoding="utf-8") for room in ("benchmarks", "examples") for path in ROOT.glob(f"{room}/*.py")
    )
    known = {*_flags(root), *re.findall(r'"(--[a-z-]+)"', "".join(programs))}
    text = page.read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), start=1):
        place = Block(page, number, "", "", {})
        for flag in re.findall(
            r"(?<![\w-])--[a-z][a-z_-]+", re.sub(r"<!--.*-->|^(?:python|inspect) .*|\|---.*", "", line)
        ):
            (written,) = normalized(["run", flag])[1:2]
            if written not in known and written.replace("--no-", "--") not in known:
                raise place.fail(f"{flag}: there is no such flag")
        for said in re.findall(r"`agentclinic ([^`]+)`", line) + re.findall(r"^(?:\$ )?agentclinic (.+)", line):
            command, words = root, re.sub(r"['\"]| #.*", "", said).split()
            while getattr(command, "commands", None) and words and re.fullmatch(r"[a-z][a-z-]*", words[0]):
                if words[0] not in command.commands:
                    raise place.fail(f"agentclinic {said}: there is no command {words[0]}")
                command = command.commands[words.pop(0)]
            own = set(_flags(command))
            for flag in (word.partition("=")[0] for word in words if word.startswith("--")):
                if flag != "--help" and normalized(["run", flag])[1] not in own and command is not root:
                    raise place.fail(f"agentclinic {said}: this command has no {flag}")


def _flags(command: Any) -> Iterator[str]:
    for each in getattr(command, "commands", {}).values():
        yield from _flags(each)
    yield from (flag for option in command.params for flag in (*option.opts, *option.secondary_opts))
    yield from ("--help", "--install-completion")


def not_run() -> list[tuple[Block, str]]:
    """Blocks that are not run, and why."""
    every = (block for page in PAGES for block in blocks(page))
    return [(block, block.marks["not run"]) for block in every if "not run" in block.marks]


def _as_process(arguments: list[str], folder: Path, variables: Mapping[str, str]) -> Done:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    done = subprocess.run(
        [str(Path(sys.executable).parent / "agentclinic"), *arguments],
        cwd=folder,
        env={**kept, **variables},
        capture_output=True,
        text=True,
        timeout=LONG,
        stdin=subprocess.DEVNULL,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description="Follow README and docs; stop at the first line that is not true.")
    parser.add_argument("pages", nargs="*", type=Path, help="pages to follow (default: README and docs)")
    parser.add_argument("--list", action="store_true", help="list what is not run, and why")
    parser.add_argument("--python", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    if given.python:
        run_python(given.python)
        return
    left = not_run()
    for block, why in left:
        print(f"not run: {block.page.relative_to(ROOT)}:{block.line}: {why}")
    if given.list:
        return
    from scripted_server import ScriptedServer

    with tempfile.TemporaryDirectory(prefix="agentclinic-docs-") as scratch, ScriptedServer() as server:
        clinic = Clinic(_as_process, server.base_url, Path(scratch) / "home")
        total = 0
        for page in given.pages or PAGES:
            folder = Path(scratch) / page.stem
            folder.mkdir()
            try:
                ran = follow(page.resolve(), clinic, folder)
            except NotTrueError as error:
                sys.exit(f"not true: {error}")
            total += ran
            print(f"{page.name}: {ran} commands and examples", flush=True)
    print(f"{total} commands and examples are true, {len(left)} blocks are not run")


if __name__ == "__main__":
    main()
