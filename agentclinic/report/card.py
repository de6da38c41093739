"""A model and settings card of a run, in Markdown: what a paper's appendix should say about it.

A pure function of the run's folder. Settings that may hold a key are never shown.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from agentclinic.cases.solvable import is_world
from agentclinic.clinic.desk import EXACT
from agentclinic.config import (
    ALL_GENERATION,
    ROLES,
    RunSettings,
    is_at_endpoint,
    is_person,
    without_credentials,
)
from agentclinic.models.endpoint import OPENAI_URL
from agentclinic.privacy import names_secret
from agentclinic.report.collect import collect
from agentclinic.report.numbers import sections
from agentclinic.report.statements import statements_markdown
from agentclinic.report.tables import markdown_cell, markdown_table
from agentclinic.results.record import Record
from agentclinic.results.run_cases import CASES, read_cases
from agentclinic.results.run_data import load_run
from agentclinic.results.run_folder import CONFIG
from agentclinic.runs.budget import money
from agentclinic.version import __version__

UNKNOWN = "not recorded"
NOT_KEPT = "not kept by the version that played the run"
AUTHORS = "for the authors to fill in"
_OPEN_OSCE = "CC BY 4.0 (original cases, shipped with the package)"
_MEDQA = "published under MIT with the AgentClinic repository; made from MedQA questions"
_NEJM = "published with the AgentClinic repository; text and images belong to the New England Journal of Medicine"
_LICENCES = {
    "OpenOSCE": _OPEN_OSCE,
    "OpenOSCE_Demo": _OPEN_OSCE,
    "MedQA": _MEDQA,
    "MedQA_Ext": _MEDQA,
    "NEJM": _NEJM,
    "NEJM_Ext": _NEJM,
    "MIMICIV": "made from MIMIC-IV: credentialed data under PhysioNet's license, not to be shared",
}
_DRAWN = "cases drawn by code from a world; the license of its file applies"
_PUBLIC = ("MedQA", "MedQA_Ext", "NEJM", "NEJM_Ext")


def card(place: Path, judge: str | None = None) -> str:
    run = _Run(place, judge)
    parts = (_head, _repeat, _models, _data, _judging, _results, _limits, _checklists)
    return "\n\n".join("\n".join(part(run)) for part in parts) + "\n"


class _Run:
    """What is in a run's folder."""

    def __init__(self, place: Path, judge: str | None) -> None:
        self.data = load_run(place, judge)
        self.days: set[str] = set()
        self.served: dict[str, set[str]] = {}
        """The models that answered, by role, as their endpoints call them."""
        collected = collect([self.data], [self.data.name], also=self._add)
        (self.report,), (self.arm,) = collected.report.runs, collected.arms
        self.settings = self.section("run")
        self.ours = self.section("agentclinic")
        """What this program added to the settings; empty for a run in the original's format."""
        digest = self.ours.get("digest")
        self.digest: dict[str, Any] = digest if isinstance(digest, dict) else {}
        name = self.ours.get("dataset") or self.settings.get("dataset") or self.recorded("dataset")
        self.dataset = str(name or UNKNOWN)

    def _add(self, record: Record) -> None:
        timing = record.timing or {}
        self.days.update([str(timing["started_at"])[:10]] if timing.get("started_at") else ())
        served = timing.get("models")
        for role, models in served.items() if isinstance(served, dict) else ():
            self.served.setdefault(str(role), set()).update(map(str, models if isinstance(models, list) else ()))

    def section(self, name: str) -> dict[str, Any]:
        """A section of config.used.json; empty if it has none."""
        found = self.data.config.get(name)
        return found if isinstance(found, dict) else {}

    def recorded(self, name: str) -> str | None:
        """What the records say, all of it if they differ; None if they say nothing."""
        return ", ".join(sorted(self.arm.settings[name])) if name in self.arm.settings else None

    def setting(self, name: str) -> str:
        """A setting, or what the records say, or that it is not recorded."""
        recorded = self.recorded(name)
        value = recorded if recorded == EXACT else self.settings.get(name)  # in a solvable world, no model answers
        if value is None:
            value = recorded
        return UNKNOWN if value is None else str(value)


def _code(data: object) -> list[str]:
    # A fence in the data would end the block.
    text = json.dumps(data, indent=2, ensure_ascii=False).replace("```", "'''")
    return ["```json", text, "```"]


def _cleared(value: Any) -> Any:
    """A setting without anything that might be a key."""
    if isinstance(value, dict):
        return {name: _cleared(held) for name, held in value.items() if not names_secret(str(name))}
    if isinstance(value, list):
        return [_cleared(held) for held in value]
    if isinstance(value, str) and "://" in value:
        return without_credentials(value)
    return value


