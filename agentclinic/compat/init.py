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


_NEXT = {
    False: ("run", "run --doctor my_doctor.py:MyDoctor --dataset my_cases", "view"),
    True: ("run", "run --doctor examples/my_doctor.py:MyDoctor"),
}
"""The commands to go on with, by whether the folder is the original's."""


def write_folder(folder: Path, *, original: bool = False) -> None:
    """Write what is missing of five files to start with, or of the original's; existing files are kept."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; name a folder")
    written, kept = [], []
    for name, text in (_original() if original else _first()).items():
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
    print("\n  ".join(["\nNext:", f"cd {shlex.quote(str(folder))}", *(f"agentclinic {do}" for do in _NEXT[original])]))
    if not original:
        print("README.md there says what each file is.")


def _first() -> dict[str, str]:
    """What a newcomer needs."""
    config = clinic_config() | {"datasets": {"my_cases": "my_cases.jsonl"}}
    return {
        "README.md": (TEMPLATES / "README.md").read_text("utf-8"),
        "agentclinic.config.json": _json(config),
        "llm.config.json": _json(llm_config()),
        "my_doctor.py": _example("my_doctor.py"),
        "my_cases.jsonl": _example("my_cases.jsonl"),
    }


def _original() -> dict[str, str]:
    return {
        "agentclinic.config.json": _json(clinic_config()),
        "llm.config.json": _json(llm_config()),
        "agentclinic.py": LAUNCHER.read_text(encoding="utf-8"),
        **{
            f"benchmarks/AgentClinic/{name}": (TEMPLATES / name).read_text("utf-8")
            for name in ("agentclinic_api_only.py", "uncertainty_aware_doctor.py")
        },
        "agent/agent_config.yaml": AGENTS.read_text("utf-8"),
        **{f"agent/tools/{path.name}": path.read_text("utf-8") for path in sorted((TEMPLATES / "tools").glob("*.py"))},
        "agent/diagnosis_sessions/README.md": _SESSIONS_NOTE,
        **{f"examples/{name}": _example(name) for name in EXAMPLES},
        **{f"prompts/{path.name}": path.read_text(encoding="utf-8") for path in sorted(SHIPPED.glob("*.json"))},
        "prompts/no_discriminators.json": _json({"differential_settings": {"discriminators": "off"}}),
        "generate_cases/gen.config.json": _json(gen_config()),
        **{f"generate_cases/{script}": _gen_script(script, source) for script, source in _GEN_SCRIPTS.items()},
        "processed_data/README.md": _DATA_NOTE,
        ".gitignore": _NOT_KEPT,
    }


def _example(name: str) -> str:
    packed = TEMPLATES / "examples"
    folder = packed if packed.is_dir() else TEMPLATES.parents[2] / "examples"
    return (folder / name).read_text("utf-8")


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
    text = (TEMPLATES / "gen_source.py").read_text(encoding="utf-8")
    return text.replace("{script}", script).replace("{source}", source)


def _json(data: object) -> str:
    return json.dumps(data, indent=2) + "\n"


_NOT_KEPT = "runs/\n.env\nprocessed_data/*\n!processed_data/README.md\nagent/diagnosis_sessions/*.json\n"
_SESSIONS_NOTE = """\
One file for each consultation of an uncertainty-aware doctor outside a run. A run keeps its sessions in its own
folder. `agentclinic sessions agent/diagnosis_sessions` shows them.
"""
_DATA_NOTE = """\
Put case files here, one JSON object per line, under the names in `agentclinic.config.json`
(or change the paths there). `agentclinic data fetch MedQA` gets a public data set, `agentclinic data new OSCE` shows
what a case looks like, and `agentclinic data check FILE` checks a file.
"""
