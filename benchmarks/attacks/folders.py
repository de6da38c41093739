"""Run folders and working folders that someone else made, opened by a person whose keys are in the environment.

The folders are real runs, played at the attacker's server and cut short; each try names that server in another
spelling, asks for another variable, or plants a program, and then uses a command that a person would use. The programs
leave a mark if they run; the server sees every request.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import py_compile
import random
import re
import shutil
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from helpers import nejm, write_rows
from runs_support import AT_ENDPOINT, Process, only_run, own_cases, start, until
from scripted_server import ScriptedServer

TRIES = 200

Json = dict[str, Any]
SECRETS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "WARD_KEY")
"""Variables in the environment of the person who opens the folder."""
PROGRAM = """
from pathlib import Path
Path({mark!r}).write_text("ran")
class Doctor:
    def __init__(self, scenario): pass
    def inference_doctor(self, question): return "DIAGNOSIS READY: Migraine"
"""
HARMLESS = PROGRAM.replace("Path({mark!r})", "# Path")
READ_ONLY = (
    ("score", "--json", "{run}"),
    ("score", "--full", "{run}"),
    ("report", "{run}", "-o", "report.html"),
    ("compare", "{run}", "{other}"),
    ("runs", "{runs}"),
    ("view", "--no-browser", "--port", "0", "{runs}"),
)
PLAYING = (
    ("resume", "{run}"),
    ("resume", "{run}", "--no-check"),
    ("resume", "{run}", "--retry-failed", "--workers", "2"),
    ("run", "--config", "{run}/config.used.json"),
    ("run", "--config", "{run}/config.used.json", "--no-check", "--num_scenarios", "1"),
    ("regrade", "{run}", "--resynthesize"),
)
OPENED = (*PLAYING, *PLAYING, *READ_ONLY)
IN_FOLDER = (("run", "--num_scenarios", "1"), ("run", "--num_scenarios", "1", "--no-check"))
CONFIRMED = (("resume", "{run}", "--trust-program", "{run}/doctor.py"),)

Commands = tuple[tuple[str, ...], ...]


class Scene(NamedTuple):
    """What a try starts from."""

    folder: Path
    """The working folder of the person who opens the run."""
    runs: Path
    run: Path
    other: Path
    mark: Path
    """Exists if a planted program ran."""
    address: str
    """The attacker's server, in some spelling."""
    variable: str
    played: Mapping[str, Path]
    """The attacker's runs by kind."""
    draw: random.Random


def attack(tries: int, seed: int, folder: Path) -> Iterator[str | None]:
    draw = random.Random(seed)
    with ScriptedServer() as server:
        runs = _played(server, folder / "attacker")
        for number in range(tries):
            place = folder / str(number)
            yield _tried(draw, server, runs, place)
            shutil.rmtree(place)


def _played(server: ScriptedServer, folder: Path) -> dict[str, Path]:
    """Real runs of the attacker, each with one scenario left to play."""
    folder.mkdir()
    home = {"XDG_CONFIG_HOME": str(folder / "home"), "OPENAI_BASE_URL": server.base_url}
    cases = ["--dataset", str(own_cases(folder, 2))]
    (folder / "doctor.py").write_text(PROGRAM.format(mark=str(folder / "mark")))
    kinds = {
        "plain": AT_ENDPOINT,
        "uncertainty": ["--doctor", "uncertainty", *AT_ENDPOINT],
        "program": ["--doctor", str(folder / "doctor.py") + ":Doctor"],
        "builtin": [],
    }
    made = {}
    for kind, flags in kinds.items():
        process = start("run", *cases, *flags, "--output_dir", kind, cwd=folder, env=home)
        process.wait()
        made[kind] = only_run(folder / kind)
        journal = made[kind] / "scenarios.jsonl"
        journal.write_text(journal.read_text().splitlines(keepends=True)[0])
    return made


def _tried(draw: random.Random, server: ScriptedServer, runs: Mapping[str, Path], place: Path) -> str | None:
    variable = draw.choice(SECRETS)
    address = _spelled(draw, server.base_url)
    scene = Scene(
        folder=place / "work",
        runs=place / "runs",
        run=place / "runs" / "theirs",
        other=place / "runs" / "other",
        mark=place / "mark",
        address=address,
        variable=variable,
        played=runs,
        draw=draw,
    )
    scene.folder.mkdir(parents=True)
    scene.runs.mkdir()
    shutil.copytree(runs["builtin"], scene.other)
    trick = draw.choice(TRICKS)
    command = draw.choice(trick(scene))
    words = [word.format(run=scene.run, other=scene.other, runs=scene.runs) for word in command]
    server.reset()
    env = {name: f"sk-victim-{name.lower().replace('_', '-')}-0123456789" for name in SECRETS}
    process = start(*words, cwd=scene.folder, env={**env, "XDG_CONFIG_HOME": str(place / "home")})
    said = _view(process) if command[0] == "view" else _ended(process)
    what = f"{trick.__name__.strip('_')}, {' '.join(command)}"
    counts = server.counts()
    if scene.mark.exists():
        return f"{what}: a program ran, or a file was made"
    if "Traceback" in said:
        return f"{what}: a traceback: {said[-300:]!r}"
    if counts["received"] or counts["checks"]:
        keys = {
            entry["headers"].get("authorization") for entry in [*server.log(), *counts["checks"]] if "headers" in entry
        }
        return f"{what}: requests were sent, with {keys}"
    if any(value in said for value in env.values()):
        return f"{what}: a key was shown"
    return None


