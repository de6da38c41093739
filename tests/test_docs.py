"""The documentation is true: the reference is current, links lead somewhere, commands and the example exist."""

from __future__ import annotations

import ast
import json
import re
import runpy
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

import anyio
import pytest
import yaml
from original_prompts import DIALECT

from agentclinic.cli.reference import page
from agentclinic.clinic.prompts import SHIPPED
from agentclinic.config import Given, RunSettings, Settings
from agentclinic.doctors.planner.settings import CONSTRAINTS
from agentclinic.doctors.solvable import CHOICES
from agentclinic.results.regret import KINDS
from agentclinic.runs.build import Models
from agentclinic.runs.plan import make_plan
from agentclinic.runs.play import play
from agentclinic.worlds.model import Costs, Disease, Finding, Utilities, World

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_settings_page_is_what_the_settings_say() -> None:
    current = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert current == page(), "run: python -m agentclinic.cli.reference"


@pytest.mark.parametrize("document", PAGES, ids=lambda path: path.name)
def test_links_lead_to_files_that_are_there(document: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)\)", document.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (document.parent / link).exists()]
    assert missing == []


@pytest.mark.slow
def test_flags_are_written_with_dashes() -> None:
    """In the docs and in what the program prints; only the table of the original's flags has its spelling."""
    places = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "agentclinic").rglob("*.py"))]
    for path in places:
        text = re.sub(r"(?s)## The original's flags.*?\n\n[^|`]", "", path.read_text(encoding="utf-8"))
        text = re.sub(r".*(?:agentclinic_api_only|the original's command lines).*", "", text)
        assert re.findall(r"(?<![\w-])--[a-z]+_[a-z_]+", text) == [], path


@pytest.mark.parametrize("document", PAGES, ids=lambda path: path.name)
def test_no_page_names_a_path_outside_the_repository(document: Path) -> None:
    assert "../shared" not in document.read_text(encoding="utf-8") or document.name == "CONTRIBUTING.md"


def test_the_example_doctor_plays_a_case() -> None:
    async def played() -> str:
        doctor = f"{ROOT / 'examples' / 'my_doctor.py'}:MyDoctor"
        settings = Settings(run=RunSettings(doctor=doctor, num_scenarios=1), given=Given(flags={"doctor": doctor}))
        plan = make_plan(settings)
        async with Models(plan.settings) as models:
            return (await play(plan, plan.units[0], models)).status

    assert anyio.run(played) == "diagnosed"


def test_the_data_card_counts_match_the_data() -> None:
    from agentclinic.cases.registry import load_cases
    from agentclinic.vocabulary.base import knowledge

    cases, version_1 = (load_cases(name, lockbox=True) for name in ("OpenOSCE", "OpenOSCE_1"))
    told = [case.annotations for case in cases]
    assert len(cases) == 160
    assert sum(case.in_lockbox for case in cases) == 48
    assert sum(case.in_lockbox for case in version_1) == 32
    assert sum(note["twin_of"] is not None for note in told) == 56
    assert len({case.diagnosis for case in cases}) == 140
    first = [case for case in cases if case.name in {one.name for one in version_1}]
    assert sum(knowledge().disease_named(case.diagnosis) is None for case in first) == 20
    sealed = [case for case in cases if case.in_lockbox]
    assert sum(knowledge().disease_named(case.diagnosis) is not None for case in sealed) == 19
    assert Counter(str(note["tier"]) for note in told) == {"core": 49, "hard": 99, "resource-limited": 12}
    assert sum(note["atypical"] for note in told) / len(told) >= 0.15
    assert sum(note["Harm_If_Missed"] <= 1 for note in told) >= 6
    assert len({note["Specialty"] for note in told}) >= 10
    assert len({note["canary"] for note in told}) == 160


def test_the_walkthrough_of_the_policy_is_the_encounter_as_it_goes_now() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "make_policy_walkthrough.py"))
    again = "`python docs/make_policy_walkthrough.py` writes it again"
    assert made["page"](anyio.run(made["encounter"])) == made["PAGE"].read_text(encoding="utf-8"), again


def test_the_page_on_prompts_has_every_key_and_placeholder_of_both_dialects() -> None:
    text = (ROOT / "docs" / "prompts.md").read_text(encoding="utf-8")
    policy_rules = {"constraints", "differential_settings", "planning_rules", "red_flags"}  # docs/test-policy.md
    ours = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in SHIPPED.glob("*.json")}
    for name, file in (*ours.items(), *DIALECT.items()):
        assert f"`{name}.json`" in text
        missing = [key for key in file.keys() - policy_rules if not re.search(rf"[`.]{key}[`.]", text)]
        texts = [value for value in file.values() if isinstance(value, str)]
        missing += [found for found in re.findall(r"\{[a-z_]*\}", "".join(texts)) if f"`{found}`" not in text]
        assert missing == [], name
    for theirs in CONSTRAINTS:
        assert f"`constraints.{theirs}`" in text


