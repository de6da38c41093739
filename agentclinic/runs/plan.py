"""What a run plays: cases times repeats, how language models play the roles, and the digest that guards resuming."""

from __future__ import annotations

import hashlib
import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentclinic.cases.model import Case
from agentclinic.cases.registry import DATASETS, SHUFFLED, SWAPPED, load_cases, select
from agentclinic.cases.solvable import is_world, needed, spec
from agentclinic.cases.versions import original_of
from agentclinic.clinic.doctor import Dialogue
from agentclinic.clinic.judge import mode_of
from agentclinic.clinic.patient import Simulator
from agentclinic.clinic.payloads import MissingTest, SilentSymptom
from agentclinic.clinic.prompts import Prompt, Prompts, load_prompts, supported, user_prompts
from agentclinic.config import (
    ALL_GENERATION,
    GENERATION_OF,
    PRESETS,
    ROLE_NAMES,
    ROLES,
    Given,
    JudgeMode,
    RunSettings,
    Settings,
    SimulatorChoice,
    defaults,
    is_at_endpoint,
    is_builtin_or_person,
    is_person,
    refuse_without_effect,
    variable,
    without_credentials,
)
from agentclinic.doctors.custom import DoctorFactory, doctor_names, is_custom
from agentclinic.doctors.reference import REFERENCES
from agentclinic.errors import ConfigError
from agentclinic.files import exists, expanded, find_up
from agentclinic.models.wire import local_image
from agentclinic.privacy import DataClass, strictest
from agentclinic.results.run_cases import case_lines, lines_digest
from agentclinic.runs.limits import with_terms
from agentclinic.scoring.costs import Costs, load_costs
from agentclinic.trust import read_program, require_cluster, require_images, require_program
from agentclinic.version import __version__

if TYPE_CHECKING:  # what few runs need is imported where it is used
    from agentclinic.doctors.planner.settings import Policy
    from agentclinic.doctors.uncertainty.agent_config import Agent
    from agentclinic.memory.retrieval import Memory
    from agentclinic.memory.split import Split

# Settings that change nothing in the records but `timing`.
_NOT_RESULTS = frozenset(
    "workers engine address processes record output_dir name check preset prompts_dir agent_config memory split "
    "uncertainty_agent_type dataset scenarios offset sample num_scenarios".split()
)
_LATER = ("setting_limits", "test_budget", "order_limit")
"""Settings that are part of the digest only if they are not at their defaults."""
_RUNTIME_RESULTS = ("clip_prompt", "max_prompt_len", "encounter_timeout")


@dataclass(frozen=True)
class Unit:
    """One case, once."""

    case: Case
    repeat: int
    seed: int
    copy: int = 0
    """How many of the chosen rows before this one hold the same case."""

    @property
    def key(self) -> str:
        """Identity within the run, as in `Record.unit`."""
        return f"{self.case.scenario_id}:{self.case.id}:{self.repeat}"

    @property
    def session_id(self) -> str:
        """Name of its session file: the same in every run of this unit, and it does not reveal the case."""
        mark = hashlib.sha256(f"session:{self.case.id}:{self.repeat}:{self.copy}".encode()).hexdigest()[:10]
        return f"scenario_{self.case.scenario_id}_{mark}"

    @property
    def recording(self) -> str:
        """Identity in recordings: by content, so that a case is still found after other rows were added."""
        return f"{self.case.id}:{self.repeat}" + (f":{self.copy}" if self.copy else "")


_SIMULATED = {"patient": ("voiced_system", "grounded_system"), "measurement": ("grounded_system",)}
"""Texts without which a role's prompt file is for free text, as the original's files are."""


@dataclass(frozen=True)
class Roles:
    """How language models play the roles: as the settings say, or as a user's own prompt files imply."""

    patient: Simulator
    laboratory: Simulator
    dialogue: Mapping[str, Dialogue]
    """How the model of the doctor, the patient and the laboratory (`measurement`) is shown the dialogue."""
    missing_test: MissingTest | None
    """None if the laboratory's prompt file decides and says neither."""
    silent_symptom: SilentSymptom | None
    """None if the patient's prompt file decides."""
    judge: JudgeMode


