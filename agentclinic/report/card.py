"""A model-and-setting card of a run, in Markdown: what a paper's appendix has to say about it.

A pure function of the run's folder. It shows only settings it knows to be harmless or that it has cleared of keys.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentclinic.cases.registry import DATASETS, resolve
from agentclinic.config import ROLES, RunSettings, without_credentials
from agentclinic.errors import CaseError, InputError
from agentclinic.results.run_data import RunData, load_run
from agentclinic.results.run_folder import CONFIG
from agentclinic.scoring.estimates import Estimate, Proportion
from agentclinic.scoring.orders import Orders
from agentclinic.scoring.score import Score, score
from agentclinic.version import __version__

UNKNOWN = "not recorded"
AUTHORS = "to be filled by the authors"
_SECRETS = ("key", "token", "secret", "password", "auth", "credential", "header", "cookie", "query")
"""A setting whose name holds one of these is never shown; `max_output_tokens` and its like are."""
_HARMLESS = frozenset({"max_output_tokens", "max_tokens", "token_limit", "max_completion_tokens", "api_key_env"})
_LICENCES = {
    "OpenOSCE": "CC BY 4.0 (original cases, shipped with the package)",
    "OpenOSCE_Demo": "CC BY 4.0 (original cases, shipped with the package)",
    "MedQA": "published under MIT with the AgentClinic repository; made from MedQA questions",
    "MedQA_Ext": "published under MIT with the AgentClinic repository; made from MedQA questions",
    "NEJM": "published with the AgentClinic repository; text and images are the New England Journal of Medicine's",
    "NEJM_Ext": "published with the AgentClinic repository; text and images are the New England Journal of Medicine's",
    "MIMICIV": "made from MIMIC-IV: credentialed data under PhysioNet's licence, not to be passed on",
}


def card(place: Path, judge: str | None = None) -> str:
    """The card of a run."""
    run = _Run.of(place, judge)
    parts = (_head, _repeat, _models, _data, _judging, _results, _limits, _checklists)
    return "\n\n".join("\n".join(part(run)) for part in parts) + "\n"


@dataclass(frozen=True)
class _Run:
    """What a run's folder tells."""

    data: RunData
    score: Score
    settings: Mapping[str, Any]
    """The `run` section; empty where there is no config.used.json."""
    ours: Mapping[str, Any]
    """What this program wrote beside the settings; empty for a run in the original's format."""
    records: _Records

    @classmethod
    def of(cls, place: Path, judge: str | None) -> _Run:
        data = load_run(place, judge)
        records = _Records.of(data)
        if not records.count:
            raise InputError(f"{place}: holds no records; there is nothing to make a card of")
        settings = data.config.get("run")
        ours = data.config.get("agentclinic")
        return cls(
            data,
            score(data),
            settings if isinstance(settings, dict) else {},
            ours if isinstance(ours, dict) else {},
            records,
        )

    @property
    def digest(self) -> Mapping[str, Any]:
        found = self.ours.get("digest")
        return found if isinstance(found, dict) else {}

    @property
    def dataset(self) -> str:
        return str(self.ours.get("dataset") or self.settings.get("dataset") or self.records.one("dataset") or UNKNOWN)

    def setting(self, name: str) -> str:
        """A setting, or what all records say, or that it is not known."""
        value = self.settings.get(name)
        if value is None:
            value = self.records.one(name)
        return UNKNOWN if value is None else str(value)


