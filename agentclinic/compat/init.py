"""`agentclinic init DIR`: a folder to start in; with `--original`, all of the original's files."""

from __future__ import annotations

import json
import shlex
from importlib.resources import files
from pathlib import Path

from agentclinic.cases.registry import DATASETS
from agentclinic.clinic.prompts import SHIPPED
from agentclinic.config import LLMFile, RunSettings
from agentclinic.doctors.uncertainty.agent_config import SHIPPED as AGENTS
from agentclinic.errors import InputError
from agentclinic.generate.settings import GenFile

TEMPLATES = Path(str(files("agentclinic") / "compat" / "templates"))
LAUNCHER = TEMPLATES / "agentclinic.py"
EXAMPLES = ("my_doctor.py", "test_my_doctor.py", "my_cases.jsonl", "sweep.json")
"""In the repository's `examples`; in a wheel, among the templates (pyproject.toml)."""
_KEYS = """
    inf_type dataset num_scenarios total_inferences workers doctor_llm patient_llm measurement_llm
    moderator_llm doctor_bias patient_bias doctor_image_request doctor_test_policy_enabled doctor_test_policy
    output_dir
""".split()
"""The settings a newcomer sees first; docs/settings.md has all of them."""


def write_folder(folder: Path, *, original: bool = False) -> None:
    """Write what is missing of five files to start with, or of the original's; existing files are kept."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; name a folder")
    written, kept = [], []
    for name, text in (original_files() if original else _first()).items():
        path = folder / name
        if path.exists():
            kept.append(path)
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise InputError(f"{path}: cannot be written ({error.strerror})") from None
        written.append(path)
    for path in written:
        print(f"wrote {path}")
    for path in kept:
        print(f"kept  {path}")
    doctor = "examples/my_doctor.py:MyDoctor" if original else "my_doctor.py:MyDoctor --dataset my_cases.jsonl"
    print(f"\nNext:\n  cd {shlex.quote(str(folder))}\n  agentclinic run\n  agentclinic run --doctor {doctor}")
    if not original:
        print("  agentclinic view")
    if folder / "README.md" in written:
        print("Its README.md says what each file is.")


def _first() -> dict[str, str]:
    return {
        "README.md": _template("first.md"),
        "agentclinic.config.json": _json({"run": clinic_config()["run"]}),
        "llm.config.json": _json(llm_config()),
        "my_doctor.py": _template("examples/my_doctor.py"),
        "my_cases.jsonl": _template("examples/my_cases.jsonl"),
    }


def original_files() -> dict[str, str]:
    """What `init --original` writes: the text of each file, by its path."""
    return {
        "agentclinic.config.json": _json(clinic_config()),
        "llm.config.json": _json(llm_config()),
        "agentclinic.py": LAUNCHER.read_text(encoding="utf-8"),
        **{name: _template(name) for name in ("llm.py", "policy_engine.py")},
        "benchmarks/AgentClinic/agentclinic_api_only.py": _template("agentclinic_api_only.py"),
        "benchmarks/AgentClinic/uncertainty_aware_doctor.py": _template("uncertainty_aware_doctor.py"),
        "agent/agent_config.yaml": AGENTS.read_text("utf-8"),
        **{f"agent/tools/{path.name}": path.read_text("utf-8") for path in sorted((TEMPLATES / "tools").glob("*.py"))},
        "agent/diagnosis_sessions/README.md": _template("sessions.md"),
        **{f"examples/{name}": _template(f"examples/{name}") for name in EXAMPLES},
        **{f"prompts/{path.name}": path.read_text(encoding="utf-8") for path in sorted(SHIPPED.glob("*.json"))},
        "prompts/no_discriminators.json": _json({"differential_settings": {"discriminators": "off"}}),
        "generate_cases/gen.config.json": _json(gen_config()),
        **{f"generate_cases/{script}": _gen_script(script, source) for script, source in _GEN_SCRIPTS.items()},
        "processed_data/README.md": _template("data.md"),
        ".gitignore": _NOT_KEPT,
    }


def _template(name: str) -> str:
    place = TEMPLATES if (TEMPLATES / name).exists() else TEMPLATES.parents[2]
    return (place / name).read_text("utf-8")


def clinic_config() -> dict[str, object]:
    """The original's `agentclinic.config.json` with our defaults; the repository's root has the same."""
    defaults = RunSettings().model_dump(mode="json")
    return {
        "run": {key: defaults[key] for key in _KEYS} | {"dataset": "OpenOSCE"},
        "datasets": {d.name: d.path.as_posix() for d in DATASETS.values() if not d.bundled},
    }


def llm_config() -> dict[str, object]:
    """The `llm.config.json` of a new folder; without an API key, on purpose."""
    data: dict[str, object] = LLMFile().model_dump(mode="json")
    return data


_GEN_SCRIPTS = {"gen_mimic_tutorial.py": "mimic", "gen_medqa_tutorial.py": "medqa"}


def gen_config() -> dict[str, object]:
    """The `gen.config.json` of a new folder: the original's keys, with paths in the new folder."""
    defaults = GenFile()
    return {
        "common": {"model": defaults.common.model, "llm_config": "llm.config.json", "sleep_seconds": 0.0},
        "mimic": {"limit": defaults.mimic.limit, "output": defaults.mimic.output, "base_dataset_dir": "mimic-iv"},
        "medqa": {"limit": defaults.medqa.limit, "output": defaults.medqa.output, "base_dataset_dir": "medqa"},
    }


def _gen_script(script: str, source: str) -> str:
    return _template("gen_source.py").replace("{script}", script).replace("{source}", source)


def _json(data: object) -> str:
    return json.dumps(data, indent=2) + "\n"


_NOT_KEPT = "runs/\n.env\nprocessed_data/*\n!processed_data/README.md\nagent/diagnosis_sessions/*.json\n"