def simulator_of(settings: Settings, role: str, prompt: Prompt) -> Simulator:
    """How the patient or the laboratory (`measurement`) is played with this prompt file; `auto` once it is decided."""
    if settings.run.simulator != "auto":
        return settings.run.simulator
    chosen = settings.simulators.get(role)
    return (chosen.simulator if chosen else "voiced") if prompt.has(*_SIMULATED[role]) else "free"


def _roles(settings: Settings, prompts: Prompts) -> tuple[Prompts, Roles]:
    """How the roles are played; where a setting says so, the shipped texts complete a user's own prompt file."""
    run, files = settings.run, dict(prompts.files)
    chats = {"doctor": ("chat_system",), **_SIMULATED}
    completed = ["doctor"] if run.dialogue == "chat" else []
    completed += _SIMULATED if run.simulator in ("voiced", "grounded") else []
    for role in completed:
        if not files[role].has(*chats[role]) and is_at_endpoint(getattr(run, f"{role}_llm")):
            why = "dialogue chat" if role == "doctor" else f"simulator {run.simulator}"
            warnings.warn(f"{files[role].path} has no texts for {why}, so the shipped ones are used", stacklevel=4)
        files[role] = files[role].completed()
    dialogue: dict[str, Dialogue] = {
        role: run.dialogue or ("chat" if files[role].has(*texts) else "transcript") for role, texts in chats.items()
    }
    patient, laboratory = (simulator_of(settings, role, files[role]) for role in _SIMULATED)
    judge = mode_of(run, files["moderator"])
    return Prompts(files), Roles(patient, laboratory, dialogue, run.missing_test, run.silent_symptom, judge)


def _as_charted(settings: Settings, roles: Roles, cases: Sequence[Case]) -> tuple[Settings, Roles]:
    """What the data set decides if the settings do not: how missing tests are answered, and whether results are late.

    A language model that writes what it likes is shown the chart alone, so there neither has an effect.
    """
    run, given = settings.run, settings.given
    name = (cases[0].dataset if cases else run.dataset).removesuffix(SHUFFLED).removesuffix(SWAPPED)
    if is_world(run.dataset) or any(case.drawn for case in cases[:1]):
        return settings, roles
    written = name in DATASETS and DATASETS[name].completed
    free = roles.laboratory == "free" and not is_builtin_or_person(run.measurement_llm)
    for key, value in (("missing_test", "completed"), ("pending_results", True)):
        if free and getattr(run, key) == value:
            told = f"{key} {str(value).lower()} has no effect: the laboratory writes what it likes (simulator free)"
            if given.names(run, key):
                raise ConfigError(f"{told}; use --simulator voiced or grounded, or leave {key} out")
            warnings.warn(told, stacklevel=3)
            settings = settings.changed(**{key: None})
    if run.missing_test == "completed" and not written and not free:
        warnings.warn(
            f"missing_test completed: the charts of {name} were not written to be completed, so a normal result may "
            "contradict the true diagnosis",
            stacklevel=3,
        )
    run = settings.run
    missing: MissingTest = run.missing_test or ("completed" if written and not free else "unavailable")
    pending = run.pending_results if run.pending_results is not None else written and not free
    return settings.changed(missing_test=missing, pending_results=pending), replace(roles, missing_test=missing)


def _as_prompted(
    settings: Settings, prompts: Prompts, roles: Roles, chosen_by_user: Collection[str]
) -> tuple[Settings, Roles]:
    """What free text in a user's own prompt files decides in place of settings; refuses flags that it overrides."""
    run, given = settings.run, settings.given
    played = {
        "missing_test": ("measurement", roles.laboratory, "missing"),
        "silent_symptom": ("patient", roles.patient, "silent"),
    }
    for key, (role, how, text) in played.items():
        asked, prompt = getattr(run, key), prompts[role]
        own = is_builtin_or_person(getattr(run, f"{role}_llm")) or how != "free"
        if own or prompt.has(f"{text}_{asked}"):
            continue
        said = _missing_in(prompt.text("system_base")) if key == "missing_test" else None
        if said != asked:
            told = f"{key} {asked} has no effect: {prompt.path} decides, and has no text {text}_{asked}"
            if given.names(run, key):
                raise ConfigError(f"{told}; add that text (docs/prompts.md), or leave {key} out")
            by_preset = run.preset is not None and key in PRESETS[run.preset]
            if key in chosen_by_user and not by_preset and (said or asked != defaults(key)[key]):
                warnings.warn(told, stacklevel=3)
        changes: dict[str, Any] = {key: said}
        roles, settings = replace(roles, **changes), settings.changed(**changes) if said else settings
    return settings, roles


