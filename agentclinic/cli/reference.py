"""Write `docs/settings.md` from the settings' own docstrings: `python -m agentclinic.cli.reference`."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from agentclinic.config import (
    Attestation,
    EndpointSettings,
    LLMSettings,
    OpenAISettings,
    PriceSettings,
    PrivacySettings,
    RunSettings,
    RuntimeSettings,
    choices,
    described,
)

PAGE = Path("docs/settings.md")
_HEAD = """\
# Settings

Generated from `agentclinic/config.py` by `python -m agentclinic.cli.reference`; do not edit.

Flags override files, and files override defaults. A key's flag has dashes: `doctor_llm` is `--doctor-llm`; underscores
work, too. `--limit` is the same as `--num-scenarios`. An unknown key is an error that suggests the closest known one;
in every JSON file, keys that begin with `_` are comments. Paths under `datasets` are relative to the file that names
them. A config may also have the `openai` and `llm` sections, as the original's early configs and every run's
`config.used.json` do; `llm.config.json` is then read only if `--llm-config` names it. To repeat a run, give its
`config.used.json` to `--config`.

`agentclinic.config.json`, `llm.config.json`, `.env`, `prompts/` and `agent/agent_config.yaml` are looked for in the
working folder and then in the folders above it, up to the root of the repository (the folder with `.git`, or with the
original's `benchmarks/AgentClinic`). The nearest one is used, and a warning names any other. Outside a repository, only
the working folder counts.

The key of the default endpoint is read from the environment (`OPENAI_API_KEY`), then from `.env`, then from
`llm.config.json`; the address from `llm.config.json`, then from `OPENAI_BASE_URL`. Keys are never written to a run's
folder.
"""
_SECTIONS: tuple[tuple[str, type[BaseModel]], ...] = (
    ("`run` in agentclinic.config.json, and flags of `agentclinic run`", RunSettings),
    ("`endpoints.<name>` in agentclinic.config.json", EndpointSettings),
    ("`privacy` in agentclinic.config.json", PrivacySettings),
    ("`privacy.hosts.<host>` in agentclinic.config.json", Attestation),
    ("`openai` in llm.config.json", OpenAISettings),
    ("`openai.prices.<model>` in llm.config.json, `endpoints.<name>.prices.<model>`", PriceSettings),
    ("`llm` in llm.config.json", LLMSettings),
    ("`llm.runtime` in llm.config.json", RuntimeSettings),
)


def page() -> str:
    parts = [_HEAD]
    for title, model in _SECTIONS:
        rows = ["| key | default | meaning |", "|---|---|---|"]
        rows += [_row(name, field) for name, field in model.model_fields.items() if field.description]
        parts.append(f"## {title}\n\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def _row(name: str, field: FieldInfo) -> str:
    default = "required" if field.is_required() else f"`{json.dumps(_plain(field))}`"
    one_of = f" One of {', '.join(f'`{choice}`' for choice in choices(field))}." if choices(field) else ""
    return f"| `{name}` | {default} | {described(field)}{one_of} |"


def _plain(field: FieldInfo) -> object:
    value = field.get_default(call_default_factory=True, validated_data={})
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
