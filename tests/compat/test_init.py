"""`agentclinic init DIR`, and the launcher with the package's name."""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest
from scripted_server import LONG

import agentclinic
from agentclinic import load_run
from agentclinic.cli import main
from agentclinic.clinic.prompts import SHIPPED, load_prompts
from agentclinic.compat.init import EXAMPLES, LAUNCHER, TEMPLATES, clinic_config, llm_config, write_folder
from agentclinic.config import RunSettings, load_settings
from agentclinic.errors import InputError

ROOT = Path(agentclinic.__file__).parent.parent


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_folder(tmp_path / "my clinic", original=True)
    return tmp_path / "my clinic"


def python(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A new Python that finds the package only as installed."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, timeout=LONG
    )


def test_with_original_the_folder_has_launcher_prompts_and_a_place_for_data(folder: Path) -> None:
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert found == {
        "agentclinic.config.json",
        "agent/agent_config.yaml",
        "agent/diagnosis_sessions/README.md",
        "agent/tools/__init__.py",
        "agent/tools/diagnosis_session.py",
        "agent/tools/implementations.py",
        "benchmarks/AgentClinic/agentclinic_api_only.py",
        "benchmarks/AgentClinic/uncertainty_aware_doctor.py",
        "llm.config.json",
        "llm.py",
        "policy_engine.py",
        "agentclinic.py",
        ".gitignore",
        "generate_cases/gen.config.json",
        "generate_cases/gen_mimic_tutorial.py",
        "generate_cases/gen_medqa_tutorial.py",
        "processed_data/README.md",
        "examples/my_doctor.py",
        "examples/test_my_doctor.py",
        "examples/my_cases.jsonl",
        "examples/sweep.json",
        "prompts/no_discriminators.json",
        *(f"prompts/{path.name}" for path in SHIPPED.glob("*.json")),
    }
    assert ".env" in (folder / ".gitignore").read_text().splitlines()