def _missing_in(text: str) -> MissingTest | None:
    """What a laboratory's own prompt says about tests that are not in the chart, as the original's files do."""
    forbidden = r"\b(?:do not|don't|must not|never|avoid)\b[^.]{0,60}?\bnormal\b"
    if re.search(r"\bnormal\b", re.sub(forbidden, "", text, flags=re.IGNORECASE), re.IGNORECASE):
        return "normal"
    return "unavailable" if re.search(r"\bunavailable\b|\bnot available\b", text, re.IGNORECASE) else None


@dataclass(frozen=True)
class Plan:
    settings: Settings
    prompts: Prompts
    dataset: str
    cases: tuple[Case, ...]
    units: tuple[Unit, ...]
    digest: Mapping[str, Any]
    """What decides the results, key by key: resuming is refused if one of them has changed."""
    custom_doctor: DoctorFactory | None
    agent: Agent | None
    """The uncertainty doctor as configured."""
    policy: Policy | None
    """The test policy, if the doctor plans with one."""
    costs: Costs | None
    """The user's own prices of tests."""
    memory: Memory | None
    """The experiences that are offered to the doctor."""
    split: Split | None
    roles: Roles
    data_class: DataClass
    """The strictest class of all rows in the data set's file, including those that are not played."""
    unsupported_bias: Mapping[str, str]
    """Biases that the original's preset was asked for and ignored, as the prompt files do not have them, by setting."""

    @property
    def people(self) -> bool:
        return self.settings.run.people

    @property
    def undecided(self) -> tuple[str, ...]:
        """The roles for which `simulator: auto` still has to decide: models at endpoints with texts for both ways."""
        run, reference = self.settings.run, REFERENCES.get(self.settings.run.doctor)
        asked = reference is None or reference.turns
        if run.simulator != "auto" or not asked or self.cases[0].drawn:
            return ()
        return tuple(
            role
            for role, texts in _SIMULATED.items()
            if role not in self.settings.simulators
            and is_at_endpoint(self.settings.models[role].name)
            and self.prompts[role].has(*texts)
        )

    def decided(self, chosen: Mapping[str, SimulatorChoice]) -> Plan:
        """The plan with what `simulator: auto` decided, by role."""
        settings = self.settings.model_copy(update={"simulators": {**self.settings.simulators, **chosen}})
        patient, laboratory = (simulator_of(settings, role, self.prompts[role]) for role in _SIMULATED)
        roles = replace(self.roles, patient=patient, laboratory=laboratory)
        return replace(self, settings=settings, roles=roles, digest={**self.digest, **_decisions(settings)})