# --- sections -------------------------------------------------------------------------------------------------------


def _head(run: _Run) -> list[str]:
    made = markdown_cell(run.ours.get("version") or UNKNOWN)
    lines = [
        f"# Model and settings card: {markdown_cell(run.data.name)}",
        "",
        f"AgentClinic run, version {made} (card by {__version__}). A research benchmark with simulated patients, not a "
        "clinical study and not medical advice.",
    ]
    if not run.ours:
        lines += [
            "",
            "**This run is in the original's format.** It has no version and no hashes of cases or prompts. What is "
            f"missing is marked “{UNKNOWN}” here, and the run cannot be repeated exactly.",
        ]
    return lines


def _repeat(run: _Run) -> list[str]:
    lines = ["## How to repeat it", ""]
    if run.settings:
        lines += [
            "Settings that differ from the defaults, as `agentclinic.config.json`:",
            "",
            *_code(_config_file(run)),
        ]
    else:
        lines.append(f"There is no {CONFIG}: the settings are {UNKNOWN}.")
    llm = _llm_file(run)
    if llm:
        lines += ["", "Default endpoint, request parameters and limits, as `llm.config.json`:", "", *_code(llm)]
    if run.settings:
        version = run.ours.get("version")
        installed = f"With AgentClinic {markdown_cell(version)} installed:"
        lines += ["", installed if version else f"The version is {UNKNOWN}:", ""]
        lines += ["```", "agentclinic run --config agentclinic.config.json --llm-config llm.config.json", "```"]
    cost = run.report.score.outcome.cost
    if cost:
        lines += ["", f"Cost of the models: {money(cost)} at the prices above, or else the provider's list prices."]
    folder = run.data.path.parent
    files = []
    for path in (run.data.path, folder / CONFIG, folder / CASES):
        if path.is_file():
            with path.open("rb") as file:
                files.append((path.name, hashlib.file_digest(file, "sha256").hexdigest()))
    lines += ["", *markdown_table(("file of this run", "SHA-256"), files)]
    digests = {
        name: value
        for name, value in run.digest.items()
        if name.startswith("prompts.") or name in ("cases", "doctor_file", "agent", "policy", "price_table")
    }
    if digests:
        lines += ["", *markdown_table(("digest", "value"), digests.items())]
    lines += [
        "",
        f"Random seed {markdown_cell(run.setting('seed'))}; the seed of each encounter is derived from it, the case "
        "and the repeat. It decides sampling and the builtin roles; a language model at an endpoint may still answer "
        "differently.",
    ]
    return lines


def _config_file(run: _Run) -> dict[str, Any]:
    defaults = RunSettings().model_dump(mode="json")
    # Paths are the user's own; the hashes identify the files.
    own = {"output_dir", "record", "prompts_dir", "agent_config", "workers"}
    changed = {k: v for k, v in run.settings.items() if k not in own and v != defaults.get(k)}
    config: dict[str, Any] = {"run": _cleared(changed)}
    if run.dataset in run.section("datasets"):
        config["datasets"] = {run.dataset: Path(str(run.section("datasets")[run.dataset])).name}
    endpoints = {name: entry for name, entry in run.section("endpoints").items() if name in _asked(run)}
    return config | ({"endpoints": _cleared(endpoints)} if endpoints else {})


def _llm_file(run: _Run) -> dict[str, Any]:
    openai = {"base_url": OPENAI_URL} | {key: value for key, value in run.section("openai").items() if value}
    parts = {"openai": openai if None in _asked(run) else None, "llm": run.section("llm")}
    return {name: _cleared(part) for name, part in parts.items() if part}


def _asked(run: _Run) -> set[str | None]:
    """The endpoints whose models were asked, by name; None is the default one."""
    roles = [role for role in (*ROLES, "synthesis", "memory", "embedding") if run.settings.get(f"{role}_llm")]
    return {run.settings.get(f"{role}_endpoint") for role in roles if _endpoint(run, role) != "none"}