@dataclass
class _Records:
    """What the records say of the setting, counted."""

    count: int = 0
    cases: set[str] = field(default_factory=set)
    hashed: bool = True
    transcripts: int = 0
    values: dict[str, Counter[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, data: RunData) -> _Records:
        found = cls()
        names = ("dataset", "max_infs", "doctor", "doctor_bias", "patient_bias", "missing_test", "silent_symptom")
        for record in data.records():
            found.count += 1
            found.hashed &= record.case_hash is not None
            found.transcripts += record.transcript is not None
            found.cases.add(record.case_hash or f"{record.dataset}:{record.scenario_id}")
            for name in (*names, *(f"{role}_llm" for role in ROLES)):
                value = getattr(record, name, None)
                if value is not None:
                    found.values.setdefault(name, Counter())[str(value)] += 1
        return found

    def one(self, name: str) -> str | None:
        """What the records say; all of it where they differ, None where they are silent."""
        return ", ".join(sorted(self.values[name])) if name in self.values else None


# --- Markdown --------------------------------------------------------------------------------------------------------


def _cell(value: object) -> str:
    text = " ".join(str(value).split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
    return text.replace("`", "'")


def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> list[str]:
    names = list(head)
    lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    return lines + [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]


def _code(data: object) -> list[str]:
    # A fence inside the data would end the block.
    text = json.dumps(data, indent=2, ensure_ascii=False).replace("```", "'''")
    return ["```json", text, "```"]


def _cleared(value: Any) -> Any:
    """A setting without anything that might be a key."""
    if isinstance(value, dict):
        return {name: _cleared(held) for name, held in value.items() if not _is_secret(str(name))}
    if isinstance(value, list):
        return [_cleared(held) for held in value]
    if isinstance(value, str) and "://" in value:
        return without_credentials(value)
    return value


def _is_secret(name: str) -> bool:
    return name not in _HARMLESS and any(word in name.lower() for word in _SECRETS)


def _share(share: Proportion | None) -> str:
    if share is None or share.value is None or share.low is None or share.high is None:
        return UNKNOWN
    return f"{share.value:.1%} (95 % interval {share.low:.1%} to {share.high:.1%}; {share.count} of {share.of})"


def _value(estimate: Estimate | None, digits: int = 2, scale: float = 1.0, unit: str = "") -> str:
    if estimate is None or estimate.value is None:
        return UNKNOWN
    shown = f"{estimate.value * scale:.{digits}f}{unit}"
    if estimate.low is None or estimate.high is None:
        return shown
    return f"{shown} (95 % interval {estimate.low * scale:.{digits}f} to {estimate.high * scale:.{digits}f})"


# --- sections --------------------------------------------------------------------------------------------------------


def _head(run: _Run) -> list[str]:
    made = run.ours.get("version") or UNKNOWN
    lines = [
        f"# Model and setting card: {_cell(run.data.name)}",
        "",
        f"AgentClinic run, version {_cell(made)} (card by {__version__}). A research benchmark "
        f"with simulated patients, "
        "not a clinical study and not medical advice.",
    ]
    if not run.ours:
        lines += [
            "",
            "**This run is in the original's format.** It keeps no hashes of cases or prompts, no "
            "version and no digest; "
            f"what it does not hold is marked \u201c{UNKNOWN}\u201d here and cannot be repeated exactly.",
        ]
    return lines


def _repeat(run: _Run) -> list[str]:
    lines = ["## To repeat it", ""]
    if run.settings:
        lines += ["Settings that differ from the defaults, as `agentclinic.config.json`:", ""]
        lines += _code(_config_file(run))
    else:
        lines.append(f"There is no {CONFIG}: the settings are {UNKNOWN}.")
    llm = run.data.config.get("llm")
    if isinstance(llm, dict):
        lines += ["", "Request parameters and limits, as `llm.config.json`:", "", *_code({"llm": _cleared(llm)})]
    if run.settings:
        version = run.ours.get("version")
        lines += ["", f"With AgentClinic {_cell(version)} installed:" if version else f"The version is {UNKNOWN}:", ""]
        lines += ["```", "agentclinic run --config agentclinic.config.json --llm-config llm.config.json", "```"]
    files = [(path.name, _sha256(path)) for path in (run.data.path, run.data.path.parent / CONFIG) if path.is_file()]
    lines += ["", *_table(("file of this run", "SHA-256"), files)]
    digests = {
        name: value
        for name, value in run.digest.items()
        if name.startswith("prompts.") or name in ("cases", "doctor_file", "agent", "policy")
    }
    if digests:
        lines += ["", *_table(("digest", "value"), digests.items())]
    seed = run.setting("seed")
    lines += [
        "",
        f"Seed {_cell(seed)}; each unit's own seed derives from it, the case and the repeat. The "
        f"seed decides sampling and "
        "the builtin roles; a language model at an endpoint may answer differently all the same.",
    ]
    return lines


def _config_file(run: _Run) -> dict[str, Any]:
    defaults = RunSettings().model_dump(mode="json")
    # Where files lie is the user's own; which they are is told by their hash.
    own = {"output_dir", "record", "prompts_dir", "agent_config", "workers"}
    changed = {k: v for k, v in run.settings.items() if k not in own and v != defaults.get(k)}
    config: dict[str, Any] = {"run": _cleared(changed)}
    for section in ("datasets", "endpoints"):
        held = run.data.config.get(section)
        if isinstance(held, dict) and held:
            config[section] = _cleared(held)
    if isinstance(config.get("datasets"), dict):
        config["datasets"] = {name: Path(str(path)).name for name, path in config["datasets"].items()}
    return config


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _models(run: _Run) -> list[str]:
    rows = []
    for role in ROLES:
        bias = run.setting(f"{role}_bias") if role in ("doctor", "patient") else "-"
        bias = "none" if bias == UNKNOWN and run.settings else bias
        rows.append(
            (role, run.setting(f"{role}_llm"), _endpoint(run, role), bias, run.digest.get(f"prompts.{role}", UNKNOWN))
        )
    lines = ["## Models", "", *_table(("role", "model", "endpoint", "bias", "prompt hash"), rows), ""]
    kind = run.setting("doctor")
    lines.append(
        f"Doctor: {_cell(kind)}"
        + (f", file hash {run.digest['doctor_file']}" if "doctor_file" in run.digest else "")
        + "."
    )
    special = {
        name: run.settings[name]
        for name in run.settings
        if any(
            word in name for word in ("policy", "planner", "synthesis", "confidence", "uncertain", "image", "memory")
        )
    }
    if special:
        lines += [
            "",
            *_table(
                ("policy and uncertainty setting", "value"),
                ((name, "-" if value is None else value) for name, value in special.items()),
            ),
        ]
    people = [role for role in ("doctor", "patient") if run.setting(f"{role}_llm") == "human"]
    if people:
        lines += ["", f"A person played the {' and the '.join(people)}."]
    return lines


def _endpoint(run: _Run, role: str) -> str:
    model = run.setting(f"{role}_llm")
    if model in ("builtin", "human") or model.startswith("replay:"):
        return "none"
    if not run.settings:
        return UNKNOWN
    name = run.settings.get(f"{role}_endpoint")
    if name:
        endpoints = run.data.config.get("endpoints")
        entry = endpoints.get(name) if isinstance(endpoints, dict) else None
        return without_credentials(entry.get("base_url")) or UNKNOWN if isinstance(entry, dict) else UNKNOWN
    openai = run.data.config.get("openai")
    base_url = openai.get("base_url") if isinstance(openai, dict) else None
    return without_credentials(base_url) or "OpenAI's own" if isinstance(base_url, str) or base_url is None else UNKNOWN


def _data(run: _Run) -> list[str]:
    digest = run.digest.get("cases", UNKNOWN)
    rows: list[tuple[str, object]] = [
        ("data set", run.dataset),
        ("licence", _LICENCES.get(run.dataset, AUTHORS)),
        ("its file today, SHA-256", _file_hash(run)),
        ("encounters recorded", run.records.count),
        (
            "different cases",
            len(run.records.cases) if run.records.hashed else f"{len(run.records.cases)} rows; case hashes {UNKNOWN}",
        ),
        ("units planned", run.ours.get("units", UNKNOWN)),
        ("hash over the cases played", digest),
        ("rows chosen", _selection(run)),
        ("lockbox", run.setting("lockbox") if run.settings else UNKNOWN),
        ("repeats", run.setting("repeats")),
        ("turns the doctor has", run.settings.get("total_inferences") or run.records.one("max_infs") or UNKNOWN),
        ("a test that is not in the chart", run.setting("missing_test")),
        ("a symptom on which the chart is silent", run.setting("silent_symptom")),
    ]
    lines = ["## Data and setting", "", *_table(("what", "value"), rows)]
    if run.dataset in DATASETS:
        lines += ["", f"{DATASETS[run.dataset].about}."]
    return lines


def _file_hash(run: _Run) -> str:
    name = run.settings.get("dataset") or run.dataset
    paths = run.data.config.get("datasets")
    try:
        _, path, _ = resolve(str(name), paths if isinstance(paths, dict) else {})
    except CaseError:
        return "the file is not here"
    return _sha256(path) if path.is_file() else "the file is not here"


def _selection(run: _Run) -> str:
    if not run.settings:
        return UNKNOWN
    names = ("scenarios", "offset", "sample", "num_scenarios")
    chosen = {name: run.settings.get(name) for name in names if run.settings.get(name)}
    return ", ".join(f"{name} {value}" for name, value in chosen.items()) or "all"


def _judging(run: _Run) -> list[str]:
    model = run.setting("moderator_llm")
    lines = ["## Judge", ""]
    if run.data.judge:
        lines.append(f"Judged anew as `{_cell(run.data.judge)}` (`agentclinic regrade`), not as recorded.")
    if model == "builtin":
        lines.append(
            "The builtin judge: written rules over names of diseases, without a language model (docs/builtin.md)."
        )
    elif model == UNKNOWN:
        lines.append(f"The judge's model is {UNKNOWN}.")
    else:
        asked = "the relation and a reason" if run.settings.get("judge_relation") else "Yes or No"
        lines.append(f"A language model, {_cell(model)}, asked for {asked}.")
    lines.append(
        "*Strict* counts the same disease or a more precise form of it as right; *lenient* adds "
        "what the case's answer key "
        "accepts in part. Only the first-named diagnosis counts; alternatives in place of one diagnosis are wrong."
    )
    return lines


def _results(run: _Run) -> list[str]:
    outcome, told, ordered = run.score.outcome, run.score.information, run.score.orders
    rows: list[tuple[str, str]] = [
        ("accuracy, strict", _share(outcome.accuracy_strict)),
        ("accuracy, lenient", _share(outcome.accuracy_lenient)),
        (
            "correct of all presented, as the original counts",
            UNKNOWN if outcome.accuracy is None else f"{outcome.accuracy:.1%}",
        ),
    ]
    if outcome.if_missing_wrong is not None and outcome.if_missing_right is not None:
        rows.append(
            ("strict, were all missing wrong; right", f"{outcome.if_missing_wrong:.1%}; {outcome.if_missing_right:.1%}")
        )
    rows.append(("how encounters ended", ", ".join(f"{name} {count}" for name, count in outcome.outcomes.items())))
    rows += [(f"fault {name}", str(count)) for name, count in outcome.faults.items()]
    for source in run.score.calibration.sources:
        name = f"confidence ({source.source.value}, {source.scale}; {source.n} diagnoses)"
        brier = f"; Brier score {_value(source.brier)}" if source.brier else ""
        rows.append((name, f"AUROC {_value(source.auroc)}{brier}"))
    rows += [
        ("turns per encounter", _value(told.turns)),
        ("questions; tests per encounter", f"{_value(told.questions)}; {_value(told.tests)}"),
        ("key facts found", _value(told.key_facts.recall, 1, 100, " %")),
        ("price of tests per encounter, USD (estimates)", _price(ordered)),
    ]
    if run.score.repeats.repeated:
        rows.append(("cases whose verdict flips between repeats", _value(run.score.repeats.flip_rate, 1, 100, " %")))
    for role, usage in outcome.usage.items():
        tokens = [usage.get("input_tokens"), usage.get("output_tokens")]
        if tokens == [0, 0]:  # a builtin role
            continue
        cost = outcome.cost_usd.get(role)
        money = f"; {cost:.4f} USD" if cost is not None else ""
        rows.append((f"tokens in; out, {role}", "; ".join(UNKNOWN if t is None else f"{t:,}" for t in tokens) + money))
    note = (
        "Shares have Wilson intervals, means are resampled by case. `agentclinic score` prints "
        "all; `agentclinic audit` "
        "says how faithful patient and laboratory were to the chart."
    )
    return ["## Results", "", *_table(("what", "value"), rows), "", note]


def _price(ordered: Orders) -> str:
    if ordered.price_usd.value is None and ordered.unpriced:
        return f"unknown: {ordered.unpriced} of {ordered.priced + ordered.unpriced} tests done have no price"
    return _value(ordered.price_usd)


def _limits(run: _Run) -> list[str]:
    limits = [
        "Patients, laboratory and, where it is a model, the judge are simulated. Nothing here "
        "shows how the doctor would do "
        "with people, or that using it is safe or of use.",
        "The doctor sees text (and images where switched on); it cannot examine, observe or come back later.",
        "Accuracy is over the cases of this data set, which are no sample of any population: "
        "prevalence, severity and the "
        "mix of diseases are its makers'.",
    ]
    if run.dataset.startswith("OpenOSCE"):
        limits.append("The cases are invented and were not validated by clinicians.")
    elif run.dataset in ("MedQA", "MedQA_Ext", "NEJM", "NEJM_Ext"):
        limits.append("The cases are public and older than most models: a model may have seen them in training.")
    if "builtin" in (run.setting("doctor_llm"), run.setting("patient_llm"), run.setting("measurement_llm")):
        limits.append("Builtin roles are small programs with a knowledge base of their own, not language models.")
    if run.setting("patient_llm") not in ("builtin", "human", UNKNOWN):
        limits.append("A language-model patient invents and leaves out; `agentclinic audit` estimates how often.")
    missing = sum(run.score.outcome.outcomes.get(status, 0) for status in ("model_failed", "judge_failed"))
    if missing:
        limits.append(
            f"{missing} encounters have no verdict through no fault of the doctor; the bounds above "
            f"show what they could change."
        )
    planned = run.ours.get("units")
    if isinstance(planned, int) and planned > run.records.count:
        limits.append(f"The run is not finished: {run.records.count} of {planned} units were played.")
    if not run.records.transcripts:
        limits.append("No transcript was kept: what was asked and told cannot be checked.")
    if run.records.count < _FEW:
        limits.append(f"{run.records.count} encounters are few: see the width of the intervals.")
    return ["## Limits", "", *(f"- {limit}" for limit in limits)]


_FEW = 100
"""At 100 the 95 % interval of a share is up to 20 points wide."""


# --- reporting checklists --------------------------------------------------------------------------------------------

_FOLLOWED = (
    ("TRIPOD-LLM", "reporting of studies that use large language models: models, prompts, data, evaluation"),
    (
        "STARD-AI",
        "reporting of diagnostic accuracy with AI: the diagnosis is the index test, the case's label the reference",
    ),
    (
        "CHART",
        "reporting of studies of chatbots that are asked about health: model identifiers, prompts, query strategy",
    ),
    ("MI-CLAIM", "minimum information about clinical AI modelling: data, evaluation, what is needed to repeat it"),
)
_NOT_FOLLOWED = (
    "CONSORT-AI and SPIRIT-AI (trials) and DECIDE-AI (first use with clinicians and patients) do not apply: nobody was "
    "treated and no clinician took part."
)


def _checklists(run: _Run) -> list[str]:
    lines = [
        "## Reporting items",
        "",
        "Followed, by topic and in our own words (numbers of items differ between versions):",
        "",
    ]
    lines += [f"- **{name}**: {why}." for name, why in _FOLLOWED]
    lines += ["", _NOT_FOLLOWED, "", *_table(("topic", "asked for by", "here"), _filled(run))]
    lines += ["", "To be filled by the authors:", "", *(f"- {item}" for item in _open_items(run))]
    return lines


def _filled(run: _Run) -> list[tuple[str, str, str]]:
    known = "see \u201cModels\u201d" if run.settings else f"{UNKNOWN} beyond the model names"
    return [
        ("model names, versions, how they were reached", "TRIPOD-LLM, CHART", known),
        ("prompts", "TRIPOD-LLM, CHART", "hashes under \u201cModels\u201d" if run.digest else UNKNOWN),
        (
            "request parameters, seeds, repeats",
            "TRIPOD-LLM, CHART",
            "see \u201cTo repeat it\u201d" if run.settings else UNKNOWN,
        ),
        (
            "how the model was queried",
            "CHART",
            "turn by turn, one session an encounter; what a provider adds behind its endpoint is not known",
        ),
        (
            "source, selection and licence of cases",
            "TRIPOD-LLM, STARD-AI, MI-CLAIM",
            "see \u201cData and setting\u201d",
        ),
        ("reference standard", "STARD-AI", "the case's charted diagnosis, hidden from the doctor"),
        (
            "who judged, by which rule, blinded to what",
            "TRIPOD-LLM, STARD-AI, CHART",
            "see \u201cJudge\u201d; the judge sees the two diagnoses, not the dialogue",
        ),
        (
            "flow: presented, failed, without a diagnosis, missing",
            "STARD-AI",
            "see \u201cResults\u201d, with bounds for what is missing",
        ),
        (
            "estimates with uncertainty",
            "TRIPOD-LLM, STARD-AI, MI-CLAIM",
            "95 % intervals; those of means are resampled by case, those of shares take encounters as independent",
        ),
        ("separation of development and test data", "MI-CLAIM", _separation(run)),
        (
            "code and data to repeat it",
            "TRIPOD-LLM, MI-CLAIM",
            "version, settings and hashes under \u201cTo repeat it\u201d" if run.ours else UNKNOWN,
        ),
        ("limits", "all four", "see \u201cLimits\u201d"),
    ]


def _separation(run: _Run) -> str:
    if run.dataset == "OpenOSCE":
        locked = run.settings.get("lockbox") is True
        return "lockbox cases were played" if locked else "development cases only; the lockbox third was not played"
    return AUTHORS


def _open_items(run: _Run) -> list[str]:
    items = [
        "title, question and hypothesis; why this benchmark answers it",
        "dates of the calls, and the provider's model snapshot behind each name",
        "training data and cut-off of the models, as far as the provider tells; whether the cases can have been in it",
        "how many settings and prompts were tried before this run, and on which cases",
        "how the number of cases was decided on",
        "comparison: other models, clinicians, or reference doctors (`agentclinic compare`)",
        "error analysis by a clinician; harm of wrong diagnoses",
        "fairness: results by age, sex and other groups the cases state",
        "ethics, registration or protocol, funding, competing interests, where records and code are kept",
    ]
    if run.dataset not in _LICENCES:
        items.append("licence and origin of the data set")
    if run.setting("moderator_llm") not in ("builtin", UNKNOWN):
        items.append("agreement of this judge with a person on a sample (`agentclinic judge compare --labels`)")
    return items