def make_plan(settings: Settings, cases: Sequence[Case] = (), doctor: object = None) -> Plan:
    """Load the cases and prompts, and refuse what cannot work, before anything is written.

    `cases` are played as they are, and the data set is not read: those of a resumed run, or given in Python.
    `doctor` is a custom doctor given in Python, a class or an instance.
    """
    if doctor is not None and settings.ray:
        raise ConfigError(
            "engine ray: workers cannot be sent a doctor that exists only in this program; name it as FILE.py:Class"
        )
    custom_doctor = DoctorFactory(doctor) if doctor is not None else None
    if custom_doctor:
        settings = settings.changed(doctor=custom_doctor.name)
    given, asked = settings.given, settings.run
    if asked.record and not asked.record.endswith(".jsonl") and not given.names(asked, "record"):
        # Otherwise, a folder from someone else could create any file, such as a login script.
        raise ConfigError(f"record: a file may name only a recording that ends in .jsonl; use --record {asked.record}")
    settings = _with_people(_with_places(settings))
    agent = None
    if settings.run.doctor == "uncertainty":
        from agentclinic.doctors.uncertainty.agent_config import UNCERTAINTY, load_agent

        if path := _path(settings.run.agent_config):
            usual = asked.agent_config is None
            named = usual or given.names(asked, "agent_config")
            require_program(path, read_program(path), given, "agent_config", named=named)
        agent = load_agent(path, settings.run.uncertainty_agent_type or UNCERTAINTY)
        settings = _with_agent(settings, agent)
    if is_world(settings.run.dataset):  # before other checks, whose advice would not help there
        _refuse_in_world(settings.run)
    _refuse_impossible(settings)
    settings = _without_unused(settings)
    if custom_doctor is None and settings.run.doctor not in doctor_names():
        named = given.names(asked, "doctor")
        custom_doctor = DoctorFactory(
            asked.doctor, lambda path, code: require_program(path, code, given, "doctor", named=named)
        )
    further = (*(("uncertainty", "synthesis") if agent else ()), *(("memory",) if settings.memory else ()))
    prompts = load_prompts(_path(settings.run.prompts_dir), *further)
    prompts, roles = _roles(settings, prompts)
    chosen_by_user = settings.run.model_fields_set
    settings, roles = _as_charted(settings, roles, cases)
    settings, roles = _as_prompted(settings, prompts, roles, chosen_by_user)
    if roles.judge != "builtin":  # the prompt file may decide; the run's settings say how it was judged
        settings = settings.changed(judge=roles.judge)
    auto = settings.run.simulator == "auto" and bool(settings.run.check or settings.simulators)
    silent = {"embedding", "measurement"} if roles.laboratory == "voiced" and not auto else {"embedding"}
    refuse_unsent(settings, settings.models.keys() - silent, only_flags=settings.run.people)
    policy = _policy(settings)
    costs = load_costs(_path(settings.run.prompts_dir))
    settings, unsupported = _without_unsupported(settings, prompts)
    run = settings.run
    count = needed(run.scenarios, run.offset, run.sample, run.num_scenarios) if is_world(run.dataset) else 0
    # With the lockbox, so that `select` can say which rows are in it.
    every = list(cases) or load_cases(run.dataset, settings.datasets, lockbox=True, seed=run.seed, count=count)
    split = _split(run)
    chosen = list(cases) or _chosen(every, run, split)
    settings = _in_world(settings, chosen)
    run = settings.run
    if split and run.part and cases:
        chosen = split.choose(chosen, run.part)
    memory = _memory(settings, split)
    if run.doctor_image_request and not any(case.image for case in chosen):
        warnings.warn(
            f"doctor_image_request is ignored: no case of this run has an image ({run.dataset})", stacklevel=2
        )
        settings = settings.changed(doctor_image_request=False)
    if settings.run.doctor_image_request:
        beside = None if cases else Path(settings.datasets.get(run.dataset, run.dataset)).resolve().parent
        _require_images(chosen, given, beside, named=bool(cases) and given.names(asked, "dataset"))
    data_class = strictest((*(case.data_class for case in every), *((memory.store.data_class,) if memory else ())))
    if data_class is DataClass.CREDENTIALED:
        _refuse_to_send(settings.run, chosen)
    chosen = with_terms(run, chosen, costs)
    copies = _copies(chosen)
    units = tuple(
        Unit(case, repeat, unit_seed(run.seed, case, repeat), copy)
        for repeat in range(run.repeats)
        for case, copy in zip(chosen, copies, strict=True)
    )
    digests = {
        "doctor_file": custom_doctor.digest if custom_doctor else None,
        "agent": agent.digest if agent else None,
        "policy": policy.digest if policy else None,
        "price_table": costs.digest if costs else None,
        "cases": lines_digest(case_lines(chosen)),
        "memory": memory.store.digest if memory else None,
        "split": split.checksum if split else None,
    }
    return Plan(
        settings=settings,
        prompts=prompts,
        dataset=every[0].dataset,
        cases=tuple(chosen),
        units=units,
        digest=_digest(settings, prompts) | {name: digest for name, digest in digests.items() if digest},
        custom_doctor=custom_doctor,
        agent=agent,
        policy=policy,
        costs=costs,
        memory=memory,
        split=split,
        roles=roles,
        data_class=data_class,
        unsupported_bias=unsupported,
    )


def _chosen(every: Sequence[Case], run: RunSettings, split: Split | None) -> list[Case]:
    """The cases of the data set that a run plays; without a split file, `part` is a half of it."""
    if split or not run.part:
        chosen = select(every, **run.selection)
        return split.choose(chosen, run.part) if split and run.part else chosen
    if run.lockbox:
        raise ConfigError("part: the lockbox is in neither half of a data set; leave out part or lockbox")
    half = halves(every)
    if run.scenarios is None:  # so many cases of that half
        return select([case for case in every if half.part_of(case.id) == run.part], **run.selection)
    chosen = select(every, **run.selection)
    other = next((case for case in chosen if half.part_of(case.id) != run.part), None)
    if other:
        raise ConfigError(f"scenarios: {other.name} is not in the {run.part} half; leave it out, or leave out part")
    return chosen