def _models(run: _Run) -> list[str]:
    rows = []
    for role in ROLES:
        bias = run.setting(f"{role}_bias") if role in ("doctor", "patient") else "-"
        bias = "none" if bias == UNKNOWN and run.settings else bias
        model, served = run.setting(f"{role}_llm"), ", ".join(sorted(run.served.get(role, ())))
        prompt = "-" if model == EXACT else run.digest.get(f"prompts.{role}", UNKNOWN)
        endpoint = _endpoint(run, role)
        rows.append((role, model, served or ("-" if endpoint == "none" else UNKNOWN), endpoint, bias, prompt))
    head = ("role", "model", "model as the endpoint named it", "endpoint", "bias", "prompt hash")
    dates = " to ".join(sorted({min(run.days), max(run.days)})) if run.days else UNKNOWN
    lines = ["## Models", "", *markdown_table(head, rows), "", f"Dates of the calls (UTC): {dates}."]
    file = f", file hash {run.digest['doctor_file']}" if "doctor_file" in run.digest else ""
    lines.append(f"Doctor: {markdown_cell(run.setting('doctor'))}{file}.")
    sent = [f"{key} {value}" for key in ALL_GENERATION if (value := run.settings.get(key)) is not None]
    lines += [f"Generation settings: {markdown_cell(', '.join(sent))}."] if sent else []
    words = ("policy", "planner", "synthesis", "confidence", "uncertain", "image", "memory")
    special = [
        (name, "-" if value is None else value)
        for name, value in run.settings.items()
        if any(word in name for word in words)
    ]
    if special:
        lines += ["", *markdown_table(("policy or uncertainty setting", "value"), special)]
    people = [role for role in ("doctor", "patient") if is_person(run.setting(f"{role}_llm"))]
    if people:
        lines += ["", f"A person played the {' and the '.join(people)}."]
    return lines


def _endpoint(run: _Run, role: str) -> str:
    model = run.setting(f"{role}_llm")
    if model == EXACT or not is_at_endpoint(model):
        return "none"
    if not run.settings:
        return UNKNOWN
    name = run.settings.get(f"{role}_endpoint")
    entry = run.section("endpoints").get(name) if name else run.section("openai")
    address = entry.get("base_url") if isinstance(entry, dict) else None
    if isinstance(address, str):
        return without_credentials(address) or UNKNOWN
    return UNKNOWN if name or address is not None else "OpenAI's own"


def _data(run: _Run) -> list[str]:
    known, cases = run.report.known, len(run.arm.cases)
    different = str(cases) if known.hashes == known.records else f"{cases} rows; case hashes {UNKNOWN}"
    rows: list[tuple[str, object]] = [
        ("data set", run.dataset),
        ("license", _DRAWN if is_world(run.dataset) else _LICENCES.get(run.dataset, AUTHORS)),
        ("encounters recorded", known.records),
        ("encounters planned", run.ours.get("units", UNKNOWN)),
        ("different cases", different),
        (f"cases in {CASES}", len(read_cases(run.data.path.parent)) or NOT_KEPT),
        ("hash of the cases played", run.digest.get("cases", UNKNOWN)),
        ("rows selected", _selection(run)),
        ("lockbox", run.setting("lockbox") if run.settings else UNKNOWN),
        ("repeats", run.setting("repeats")),
        ("turn limit", run.settings.get("total_inferences") or run.recorded("max_infs") or UNKNOWN),
        ("tests not in the chart", run.setting("missing_test")),
        ("results can be late", run.setting("pending_results")),
        ("symptoms not in the chart", run.setting("silent_symptom")),
    ]
    return ["## Data and settings", "", *markdown_table(("what", "value"), rows)]


def _selection(run: _Run) -> str:
    if not run.settings:
        return UNKNOWN
    names = ("scenarios", "offset", "sample", "num_scenarios")
    return ", ".join(f"{name} {run.settings[name]}" for name in names if run.settings.get(name)) or "all"


def _judging(run: _Run) -> list[str]:
    model = run.setting("moderator_llm")
    lines = ["## Judge", ""]
    if model == EXACT and not run.data.judge:
        return [*lines, run.report.score.judged_by]
    if run.data.judge:
        lines.append(
            f"Judged again (`agentclinic regrade`): the verdicts are those of `{markdown_cell(run.data.judge)}`, not "
            "the recorded ones."
        )
    if model == "builtin":
        lines.append("The builtin judge: written rules on disease names, no language model (docs/builtin.md).")
    elif model == UNKNOWN:
        lines.append(f"The judge's model is {UNKNOWN}.")
    else:
        asked = "Yes or No" if run.setting("judge") in ("original", UNKNOWN) else "the relation and a reason"
        only = " where code could not read the diagnosis" if run.setting("judge") == "cascade" else ""
        lines.append(f"A language model, {markdown_cell(model)}, asked for {asked}{only}.")
    lines.append(
        "*Strict* counts the same disease, or a more specific form of it, as right. *Lenient* adds diagnoses that the "
        "case's answer key accepts in part. Only the first diagnosis counts; a list of alternatives is wrong."
    )
    return lines


def _results(run: _Run) -> list[str]:
    note = (
        "Shares have Wilson intervals; intervals of means resample cases. `agentclinic score` prints every metric, and "
        "`agentclinic audit` shows how far patient and laboratory kept to the chart."
    )
    advice = [f"\n{text}" for text in run.report.score.outcome.unread_advice()]
    return ["## Results", *advice, *(f"\n{section.markdown()}" for section in sections(run.report.score)), "", note]