def test_the_five_files_for_a_newcomer_work_as_its_readme_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["init", str(tmp_path / "clinic")])
    shown = capsys.readouterr().out
    monkeypatch.chdir(tmp_path / "clinic")
    readme = Path("README.md").read_text()
    files = sorted(path.name for path in Path().iterdir())
    assert files == ["README.md", "agentclinic.config.json", "llm.config.json", "my_cases.jsonl", "my_doctor.py"]
    assert sorted(re.findall(r"^\| `(.+?)` \|", readme, re.MULTILINE)) == files

    following = readme.split("```")[1].split("\n")[1:-1]
    assert len(following) == 3
    assert "\n  ".join([f"cd {tmp_path / 'clinic'}", *following]) in shown
    first, own, view = (shlex.split(command)[1:] for command in following)
    assert view == ["view"]
    main([*first, "--limit", "2", "--quiet"])
    main([*own, "--quiet"])
    capsys.readouterr()
    main(["data", "check", "my_cases.jsonl", "--quality", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (told["files"][0]["rows"], told["files"][0]["problems"]) == (3, [])
    played = {path.name.split("_2")[0]: load_run(path).summary for path in Path("runs").iterdir()}
    assert played["OpenOSCE"].presented == 2
    assert played["my_cases"].outcomes == {"diagnosed_wrong": 3}, "it says so: without a model, Viral infection"


def test_the_written_settings_are_the_defaults(folder: Path) -> None:
    settings = load_settings(folder / "agentclinic.config.json", folder / "llm.config.json")
    assert settings.run == RunSettings(dataset="OpenOSCE")
    assert settings.openai.api_key is None
    assert load_prompts(folder / "prompts").digests == load_prompts().digests
    assert settings.datasets["MedQA"] == str(folder / "processed_data/agentclinic_medqa.jsonl")


def test_existing_files_are_kept_and_missing_ones_are_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    (folder / "agentclinic.config.json").write_text("mine")
    (folder / "llm.config.json").unlink()
    write_folder(folder, original=True)
    assert (folder / "agentclinic.config.json").read_text() == "mine"
    assert json.loads((folder / "llm.config.json").read_text()) == llm_config()
    shown = capsys.readouterr().out
    assert f"kept  {folder / 'agentclinic.config.json'}" in shown
    assert f"wrote {folder / 'llm.config.json'}" in shown
    assert f"cd '{folder}'" in shown
    assert "README.md there" not in shown


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(InputError, match="taken is a file; name a folder"):
        write_folder(tmp_path / "taken")
    with pytest.raises(InputError, match="cannot be written"):
        write_folder(tmp_path / "taken" / "below")


@pytest.mark.parametrize("elsewhere", [False, True], ids=["inside", "from another folder"])
def test_the_launcher_reaches_the_installed_package(folder: Path, tmp_path: Path, elsewhere: bool) -> None:
    done = python(str(folder / "agentclinic.py"), "--help", cwd=tmp_path if elsewhere else folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Evaluate a doctor on a data set." in done.stdout


@pytest.mark.slow
def test_the_launcher_runs_the_originals_command_line(folder: Path) -> None:
    done = python(
        "agentclinic.py", "--config", "agentclinic.config.json", "--workers", "2", "--num_scenarios", "2", "--json",
        cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["presented"] == 2
    (run,) = (folder / "runs").iterdir()
    assert len((run / "scenarios.jsonl").read_text().splitlines()) == 2


CHECK = (
    "import agentclinic, sys; print(agentclinic.__file__, agentclinic.DoctorAgent.__name__, agentclinic.main.__name__)"
)


@pytest.mark.slow
@pytest.mark.parametrize("elsewhere", [False, True], ids=["inside", "from another folder"])
def test_importing_in_the_folder_gives_the_installed_package(folder: Path, tmp_path: Path, elsewhere: bool) -> None:
    if elsewhere:
        script = folder / "mine.py"
        script.write_text(CHECK)
        done = python(str(script), cwd=tmp_path)
    else:
        done = python("-c", CHECK, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [agentclinic.__file__, "DoctorAgent", "original_main"]


def test_the_launcher_also_works_next_to_the_package(tmp_path: Path) -> None:
    done = python(str(ROOT / "agentclinic.py"), "--version", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"agentclinic {agentclinic.__version__}\n")


def test_without_the_package_the_launcher_says_what_to_do(folder: Path) -> None:
    done = python("-S", "agentclinic.py", cwd=folder)
    assert done.returncode == 2
    assert done.stderr == "Error: agentclinic is not installed; run `pip install DIR`, where DIR is the repository\n"


def test_the_repositorys_root_has_what_init_writes() -> None:
    assert (ROOT / "agentclinic.py").read_text() == LAUNCHER.read_text()
    assert json.loads((ROOT / "agentclinic.config.json").read_text()) == clinic_config()
    assert json.loads((ROOT / "llm.config.json").read_text()) == llm_config()


def test_the_repositorys_examples_are_in_the_wheel_and_in_the_folder(folder: Path) -> None:
    written = {path.name: path.read_text() for path in (folder / "examples").iterdir()}
    ours = {path.name: path.read_text() for path in (ROOT / "examples").iterdir() if path.is_file()}
    for name in ("train_grpo.py", "rollouts.py"):  # need an extra, and a model to train
        ours.pop(name)
    assert written == ours
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    packed = (TEMPLATES / "examples").relative_to(ROOT)
    assert wheel["force-include"] == {f"examples/{name}": str(packed / name) for name in EXAMPLES}
    assert not (ROOT / packed).exists(), "one set of files"


def test_the_examples_work_as_they_are(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    runpy.run_path("examples/test_my_doctor.py", run_name="__main__")
    assert capsys.readouterr().out.count("passed: test_") == 4
    main(["sweep", "examples/sweep.json", "--dry-run"])
    assert "doctor door_only: 112 encounters" in capsys.readouterr().out


def test_the_originals_module_of_agents_can_be_imported_from_its_place(folder: Path) -> None:
    script = folder / "benchmarks" / "AgentClinic" / "script.py"
    script.write_text("import agentclinic_api_only as theirs\nprint(*sorted(vars(theirs)))\n")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=LONG)
    assert done.returncode == 0, done.stderr
    drop_in = {"UncertaintyAwareDoctorAgent"}  # in a module of its own
    assert set(agentclinic._ORIGINAL) - drop_in <= set(done.stdout.split())


def test_the_forks_modules_can_be_imported_from_their_place(folder: Path) -> None:
    (folder / "script.py").write_text(
        "from llm import get_openai_client, init_openai_client, load_llm_config, query_model, set_llm_config\n"
        "from policy_engine import DifferentialDiagnosisEngine\n"
        "from agentclinic import DoctorAgent, load_prompts_json\n"
        "print(DifferentialDiagnosisEngine(llm_model='m', policy=load_prompts_json('test_policy')).llm_model)\n"
    )
    done = subprocess.run([sys.executable, "script.py"], cwd=folder, capture_output=True, text=True, timeout=LONG)
    assert (done.returncode, done.stdout.strip()) == (0, "m"), done.stderr


ORIGINAL_COMMANDS = {
    "All imports successful!": """
import sys; sys.path.insert(0, 'agent')
from tools import diagnosis_step, final_diagnosis, set_current_session, get_current_session
from tools.diagnosis_session import append_step, get_accumulated_notes
print('All imports successful!')
""",
    "Agent config correct!": """
import yaml
with open('agent/agent_config.yaml') as f:
    cfg = yaml.safe_load(f)
assert 'uncertainty_aware_doctor' in cfg['agents']
assert cfg['agents']['uncertainty_aware_doctor']['max_turns'] == 1
print('Agent config correct!')
""",
    "Tool execution successful!\nResult: REQUEST TEST: Chest_X-Ray": """
import sys; sys.path.insert(0, 'agent')
from tools import execute_tool, set_current_session, clear_session

test_id = 'test_123'
clear_session(test_id)
set_current_session(test_id)

result = execute_tool('diagnosis_step', {
    'new_information': 'Patient has fever',
    'current_uncertainties': 'pneumonia, flu',
    'next_step_action': 'REQUEST TEST: Chest_X-Ray'
})
assert 'REQUEST TEST: Chest_X-Ray' in result
print('Tool execution successful!')
print('Result:', result)
""",
}
"""The original's three commands, unchanged, and what each prints."""


@pytest.mark.parametrize("printed", ORIGINAL_COMMANDS)
def test_the_originals_commands_run_unchanged_in_the_folder(folder: Path, printed: str) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        ["bash", "-c", f'python3 -c "{ORIGINAL_COMMANDS[printed]}"'],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LONG,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == printed + "\n"
    if "Tool" in printed:
        written = json.loads((folder / "agent" / "diagnosis_sessions" / "test_123.json").read_text())
        assert written["steps"][0]["current_uncertainties"] == ["pneumonia", "flu"]


FOREIGN = """
    import sys
    from uncertainty_aware_doctor import UncertaintyAwareDoctorAgent

    class ScenarioMedQA:
        def __init__(self, row):
            self.tests, self.diagnosis = row["tests"], row["diagnosis"]
        def patient_information(self):
            raise SystemExit("a doctor read the patient's script")
        def examiner_information(self):
            return "Assess a 58-year-old man with a hot, swollen big toe."
        def exam_information(self):
            raise SystemExit("a doctor read the results")
        def diagnosis_information(self):
            raise SystemExit("a doctor read the answer")

    def main():
        scenario = ScenarioMedQA({"tests": {}, "diagnosis": "Gout"})
        doctor_agent = UncertaintyAwareDoctorAgent(
            scenario=scenario, bias_present=None, backend_str="builtin", max_infs=4, img_request=False,
            agent_type="uncertainty_aware_doctor")
        said = ""
        for turn in range(4):
            reply = doctor_agent.inference_doctor(said, image_requested=False, memory_context="")
            print(reply)
            if "DIAGNOSIS READY" in reply:
                break
            said = "RESULTS: not available" if "REQUEST TEST" in reply else "Yes, it hurts very much since yesterday."
        assert doctor_agent.total_tokens == doctor_agent.prompt_tokens + doctor_agent.completion_tokens == 0
        print(doctor_agent.session_id)

    if __name__ == "__main__":
        main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("elsewhere", [False, True], ids=["inside", "from another folder"])
def test_the_doctor_drops_into_a_checkout_of_the_original(tmp_path: Path, folder: Path, elsewhere: bool) -> None:
    """There, a script has the package's name, and scenarios have only the original's methods."""
    checkout = tmp_path / "AgentClinic"
    checkout.mkdir()
    (checkout / "agentclinic.py").write_text(textwrap.dedent(FOREIGN))
    shutil.copy(folder / "benchmarks" / "AgentClinic" / "uncertainty_aware_doctor.py", checkout)
    cwd = tmp_path if elsewhere else checkout
    done = python(str(checkout / "agentclinic.py"), cwd=cwd)
    assert (done.returncode, done.stderr) == (0, "")
    *said, session = done.stdout.splitlines()
    assert 2 <= len(said) <= 4
    assert said[-1].startswith("DIAGNOSIS READY: ")
    assert session.startswith("scenario_")
    written = json.loads((cwd / "agent" / "diagnosis_sessions" / f"{session}.json").read_text())
    assert len(written["steps"]) == len(said)
    assert f"DIAGNOSIS READY: {written['final_diagnosis']}" == said[-1]


def test_the_drop_in_says_what_is_missing(folder: Path) -> None:
    done = python(
        "-S",
        "-c",
        "import uncertainty_aware_doctor as u; u.UncertaintyAwareDoctorAgent",
        cwd=folder / "benchmarks" / "AgentClinic",
    )
    assert done.returncode == 1
    assert "agentclinic is not installed; run `pip install DIR`" in done.stderr