def _split(run: RunSettings) -> Split | None:
    if not run.split:
        return None
    from agentclinic.memory.split import read_split

    return read_split(Path(run.split))


def halves(cases: Sequence[Case]) -> Split:
    """The split of a data set that `part` means without a file; the lockbox is in neither half."""
    from agentclinic.memory.split import make_split

    return make_split([case for case in cases if not case.in_lockbox], seed=0)


def _require_images(cases: Iterable[Case], given: Given, beside: Path | None, *, named: bool) -> None:
    """Refuse local images that are neither `beside` the case file nor confirmed; `named`: in Python, with the cases."""
    paths = {path.resolve().parent for case in cases if case.image and (path := local_image(case.image))}
    for folder in sorted(paths):
        require_images(folder, given, named=named or (beside is not None and folder.is_relative_to(beside)))


def _policy(settings: Settings) -> Policy | None:
    planner = settings.planner
    if planner is None:
        return None
    from agentclinic.doctors.planner.settings import load_policy

    policy = load_policy(planner.policy, _path(settings.run.prompts_dir), chat=settings.run.dialogue == "chat")
    if planner.inline and policy.file.differential_settings.discriminators == "separate":
        raise ConfigError(
            f"{policy.path}: discriminators separate takes a second request, and doctor_test_policy_mode inline "
            "makes only one; use with_plan or off"
        )
    return policy


def _memory(settings: Settings, split: Split | None) -> Memory | None:
    """The experiences of the run; refused if they may come from cases that the doctor is tested on."""
    memory, run = settings.memory, settings.run
    if memory is None:
        return None
    from agentclinic.memory.retrieval import Memory
    from agentclinic.memory.store import load_store

    store = load_store(Path(memory.path))
    if store.splits - {None} and split is None:
        raise ConfigError(
            f"memory: the experiences in {memory.path} were made with a split, which says which cases they may be "
            "tested on; name it with --split FILE"
        )
    if split and store.splits != {split.checksum}:
        raise ConfigError(
            f"memory: {memory.path} was not made with the split {run.split} (or not all of it), so a case of the test "
            "part may be among its sources; use the split it was made with, or learn again with --split"
        )
    if split and any(split.part_of(source.case) != "train" for source in store.every_source):
        raise ConfigError(
            f"memory: {memory.path} has an experience from a case that is not in the train part; learn again"
        )
    if unknown := sum(not source.fingerprint for source in store.sources):
        warnings.warn(
            f"memory: the case of {unknown} of {len(store.sources)} experiences in {memory.path} is not known, so they "
            "may be shown on that case",
            stacklevel=3,
        )
    return Memory(store, memory.retrieval, with_steps=run.doctor_llm == "builtin" and not is_custom(run.doctor))


def _without_unsupported(settings: Settings, prompts: Prompts) -> tuple[Settings, dict[str, str]]:
    """The settings without biases that the prompt files lack, and those biases.

    The original ignores them, and so does its preset; otherwise they are refused. So is a bias for a builtin role: it
    has no effect, and the run would report a false null result.
    """
    unsupported = {}
    for role in ("doctor", "patient"):
        name = getattr(settings.run, f"{role}_bias")
        if settings.run.preset != "original":
            prompts[role].bias(name)
        if supported(name, prompts[role]) != name:
            unsupported[f"{role}_bias"] = name
        elif name is not None and getattr(settings.run, f"{role}_llm") == "builtin":
            raise ConfigError(
                f"{role}_bias {name!r} has no effect on the builtin {role}, and the run would report a false null "
                f"result; name a model with --{role}-llm or leave the bias out"
            )
    return settings.changed(**dict.fromkeys(unsupported)), unsupported