def _ended(process: Process) -> str:
    process.wait()
    return process.stdout + process.stderr


def _view(process: Process) -> str:
    """Open every page of the viewer that its first page links to, then stop it."""

    def address() -> re.Match[str] | None:
        with suppress(FileNotFoundError):  # it has not started yet
            return re.search(r"http://[^\s]+", process.stdout)
        return None

    until(lambda: bool(address()) or process.poll() is not None, "the viewer")
    if match := address():
        base = match[0].rstrip("/.")
        with urllib.request.urlopen(base, timeout=60) as page:
            links = set(re.findall(r'href="(/[^"]+)"', page.read().decode()))
        for link in sorted(links)[:8]:
            try:
                urllib.request.urlopen(base + link, timeout=60).close()
            except urllib.error.HTTPError:
                continue
    process.signal(signal.SIGINT)
    return _ended(process)


def _spelled(draw: random.Random, address: str) -> str:
    """The same server, written in another way."""
    port = address.rpartition(":")[2].partition("/")[0]
    return draw.choice(
        [
            f"http://127.0.0.1:{port}/v1",
            f"http://localhost:{port}/v1",
            f"http://LOCALHOST:{port}/v1/",
            f"http://api.openai.com@127.0.0.1:{port}/v1",
            f"http://nurse:secret@localhost:{port}/v1",
            f"http://127.0.0.1:{port}/v1//",
            f"http://127.0.0.1:{port}/api.openai.com/../v1",
            f"HTTP://127.0.0.1:{port}/v1",
            f" http://127.0.0.1:{port}/v1 ",
            f"http://127.1:{port}/v1",
            f"http://localhost.:{port}/v1",
        ]
    )


def _copied(scene: Scene, source: Path, **changes: Any) -> None:
    """Copy a run and change its settings; the digest that guards resuming is changed to fit."""
    shutil.copytree(source, scene.run)
    path = scene.run / "config.used.json"
    used = json.loads(path.read_text())
    for section, values in changes.items():
        used[section] = {**used.get(section, {}), **values}
    used.pop("_checksum", None)  # an edited file is accepted without one
    digest = used["agentclinic"]["digest"]
    bare = re.sub(r"//[^/@]*@", "//", str(used["openai"].get("base_url") or "").strip())
    digest["openai.base_url"] = bare or None
    digest["endpoints"] = {name: re.sub(r"//[^/@]*@", "//", e["base_url"]) for name, e in used["endpoints"].items()}
    digest |= {f"run.{key}": value for key, value in changes.get("run", {}).items() if f"run.{key}" in digest}
    digest |= used.pop("digest", {})
    path.write_text(json.dumps(used))


def _default_address(scene: Scene) -> Commands:
    _copied(scene, scene.played[scene.draw.choice(["plain", "uncertainty"])], openai={"base_url": scene.address})
    return OPENED


def _address_with_a_key_of_its_own(scene: Scene) -> Commands:
    """The file brings a key, so that key and address seem to belong together; the person's key must not go along."""
    _copied(
        scene, scene.played["plain"], openai={"base_url": scene.address, "api_key": None}, llm={"runtime": {"tries": 1}}
    )
    return OPENED


def _named_endpoint(scene: Scene) -> Commands:
    roles = {f"{role}_endpoint": "ward" for role in ("doctor", "patient", "measurement", "moderator")}
    _copied(
        scene,
        scene.played[scene.draw.choice(["plain", "uncertainty"])],
        endpoints={"ward": {"base_url": scene.address.strip(), "api_key_env": scene.variable, "prices": {}}},
        run=roles,
    )
    return OPENED


def _program(scene: Scene) -> Commands:
    """A doctor in the run's folder, with the hash that the folder records."""
    program = scene.run / "doctor.py"
    where = scene.draw.choice(
        [str(program), os.path.relpath(program, scene.folder), f"{program.parent}/../theirs/doctor.py"]
    )
    _copied_with_program(scene, PROGRAM.format(mark=str(scene.mark)), where)
    return OPENED