def _limits(run: _Run) -> list[str]:
    limits = [
        "Nothing here shows that using this doctor is safe or useful.",
        "The doctor sees text (and images if switched on); it cannot examine, observe or come back later.",
        "The cases of this data set are not a sample of any population: its makers chose the diseases, their frequency "
        "and their severity.",
    ]
    if run.dataset in _PUBLIC:
        limits.append("The cases are public and older than most models: a model may have seen them in training.")
    return [
        "## Limits",
        "",
        *(f"- {limit}" for limit in limits),
        *(f"\n{part}" for part in statements_markdown(run.report)),
    ]


# --- reporting checklists -------------------------------------------------------------------------------------------

_FOLLOWED = {
    "TRIPOD-LLM": "studies that use large language models: models, prompts, data, evaluation",
    "STARD-AI": "diagnostic accuracy with AI: the diagnosis is the index test, the case's label the reference standard",
    "CHART": "chatbots that are asked about health: model identifiers, prompts, query strategy",
    "MI-CLAIM": "minimum information about clinical AI modelling: data, evaluation, what is needed to repeat it",
}


def _checklists(run: _Run) -> list[str]:
    lines = [
        "## Reporting items",
        "",
        "These checklists are followed by topic, in our own words (item numbers differ between versions):",
        "",
        *(f"- **{name}**: {why}." for name, why in _FOLLOWED.items()),
        "",
        "CONSORT-AI and SPIRIT-AI (trials) and DECIDE-AI (first use with clinicians and patients) do not apply: no one "
        "was treated and no clinician took part.",
        "",
        *markdown_table(("topic", "asked for by", "here"), _filled(run)),
    ]
    return [*lines, "", "For the authors to fill in:", "", *(f"- {item}" for item in _open_items(run))]


def _filled(run: _Run) -> list[tuple[str, str, str]]:
    models = "see “Models”" if run.settings else f"{UNKNOWN} beyond the model names"
    prompts = "hashes under “Models”" if run.digest else UNKNOWN
    parameters = "see “How to repeat it”" if run.settings else UNKNOWN
    queries = "turn by turn, one session per encounter; what a provider adds behind its endpoint is not known"
    judge = "see “Judge”; the judge sees the two diagnoses, not the dialogue"
    intervals = "95% intervals; repeats of a case, twins and near copies are taken together"
    code = "version, settings and hashes under “How to repeat it”" if run.ours else UNKNOWN
    return [
        ("model names, versions, how they were accessed", "TRIPOD-LLM, CHART", models),
        ("prompts", "TRIPOD-LLM, CHART", prompts),
        ("request parameters, seeds, repeats", "TRIPOD-LLM, CHART", parameters),
        ("how the model was queried", "CHART", queries),
        ("source, selection and license of cases", "TRIPOD-LLM, STARD-AI, MI-CLAIM", "see “Data and settings”"),
        ("reference standard", "STARD-AI", "the diagnosis in the case's chart, hidden from the doctor"),
        ("who judged, by which rule, blinded to what", "TRIPOD-LLM, STARD-AI, CHART", judge),
        ("flow: presented, failed, undiagnosed, missing", "STARD-AI", "see “Results”, with bounds for what is missing"),
        ("estimates with uncertainty", "TRIPOD-LLM, STARD-AI, MI-CLAIM", intervals),
        ("separation of development and test data", "MI-CLAIM", _separation(run)),
        ("code and data to repeat it", "TRIPOD-LLM, MI-CLAIM", code),
        ("limits", "all four", "see “Limits”"),
    ]


def _separation(run: _Run) -> str:
    if run.dataset not in ("OpenOSCE", "OpenOSCE_1"):
        return AUTHORS
    locked = run.settings.get("lockbox") is True
    return "lockbox cases were played" if locked else "development cases only; the lockbox was not played"


def _open_items(run: _Run) -> list[str]:
    items = [
        "title, question and hypothesis; why this benchmark answers it",
        "the provider's model snapshot behind each name, if the name under “Models” does not say",
        "training data and cut-off of the models, if the provider states them; whether they may include the cases",
        "how many settings and prompts were tried before this run, and on which cases",
        "how the number of cases was chosen",
        "comparison: other models, clinicians, or reference doctors (`agentclinic compare`)",
        "error analysis by a clinician; harm of wrong diagnoses",
        "fairness: results by age, sex and other groups stated in the cases",
        "ethics, registration or protocol, funding, competing interests, where records and code are kept",
    ]
    if run.dataset not in _LICENCES:
        items.append("license and origin of the data set")
    if run.setting("moderator_llm") not in ("builtin", UNKNOWN):
        items.append("agreement of this judge with a person on a sample (`agentclinic judge label`)")
    return items