def refuse_unsent(settings: Settings, in_use: Collection[str], *, only_flags: bool) -> None:
    """Refuse generation settings that no request will have; `in_use` are the roles that ask their model."""
    run, given = settings.run, settings.given
    asking = {GENERATION_OF[role] for role in in_use if is_at_endpoint(settings.models[role].name)}
    asking |= {"doctor"} if "doctor" in in_use and is_custom(run.doctor) else set()  # it may ask any model by name
    for key in run.generation:
        role = key.partition("_")[0] if key.startswith(ROLES) else ""
        if (role in asking if role else asking) or (only_flags and not given.names(run, key)):
            continue
        who = f"the {role} ({getattr(run, f'{role}_llm')})" if role else "every role"
        other = " and --simulator grounded" if role == "measurement" else ""
        raise ConfigError(
            f"{key} has no effect: {who} works without requests to a model here; name a model with "
            f"--{role or ('doctor' if 'doctor' in in_use else 'moderator')}-llm{other}, or leave it out"
        )


def _without_unused(settings: Settings) -> Settings:
    """The settings without endpoints of roles that ask none; a flag that has no effect for this reason is refused."""
    run, given = settings.run, settings.given
    names = {role: getattr(run, f"{role}_llm") for role in ROLES}
    if given.names(run, "simulator") and all(is_builtin_or_person(names[role]) for role in _SIMULATED):
        raise ConfigError(
            f"simulator {run.simulator} has no effect: it is how language models play patient and laboratory, and here "
            f"they are {names['patient']} and {names['measurement']}; name a model with --patient-llm or "
            "--measurement-llm, or leave it out"
        )
    unused = [role for role in ROLES if getattr(run, f"{role}_endpoint") and not is_at_endpoint(names[role])]
    for role in unused:
        told = f"{role}_endpoint has no effect: the {ROLE_NAMES[role]} is {names[role]}, which asks no endpoint"
        if given.names(run, f"{role}_endpoint"):
            raise ConfigError(f"{told}; name a model with --{role}-llm, or leave it out")
        warnings.warn(told, stacklevel=3)
    return settings.changed(**{f"{role}_endpoint": None for role in unused})


def _path(name: str | None) -> Path | None:
    return Path(name) if name else None


def _with_agent(settings: Settings, agent: Agent) -> Settings:
    """Decide on the doctor's models: those the user set, else those in the agent's configuration."""
    run, own = settings.run, agent.settings
    changes: dict[str, Any] = {}
    if own.synthesis_model and not run.synthesis_llm:
        changes["synthesis_llm"] = own.synthesis_model
    if "doctor_llm" not in run.model_fields_set:
        changes["doctor_llm"] = own.model
    elif own.model not in (run.doctor_llm, "builtin"):
        warnings.warn(
            f"doctor_llm {run.doctor_llm!r} overrides the model {own.model!r} in {agent.path}; "
            "leave doctor_llm out to use the latter",
            stacklevel=2,
        )
    return settings.changed(**changes)


def _with_people(settings: Settings) -> Settings:
    """Human modes: a person plays the role, one encounter at a time."""
    run = settings.run
    role = {"human_doctor": "doctor", "human_patient": "patient"}.get(run.inf_type)
    named = role is not None and is_person(getattr(run, f"{role}_llm"))
    changes: dict[str, Any] = {f"{role}_llm": "human", f"{role}_endpoint": None} if role and not named else {}
    if (role or run.people or is_person(run.moderator_llm)) and run.workers > 1:
        warnings.warn(f"a person plays one scenario at a time; workers {run.workers} is ignored", stacklevel=2)
        changes["workers"] = 1
    return settings.changed(**changes)


def _with_places(settings: Settings) -> Settings:
    """Fix what depends on the working folder and the environment, so that a resumed run finds the same."""
    run = settings.run
    prompts = user_prompts(run.prompts_dir)
    places: dict[str, Any] = {
        "prompts_dir": str(prompts.absolute()) if prompts else None,
        "record": str(expanded(run.record).absolute()) if run.record else None,
        "agent_config": _agent_file(run),
        **{key: str(expanded(name).absolute()) for key in ("memory", "split") if (name := getattr(run, key))},
    }
    if world := spec(run.dataset):
        places["dataset"] = world.absolute()
    elif run.dataset not in settings.datasets and run.dataset not in DATASETS and exists(expanded(run.dataset)):
        places["dataset"] = str(expanded(run.dataset).absolute())
    openai = settings.openai.model_copy(update={"base_url": settings.openai.base_url or variable("OPENAI_BASE_URL")})
    return settings.changed(**places).model_copy(update={"openai": openai})