def test_the_page_on_worlds_has_every_kind_doctor_and_key() -> None:
    text = (ROOT / "docs" / "solvable.md").read_text(encoding="utf-8")
    rows = {line.split(" | ")[0].strip("| ") for line in text.splitlines() if line.startswith("| ")}
    kinds = {f"{words} (`{kind}`)" for kind, words in KINDS.items()}
    assert {*kinds, *(f"`{name}`" for name in CHOICES)} <= rows
    keys = "\n".join(line for line in text.partition("## Your own world")[2].splitlines() if line.startswith("| "))
    for part in (World, Disease, Finding, Utilities, Costs):
        assert [key for key in part.model_fields if not re.search(rf"[`.]{key}[`.]", keys)] == []


def test_the_map_for_newcomers_leads_to_files_that_are_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.partition("## Where things are")[2].partition("## Rules")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ") and "`agentclinic/" in line]
    assert len(rows) >= 20
    for row in rows:
        folder = ROOT
        for path in re.findall(r"`([\w/]+\.(?:py|js|css))`", row):
            folder = (ROOT / path).parent if "/" in path else folder  # a bare name is beside the one before it
            assert (folder / Path(path).name).is_file(), path


def test_every_threat_has_a_defence_and_a_test() -> None:
    text = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    rows = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| ") and "::" in line]
    assert len(rows) >= 25
    for threat, defence, shown in rows:
        assert threat.strip(), shown
        assert defence.strip(), threat
        file, name = shown.strip(" `").split("::")
        assert f"def test_{name}(" in (ROOT / "tests" / file).read_text(encoding="utf-8"), f"{threat}: {shown}"


def test_every_statement_of_the_original_has_a_test_that_is_run() -> None:
    """The counts are those of the rows, none of which is without its test; a difference has a reason."""
    text = (ROOT / "docs" / "original.md").read_text(encoding="utf-8")
    lines = [
        line.strip("| ").split(" | ") for line in text.splitlines() if re.match(r"\| (000|001|002|orig) \| ", line)
    ]
    rows = [
        (statement, *verdict.partition(": ")[::2], call.strip("`"), shown.strip("`"))
        for _, statement, verdict, call, shown in lines
    ]
    assert len(rows) >= 134, "a statement may be added, not dropped"
    assert len({statement for statement, *_ in rows}) == len(rows)
    counts = {verdict: sum(row[1] == verdict for row in rows) for verdict in ("works", "differs", "missing")}
    assert sum(counts.values()) == len(rows)
    said = f"Of these {len(rows)} statements, {counts['works']} work, {counts['differs']} differ on purpose, and "
    assert f"{said}{counts['missing']} are missing" in text
    support = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "support").glob("*.py"))
    for statement, verdict, why, call, shown in rows:
        assert bool(why) == (verdict == "differs"), f"{statement}: a difference needs a reason"
        assert not why or (len(why) > 40 and why.endswith(".")), f"{statement}: {why}"
        if verdict != "missing":
            file, name = shown.split("::")
            marks = _marks(ROOT / "tests" / file).get(f"test_{name}")
            assert marks is not None, f"{statement}: pytest does not find {shown}"
            assert not re.search(r"\b(skip|xfail)\b", marks), f"{statement}: {shown} is never run"
            source = support + (ROOT / "tests" / file).read_text(encoding="utf-8")
            words = re.findall(r"--[a-z-]+|\b\w+(?=\()|[a-z]+_[a-z_]+", call)
            unseen = [word for word in words if word.strip("-").replace("-", "_") not in source]
            assert not unseen, f"{statement}: {shown} does not use {unseen}"
            assert call.strip("?"), f"{statement}: a command or call is missing"


@cache
def _marks(file: Path) -> dict[str, str]:
    """The tests that pytest finds in a file, and their decorators; `needs_...` skips one only without its data."""
    defined = ast.parse(file.read_text(encoding="utf-8")).body
    tests = [node for node in defined if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {test.name: " ".join(map(ast.unparse, test.decorator_list)) for test in tests}


def test_the_examples_for_clusters_can_be_read() -> None:
    script, job = (ROOT / "examples" / "cluster" / name for name in ("clinic.sbatch", "clinic-rayjob.yaml"))
    subprocess.run(["bash", "-n", str(script)], check=True)
    spec = yaml.safe_load(job.read_text(encoding="utf-8"))["spec"]
    assert spec["entrypoint"].count("--engine ray --address auto") == 1
    head, (workers,) = spec["rayClusterSpec"]["headGroupSpec"], spec["rayClusterSpec"]["workerGroupSpecs"]
    keys = ["clinic-key" in json.dumps(group) for group in (head, workers)]
    assert keys == [True, False], "the key is in the head's container alone"