def _forged_cache(scene: Scene) -> Commands:
    """A harmless doctor, which the person reads and confirms, with another one in Python's cache beside it."""
    program = scene.run / "doctor.py"
    _copied_with_program(scene, HARMLESS, str(program))
    evil = scene.runs / "evil.py"
    evil.write_text(PROGRAM.format(mark=str(scene.mark)))
    cached = Path(importlib.util.cache_from_source(str(program)))
    cached.parent.mkdir()
    py_compile.compile(str(evil), str(cached), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    return CONFIRMED


def _copied_with_program(scene: Scene, code: str, where: str) -> None:
    digest = hashlib.sha256(code.encode()).hexdigest()[:16]
    _copied(scene, scene.played["program"], run={"doctor": f"{where}:Doctor"}, digest={"doctor_file": digest})
    (scene.run / "doctor.py").write_text(code)


def _changed_program(scene: Scene) -> Commands:
    """The recorded hash is that of another, harmless file."""
    program = scene.run / "doctor.py"
    _copied(scene, scene.played["program"], run={"doctor": f"{program}:Doctor"})
    program.write_text(PROGRAM.format(mark=str(scene.mark)))
    return OPENED


def _link(scene: Scene) -> Commands:
    """A link in the run's folder where a command writes, to a file of the person that does not exist yet."""
    shutil.copytree(scene.played["builtin"], scene.run)
    name = scene.draw.choice(["scenarios.jsonl.new", "judgements/builtin.jsonl", ".lock", "judgements/.lock", "shards"])
    (scene.run / name).parent.mkdir(exist_ok=True)
    (scene.run / name).unlink(missing_ok=True)
    (scene.run / name).symlink_to(scene.mark)
    return (("resume", "{run}", "--retry-failed"), ("regrade", "{run}", "--moderator-llm", "builtin"))


def _picture(scene: Scene) -> Commands:
    """Cases whose image is a picture on the person's disk, at a server that needs no key."""
    picture = scene.folder.parent / "me.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n")
    image = scene.draw.choice([str(picture), "../me.png", picture.as_uri(), "link.png"])
    (scene.folder / "link.png").symlink_to(picture)
    roles = dict.fromkeys(("doctor_llm", "patient_llm", "measurement_llm", "moderator_llm"), "scripted")
    roles |= dict.fromkeys((name.replace("_llm", "_endpoint") for name in list(roles)), "open")
    settings = {
        "run": {**roles, "dataset": "cases.jsonl", "doctor_image_request": True},
        "endpoints": {"open": {"base_url": scene.address.strip()}},
    }
    write_rows(scene.folder / "cases.jsonl", nejm(image_url=image))
    (scene.folder / "agentclinic.config.json").write_text(json.dumps(settings))
    return IN_FOLDER


def _cluster(scene: Scene) -> Commands:
    port = re.search(r":(\d+)/", scene.address)
    assert port is not None
    _copied(scene, scene.played["builtin"], run={"engine": "ray", "address": f"127.0.0.1:{port[1]}"})
    return OPENED


def _cloned_settings(scene: Scene) -> Commands:
    """A working folder with the usual files."""
    roles = dict.fromkeys(("doctor_llm", "patient_llm", "measurement_llm", "moderator_llm"), "scripted")
    settings: Json = {"run": roles}
    if scene.draw.random() < 0.5:
        (scene.folder / "llm.config.json").write_text(json.dumps({"openai": {"base_url": scene.address}}))
    else:
        settings |= {"endpoints": {"ward": {"base_url": scene.address.strip(), "api_key_env": scene.variable}}}
        settings["run"] |= {name.replace("_llm", "_endpoint"): "ward" for name in roles}
    (scene.folder / "agentclinic.config.json").write_text(json.dumps(settings))
    probe = ("probe", "scripted", "--quick", *(("--endpoint", "ward") if "endpoints" in settings else ()))
    return (*IN_FOLDER, probe)


def _cloned_dotenv(scene: Scene) -> Commands:
    roles = dict.fromkeys(("doctor_llm", "patient_llm", "measurement_llm", "moderator_llm"), "scripted")
    (scene.folder / "agentclinic.config.json").write_text(json.dumps({"run": roles}))
    lines = [f"OPENAI_BASE_URL={scene.address.strip()}", "XDG_CONFIG_HOME=."]
    scene.draw.shuffle(lines)
    (scene.folder / ".env").write_text("\n".join(lines) + "\n")
    return (*IN_FOLDER, ("probe", "scripted", "--quick"))


def _cloned_program(scene: Scene) -> Commands:
    (scene.folder / "doctor.py").write_text(PROGRAM.format(mark=str(scene.mark)))
    (scene.folder / "agentclinic.config.json").write_text(json.dumps({"run": {"doctor": "doctor.py:Doctor"}}))
    return IN_FOLDER


TRICKS = (
    _default_address,
    _default_address,
    _address_with_a_key_of_its_own,
    _named_endpoint,
    _named_endpoint,
    _program,
    _forged_cache,
    _changed_program,
    _link,
    _picture,
    _cluster,
    _cloned_settings,
    _cloned_settings,
    _cloned_dotenv,
    _cloned_program,
)