def _agent_file(run: RunSettings) -> str | None:
    if run.doctor != "uncertainty":
        return run.agent_config
    from agentclinic.doctors.uncertainty.agent_config import USUAL

    path = _path(run.agent_config) or find_up(USUAL)
    return str(expanded(path).absolute()) if path else None


def _copies(cases: list[Case]) -> list[int]:
    """For each case, how many before it are the same."""
    seen: Counter[str] = Counter()
    copies = []
    for case in cases:
        copies.append(seen[case.id])
        seen[case.id] += 1
    return copies


def unit_seed(seed: int, case: Case, repeat: int) -> int:
    """The seed of one unit, derived from that of the run; the same for all versions of a case."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{original_of(case).id}:{repeat}".encode()).digest()[:4], "big")


_EXACT = ("patient_llm", "measurement_llm", "moderator_llm")
_WITHOUT_MEANING = (
    *("preset", "simulator", "judge", "missing_test", "pending_results", "setting_limits", "silent_symptom"),
    *("test_budget", "order_limit", "patient_bias", "patient_traits", "doctor_image_request", "planner_baseline"),
    *("memory", "resource_level", "lockbox"),
)
"""Settings of a patient, a laboratory and a judge that a solvable world does not have."""


def _in_world(settings: Settings, cases: Sequence[Case]) -> Settings:
    """The settings of a run in a solvable world, which sets the turn limit; refuses what has no meaning there."""
    run = settings.run
    worlds = {case.drawn.world if case.drawn else None for case in cases}
    reference = REFERENCES.get(run.doctor)
    if len(worlds) > 1:
        raise ConfigError("cases of several worlds, or of a world and other cases, need a run each")
    world = next(iter(worlds), None)
    if world is None:
        if reference and reference.world:
            raise ConfigError(f"doctor {run.doctor} plays in solvable worlds only; use --dataset Solvable:chest-pain")
        return settings
    _refuse_in_world(run)
    if run.total_inferences not in (world.turns, *defaults("total_inferences").values()):
        raise ConfigError(f"total_inferences: this world sets the turn limit, {world.turns}; leave it out")
    return settings.changed(total_inferences=world.turns)


def _refuse_in_world(run: RunSettings) -> None:
    reference = REFERENCES.get(run.doctor)
    if reference and not reference.world:
        theirs = ", ".join(name for name, one in REFERENCES.items() if one.world)
        raise ConfigError(f"doctor {run.doctor} has no meaning in a solvable world; use {theirs}")
    if reference and run.doctor_llm != "builtin":
        raise ConfigError(f"doctor_llm has no effect: the doctor {run.doctor} asks no model; leave it out")
    for key in _EXACT:
        if getattr(run, key) != "builtin":
            raise ConfigError(
                f"{key}: in a solvable world only the doctor is a model; use --doctor-llm in place of --model or {key}"
            )
    if run.part:
        raise ConfigError("part has no meaning in a solvable world; another --seed draws other patients")
    for key, default in defaults(*_WITHOUT_MEANING).items():
        if getattr(run, key) != default and not (key == "judge" and run.judge == "builtin"):
            raise ConfigError(f"{key} has no meaning in a solvable world; leave it out")


PLAIN = ("plain", "history_only")
"""Doctors that make the plain doctor's requests."""


def _refuse_impossible(settings: Settings) -> None:
    run, planner = settings.run, settings.planner
    refuse_without_effect(run)
    refuse_on_cluster(settings)
    refuse_unusable_memory(settings)
    if run.patient_traits and is_person(run.patient_llm):
        raise ConfigError("patient_traits has no effect: a person plays the patient; leave it out")
    if planner and not _has_dialogue(run):
        raise ConfigError(f"doctor_test_policy_enabled: {run.doctor} has no dialogue to plan")
    if planner and is_person(run.doctor_llm):
        raise ConfigError("doctor_test_policy_enabled: the planner uses the doctor's model, which cannot be a person")
    if planner and planner.inline and run.doctor not in PLAIN:
        raise ConfigError(
            f"doctor_test_policy_mode inline works with the plain doctor, and {run.doctor} makes its own requests; "
            "use separate with this doctor"
        )
    if planner and planner.inline and planner.baseline == "full":
        raise ConfigError(
            "doctor_test_policy_mode inline with planner_baseline full would show the doctor the patient's script; "
            "use door, or separate"
        )
    if planner and planner.inline and run.policy_in_prompt:
        raise ConfigError(
            "policy_in_prompt with doctor_test_policy_mode inline would tell the doctor its policy twice; use one of "
            "them (--no-policy-in-prompt)"
        )
    if run.policy_in_prompt and run.preset != "original" and (run.doctor not in PLAIN or run.doctor_llm == "builtin"):
        who = f"the {run.doctor_llm if run.doctor in PLAIN else run.doctor} doctor"
        raise ConfigError(
            f"policy_in_prompt has no effect: {who} does not read the plain doctor's prompt; leave it out"
        )
    if run.elicit_confidence and run.doctor == "uncertainty":
        raise ConfigError("elicit_confidence: the uncertainty doctor states its confidence at every step; leave it off")
    if run.elicit_confidence and run.doctor not in PLAIN:
        raise ConfigError(f"elicit_confidence works with the plain doctor only, not with {run.doctor}")


def refuse_on_cluster(settings: Settings) -> None:
    """Refuse what other machines cannot do, and settings of a cluster without one."""
    refuse_without_effect(settings.run, "address", "processes")
    if settings.ray and settings.ray.address not in (None, "auto"):
        require_cluster(settings.ray.address, settings.given, named=settings.given.names(settings.run, "address"))
    if settings.ray and (settings.run.people or is_person(settings.run.moderator_llm)):
        raise ConfigError("engine ray: a person can take part only on this machine; use --engine local")
    if settings.ray and settings.run.record:
        raise ConfigError("engine ray: a recording is written by one process only; use --engine local with --record")


def refuse_unusable_memory(settings: Settings) -> None:
    """Refuse settings of memory that contradict each other, or that the doctor cannot use."""
    run, memory = settings.run, settings.memory
    if memory is None:
        return
    refuse_without_effect(run, "memory_retrieval", "embedding_llm")
    for key, model in (("memory_llm", memory.picker), ("embedding_llm", memory.embedding)):
        if model and is_builtin_or_person(model.name):
            raise ConfigError(f"{key}: {model.name} cannot do this; name a model at the endpoint")
    if memory.picker and memory.retrieval == "shuffled":
        raise ConfigError("memory_llm has no effect with memory_retrieval shuffled, which draws by chance")
    useless = "and the run would report a false null result"
    if not _has_dialogue(run):
        raise ConfigError(f"memory: the doctor {run.doctor} makes no use of it, {useless}")
    if is_person(run.doctor_llm):
        raise ConfigError(f"memory: experiences are shown to models, not to a person, {useless}; leave it out")


def _has_dialogue(run: RunSettings) -> bool:
    return run.doctor not in REFERENCES or REFERENCES[run.doctor].own_words


def _refuse_to_send(run: RunSettings, cases: list[Case]) -> None:
    """Handle what the gate cannot see: images that a provider would fetch, and a custom doctor's own connections."""
    for case in cases if run.doctor_image_request else ():
        if case.image and case.image.lower().startswith(("http://", "https://")):
            raise ConfigError(
                f"doctor_image_request: the image of {case.name} is a web address, and the case is "
                "credentialed; name a local file there, or leave images off"
            )
    if run.doctor not in doctor_names():
        warnings.warn(f"{run.doctor} is shown credentialed data; its own network calls are not checked", stacklevel=3)


def _digest(settings: Settings, prompts: Prompts) -> dict[str, Any]:
    # So that runs without them can be resumed with a version that has them.
    unset = {key for key, value in defaults(*_LATER).items() if getattr(settings.run, key) == value}
    unset |= set(ALL_GENERATION).difference(settings.run.generation)
    run = settings.run.model_dump(mode="json", exclude=unset)
    runtime = settings.llm.runtime.model_dump(mode="json")
    return {
        "version": __version__,
        **{f"run.{key}": value for key, value in run.items() if key not in _NOT_RESULTS},
        "llm.responses": settings.llm.responses,
        **{f"llm.runtime.{key}": runtime[key] for key in _RUNTIME_RESULTS},
        **_decisions(settings),
        **{f"prompts.{name}": digest for name, digest in prompts.digests.items()},
        "openai.base_url": without_credentials(settings.openai.base_url),
        "endpoints": {name: without_credentials(e.base_url) for name, e in settings.endpoints.items()},
    }


def _decisions(settings: Settings) -> dict[str, str]:
    return {f"auto.{role}": chosen.simulator for role, chosen in settings.simulators.items()}
