"""Settings: where they come from, what is refused, and that secrets are never shown."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers import ORIGINAL, needs_original
from pydantic import SecretStr

import agentclinic
from agentclinic.config import (
    ALL_GENERATION,
    EndpointSettings,
    LLMFile,
    LLMSettings,
    OpenAISettings,
    RoleModel,
    RunSettings,
    Settings,
    load_llm_file,
    load_settings,
    parse_settings,
    refuse_without_effect,
    variable,
    without_credentials,
)
from agentclinic.doctors.planner.settings import load_policy
from agentclinic.errors import ConfigError
from agentclinic.generate.settings import load as load_generation

SECRET = "sk-planted-0123456789"


def write(path: Path, data: Any) -> Path:
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return path


def test_flags_override_files_and_files_override_defaults(tmp_path: Path) -> None:
    config = write(tmp_path / "c.json", {"run": {"workers": 3, "seed": 5}})
    run = load_settings(config, None, {"workers": 9}).run
    assert (run.workers, run.seed, run.total_inferences) == (9, 5, 20)
    assert load_settings().run.workers == 1


def test_the_defaults_are_those_of_the_original() -> None:
    run = Settings().run
    assert (run.inf_type, run.total_inferences, run.workers, run.output_dir) == ("llm", 20, 1, "runs")
    assert (run.doctor_test_policy_enabled, run.doctor_test_policy) == (False, "test_policy")


def test_a_config_file_of_the_original_is_accepted(tmp_path: Path) -> None:
    run = {
        "inf_type": "llm",
        "doctor_bias": "None",
        "patient_bias": "None",
        "doctor_llm": "gpt-5",
        "patient_llm": "gpt-5",
        "measurement_llm": "gpt-5",
        "moderator_llm": "gpt-5",
        "dataset": "MedQA",
        "doctor_image_request": False,
        "num_scenarios": 10,
        "total_inferences": 20,
        "workers": 4,
        "doctor_test_policy_enabled": False,
        "doctor_test_policy": "test_policy",
        "resource_level": "busy",
        "output_dir": "runs",
    }
    config = write(tmp_path / "c.json", {"run": run, "datasets": {"MedQA": "processed_data/x.jsonl"}})
    llm = write(
        tmp_path / "l.json",
        {
            "openai": {"api_key": "", "base_url": ""},
            "llm": {
                "responses": {"max_output_tokens": 200, "reasoning": {"effort": "low"}, "text": {"verbosity": "low"}},
                "runtime": {"tries": 3, "timeout": 5, "clip_prompt": True, "max_prompt_len": 9000},
            },
        },
    )
    settings = load_settings(config, llm)
    assert settings.run.doctor_bias is None
    assert settings.datasets == {"MedQA": str(tmp_path / "processed_data/x.jsonl")}
    assert settings.openai.base_url is None
    assert settings.llm.runtime.tries == 3


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ({"run": {"wokers": 3}}, "unknown key 'run.wokers'; did you mean 'workers'?"),
        ({"rum": {}}, "unknown key 'rum'; did you mean 'run'?"),
        ({"run": {"doctor-llm": "x"}}, "did you mean 'doctor_llm'"),
        (
            {"endpoints": {"lab": {"base_ulr": "http://x"}}},
            "unknown key 'endpoints.lab.base_ulr'; did you mean 'base_url'",
        ),
        ({"run": {"workers": "many"}}, "run.workers: must be a valid integer"),
        ({"run": {"workers": 0}}, "run.workers: must be greater than or equal to 1"),
        ({"run": {"inf_type": "robot"}}, "run.inf_type: must be 'llm', 'human_doctor' or 'human_patient'"),
        ({"run": 3}, "run: must be"),
        (
            {"endpoints": {"lab": {"base_url": "http://x", "prices": {"m": {"input": 1, "ouput": 2}}}}},
            "unknown key 'endpoints.lab.prices.m.ouput'; did you mean 'output'",
        ),
        (
            {"endpoints": {"lab": {"base_url": "http://x", "prices": {"m": {"input": -1, "output": 2}}}}},
            "endpoints.lab.prices.m.input: must be greater than or equal to 0",
        ),
        (
            {"endpoints": {"lab": {"base_url": "http://x", "prices": {"m": {"input": "1", "output": 2}}}}},
            "endpoints.lab.prices.m.input: must be a valid number",
        ),
        ({"datasets": {"A": 3}}, "datasets.A: must be a valid string"),
        ([], "expected a JSON object, found a list"),
    ],
)
def test_an_error_names_the_file_and_the_key(tmp_path: Path, data: Any, complaint: str) -> None:
    config = write(tmp_path / "clinic.json", data)
    with pytest.raises(ConfigError) as refused:
        load_settings(config)
    assert str(refused.value).startswith(f"{config}: ")
    assert complaint in str(refused.value)


def test_a_wrong_flag_is_not_blamed_on_the_file(tmp_path: Path) -> None:
    config = write(tmp_path / "clinic.json", {"run": {"workers": 2}})
    with pytest.raises(ConfigError) as refused:
        load_settings(config, None, {"workers": 0})
    assert str(refused.value) == "workers: must be greater than or equal to 1"


def test_an_error_in_json_names_the_line(tmp_path: Path) -> None:
    config = write(tmp_path / "clinic.json", '{\n  "run": {\n    "workers" 3\n  }\n}\n')
    with pytest.raises(ConfigError, match=r"clinic\.json line 3: not valid JSON"):
        load_settings(config)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.json: no such file; check the path"):
        load_settings(tmp_path / "gone.json")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_llm_file(tmp_path)
    (tmp_path / "latin.json").write_bytes(b'{"a": "\xe4"}')
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_llm_file(tmp_path / "latin.json")
    for content in ("[" * 100_000, '{"llm": ' + "9" * 5000 + "}"):
        with pytest.raises(ConfigError, match=r"strange\.json: not readable JSON"):
            load_llm_file(write(tmp_path / "strange.json", content))


def test_an_env_file_that_is_not_utf_8_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    (tmp_path / ".env").write_bytes(b"OPENAI_BASE_URL=http://caf\xe9\n")
    with pytest.raises(ConfigError, match=r"\.env: not UTF-8 text"):
        variable("OPENAI_BASE_URL")


def test_a_file_saved_by_an_editor_that_marks_utf_8_is_read(tmp_path: Path) -> None:
    config = write(tmp_path / "clinic.json", '\ufeff{"run": {"workers": 3}}')
    assert load_settings(config).run.workers == 3


def test_the_deprecated_key_causes_a_warning_that_users_see(tmp_path: Path) -> None:
    write(tmp_path / "agentclinic.config.json", {"run": {"measurement_cost_llm": "gpt-4"}})
    with pytest.warns(FutureWarning, match="is ignored: test_economics_log is filled from a price table"):
        load_settings(tmp_path / "agentclinic.config.json")
    shown = subprocess.run(
        [sys.executable, "-m", "agentclinic", "data", "list"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stderr.startswith("Warning: run.measurement_cost_llm is ignored: ")
    assert shown.stderr.count("\n") == 1


def full_of_secrets() -> Settings:
    return Settings(
        openai=OpenAISettings(api_key=SecretStr(SECRET), base_url=f"http://user:{SECRET}@host:8000/v1"),
        endpoints={"lab": EndpointSettings(base_url=f"https://{SECRET}@lab/v1", api_key_env="LAB_KEY")},
    )


def test_no_secret_is_recorded_or_shown() -> None:
    settings = full_of_secrets()
    public = settings.public()
    assert SECRET not in json.dumps(public)
    assert public["openai"] == {"base_url": "http://host:8000/v1"}
    assert public["endpoints"] == {"lab": {"base_url": "https://lab/v1", "api_key_env": "LAB_KEY"}}
    assert SECRET not in repr(settings)
    assert SECRET not in str(settings)
    assert settings.openai.base_url is not None
    assert SECRET in settings.openai.base_url, "the endpoint still needs it"


@pytest.mark.parametrize(
    "data",
    [
        {"openai": {"api_key": {"value": SECRET}}},
        {"openai": {"base_url": SECRET}},
        {"openai": {"base_url": f"user:{SECRET}@host:8000"}},
        {"openai": {"base_url": f"http://[{SECRET}"}},
        {"openai": {"key": SECRET}},
        {"openai": SECRET},
        {"api_key": SECRET},
        {"llm": {"runtime": {"tries": SECRET}}},
        {"llm": {"runtime": {"llm_api": SECRET}}},
        {"llm": {"responses": SECRET}},
        {"llm": {"responses": {"api_key": SECRET}}},
        {"llm": {"responses": {"extra_headers": {"Authorization": f"Bearer {SECRET}"}}}},
        {"llm": {"responses": {"extra_body": {"api_key": "planted"}}}},
        {"llm": {"responses": {"extra_body": [{"headers": {"X-Ward": "planted"}}]}}},
        {"llm": {"responses": {"metadata": {"accessToken": "planted"}}}},
        {"llm": {"responses": {"user": f"Bearer {SECRET}"}}},
        {"llm": {"responses": {SECRET: True}}},
        {"openai": {SECRET: ""}},
        {"openai": {"prices": {SECRET: {"input": 1, "output": 1}}}},
        {"openai": {"0123456789abcdef-planted": ""}},
        {"openai": {"base_url": f"http://host:8000/v1?key={SECRET}"}},
        {"openai": {"base_url": f"http://host:8000/v1#{SECRET}"}},
        {"openai": {"base_url": f"https://gateway.example/{SECRET}/v1"}},
        {"openai": {"base_url": f"https://gateway.example/{SECRET.replace('-', '%2D')}/v1"}},
        {"openai": {"base_url": f"unix:///run/llm.sock:/{SECRET}/v1"}},
        {"openai": {"base_url": "https://gateway.example/planted9Xq2Lm7Tz4Rw8Bn3Kc6/v1"}},
    ],
)
def test_a_key_in_the_wrong_place_is_refused_and_not_repeated(tmp_path: Path, data: Any) -> None:
    with pytest.raises(ConfigError) as refused:
        load_llm_file(write(tmp_path / "llm.json", data))
    assert "planted" not in str(refused.value)
    assert "llm.json" in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


ORDINARY = (
    "/v1",
    "/v1/0123456789abcdef0123456789abcdef/my-gateway/openai",
    "/v1/3F2504E0-4F89-11D3-9A0C-0305E82C3301",
    "/openai/deployments/GPT-4o-Mini-2024-07-18-EastUS2",
    "/v1/projects/my-project-123/locations/us-central1/endpoints/openapi",
    "/MyCompanyGateway2024Production/v1",
    "/models/Meta-Llama-3.1-70B-Instruct-AWQ-INT4",
    "/arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.some-model-20241022-v2:0",
)


@pytest.mark.parametrize("path", ORDINARY)
def test_an_ordinary_path_is_no_key(path: str) -> None:
    """Account numbers in hexadecimal are not secrets, and cannot be told from keys that have that form."""
    for address in (f"https://gateway.example{path}", f"unix:///run/llm.sock:{path}"):
        assert OpenAISettings(base_url=address).base_url == address
        assert without_credentials(address) == address


@pytest.mark.parametrize("port", ["99999", "65536", "0", "-1", "8o00"])
def test_an_impossible_port_is_refused_with_the_key(tmp_path: Path, port: str) -> None:
    data = {"endpoints": {"lab": {"base_url": f"http://127.0.0.1:{port}/v1"}}}
    with pytest.raises(
        ConfigError, match=r"endpoints\.lab\.base_url: must be an http\(s\) address with a port from 1 to"
    ):
        load_settings(write(tmp_path / "clinic.json", data))


def test_an_impossible_port_of_an_attested_host_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"privacy\.hosts: must be a host or host:port \(1 to 65535\)"):
        load_settings(write(tmp_path / "clinic.json", {"privacy": {"hosts": {"llm.example.org:99999": {}}}}))


@pytest.mark.parametrize("key", [SECRET, "hf_abcdefgh", "gsk_0123456789"])
def test_a_key_in_place_of_its_variable_is_refused_and_not_repeated(tmp_path: Path, key: str) -> None:
    data = {"endpoints": {"lab": {"base_url": "http://127.0.0.1/v1", "api_key_env": key}}}
    with pytest.raises(ConfigError, match="not the key itself") as refused:
        load_settings(write(tmp_path / "clinic.json", data))
    assert key not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (None, None),
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
        ("https://user:word@host/v1", "https://host/v1"),
        ("https://us%40er:wo@rd@host:1/v1", "https://host:1/v1"),
        ("https://host/v1?api-key=word", "https://host/v1"),
        ("https://host/v1#word", "https://host/v1"),
        ("user:word@host/v1", "host/v1"),
        ("http://[word", "(not an address)"),
        (f"https://us:er@host/{SECRET}/v1", "https://host/(not shown: it may hold a key)"),
        (f"unix:///run/llm.sock:/{SECRET}", "unix:/(not shown: it may hold a key)"),
        (f"host/{SECRET}/v1", "/(not shown: it may hold a key)"),
        ("localhost:6379", "localhost:6379"),
    ],
)
def test_addresses_are_shown_without_credentials(url: str | None, shown: str | None) -> None:
    assert without_credentials(url) == shown


def test_every_setting_is_documented() -> None:
    for section in (type(Settings().run), OpenAISettings, type(LLMSettings().runtime), EndpointSettings):
        for name, field in section.model_fields.items():
            assert field.description or name in ALL_GENERATION[4:], f"{section.__name__}.{name}"


def test_a_role_has_its_own_generation_settings_or_the_general_ones() -> None:
    run = RunSettings.model_validate({"temperature": 0.2, "doctor_temperature": 0.7, "patient_max_output_tokens": 50})

    assert run.generation_of("doctor") == {"temperature": 0.7}
    assert {str(run.generation_of(part)) for part in ("planner", "synthesis", "confidence", "query")} == {
        str(run.generation_of("doctor"))
    }
    assert run.generation_of("patient") == {"temperature": 0.2, "max_output_tokens": 50}
    assert run.generation_of("memory") == run.generation_of("moderator") == {"temperature": 0.2}
    assert run.generation_of("learner") == run.generation_of("writer") == {}, "they are not part of a run"
    used = Settings(run=run).public()["run"]
    assert {key: used[key] for key in ALL_GENERATION if key in used} == run.generation, "the others are not written"


def test_settings_cannot_be_changed_once_read() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().run.workers = 3  # type: ignore[misc]
    assert parse_settings(LLMFile, {}, "nothing") == LLMFile()


def test_a_used_config_brings_its_own_endpoint_unless_another_is_given(tmp_path: Path) -> None:
    used = {
        "run": {"seed": 7},
        "datasets": {"Mine": "/data/mine.jsonl"},
        "openai": {"base_url": "http://127.0.0.1:8000/v1"},
        "llm": {"runtime": {"tries": 2}},
        "agentclinic": {"version": "9.9", "digest": {}, "anything": "else"},
    }
    config = write(tmp_path / "config.used.json", used)
    other = write(tmp_path / "llm.json", {"llm": {"runtime": {"tries": 4}}})

    alone, given = load_settings(config), load_settings(config, other)

    assert (alone.run.seed, alone.datasets) == (7, {"Mine": "/data/mine.jsonl"})
    assert (alone.openai.base_url, alone.llm.runtime.tries) == ("http://127.0.0.1:8000/v1", 2)
    assert (given.run.seed, given.openai.base_url, given.llm.runtime.tries) == (7, None, 4)


@pytest.mark.filterwarnings("ignore:run.measurement_cost_llm")
@needs_original
def test_the_originals_own_files_are_accepted() -> None:
    split = load_settings(ORIGINAL / "agentclinic.config.json", ORIGINAL / "llm.config.json")
    (one_file,) = ORIGINAL.glob("runs/*/config.used.json")
    early = load_settings(one_file)

    assert (split.run.num_scenarios, split.llm.runtime.llm_api) == (200, "chat")
    assert (early.run.num_scenarios, early.llm.runtime.tries, early.llm.runtime.timeout) == (3, 30, 2.0)
    assert early.openai.base_url == "http://127.0.0.1:18000/v1"


def test_a_config_of_early_versions_holds_everything(tmp_path: Path) -> None:
    config = write(
        tmp_path / "agentclinic.config.json",
        {
            "openai": {"api_key": SECRET, "base_url": "http://127.0.0.1:8000/v1"},
            "run": {"dataset": "MedQA", "num_scenarios": 3},
            "llm": {"responses": {"max_output_tokens": 256}, "runtime": {"tries": 30, "timeout": 2.0}},
            "datasets": {"MedQA": "agentclinic_medqa.jsonl"},
        },
    )

    settings = load_settings(config)

    assert (settings.run.num_scenarios, settings.llm.runtime.tries) == (3, 30)
    assert settings.llm.responses == {"max_output_tokens": 256}
    assert settings.openai.api_key == SecretStr(SECRET)
    assert settings.datasets == {"MedQA": str(tmp_path / "agentclinic_medqa.jsonl")}
    with pytest.raises(ConfigError, match="did you mean 'tries'"):
        load_settings(write(config, {"llm": {"runtime": {"trys": 3}}}))


def test_keys_that_begin_with_an_underscore_are_comments_in_every_json_file(tmp_path: Path) -> None:
    comment = {"_comment": "why", "_old": {"nonsense": 1}}
    config = write(tmp_path / "c.json", {**comment, "run": {**comment, "workers": 3}})
    llm = write(tmp_path / "l.json", {**comment, "llm": {"responses": comment, "runtime": {**comment, "tries": 2}}})
    gen = write(tmp_path / "g.json", {**comment, "common": {**comment, "workers": 4}})
    write(tmp_path / "test_policy.json", {**comment, "constraints": {**comment, "finish_early_if_confident": 0.9}})

    settings = load_settings(config, llm)
    common, _ = load_generation(gen, "medqa", {})
    policy = load_policy(folder=tmp_path)

    assert (settings.run.workers, settings.llm.runtime.tries, common.workers) == (3, 2, 4)
    assert settings.llm.responses == {}
    assert policy.file.constraints.finish_early_if_confident == 0.9


# Presets


def test_a_preset_sets_what_the_original_did(tmp_path: Path) -> None:
    run = load_settings(overrides={"preset": "original"}).run
    assert (run.simulator, run.dialogue, run.missing_test, run.planner_baseline) == (
        "free",
        "transcript",
        "normal",
        "full",
    )
    assert (run.preset, run.policy_in_prompt) == ("original", True)


def test_a_preset_counts_where_it_is_named(tmp_path: Path) -> None:
    """As a flag it overrides the file, in a file the file's own keys override it, and other flags override both."""
    plain = write(tmp_path / "plain.json", {"run": {"simulator": "grounded", "seed": 5}})
    named = write(tmp_path / "named.json", {"run": {"preset": "original", "simulator": "grounded"}})

    flag = load_settings(plain, None, {"preset": "original", "dialogue": "chat"}).run
    file = load_settings(named, None, {"missing_test": "unavailable"}).run

    assert (flag.simulator, flag.dialogue, flag.missing_test, flag.seed) == ("free", "chat", "normal", 5)
    assert (file.simulator, file.dialogue, file.missing_test) == ("grounded", "transcript", "unavailable")


def test_a_used_config_repeats_a_preset_with_what_flags_changed(tmp_path: Path) -> None:
    given = load_settings(None, None, {"preset": "original", "simulator": "voiced"})
    used = write(tmp_path / "config.used.json", given.public())

    assert load_settings(used).run == given.run


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(ConfigError, match="preset: must be 'original'"):
        load_settings(overrides={"preset": "orginal"})


def test_absurd_numbers_of_workers_and_repeats_are_refused() -> None:
    for name in ("workers", "repeats"):
        with pytest.raises(ConfigError, match=f"{name}: must be less than or equal to"):
            load_settings(overrides={name: 10**6})


def test_a_key_that_cannot_be_encoded_is_an_error_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "llm.config.json"
    path.write_text('{"llm": {"responses": {"token_\\ud800": "x"}}}')
    with pytest.raises(ConfigError, match=r"llm.config.json: a key is not UTF-8 text"):
        load_llm_file(path)


# Sections made from the keys of `run`


def sections(**run: Any) -> Settings:
    return Settings(run=RunSettings(**run))


def test_a_section_is_there_with_all_that_belongs_to_it_or_not_at_all() -> None:
    idle = sections(planner_baseline="full", memory_retrieval="embeddings", embedding_llm="e", address="auto")
    assert (idle.planner, idle.memory, idle.ray) == (None, None, None)
    assert list(idle.models) == ["doctor", "patient", "measurement", "moderator"]

    policy = sections(doctor_test_policy_enabled=True, doctor_test_policy="mine", doctor_test_policy_mode="inline")
    assert policy.planner == ("mine", True, "door")
    assert sections(engine="ray", processes=3).ray == (None, 3)


def test_an_embedding_model_belongs_to_retrieval_by_embeddings() -> None:
    named = {"memory": "store.jsonl", "memory_llm": "p", "embedding_llm": "e", "embedding_endpoint": "lab"}
    memory = sections(**named, memory_retrieval="embeddings").memory
    assert memory == ("store.jsonl", "embeddings", RoleModel("e", "lab"), RoleModel("p", None))
    assert "embedding" in sections(**named, memory_retrieval="embeddings").models
    assert "embedding" not in sections(**named).models


@pytest.mark.parametrize(
    ("run", "complaint", "needed"),
    [
        ({"address": "auto"}, "address has no effect without engine ray", {"engine": "ray"}),
        ({"processes": 2}, "processes has no effect without engine ray", {"engine": "ray"}),
        (
            {"planner_baseline": "full"},
            "planner_baseline has no effect without doctor_test_policy_enabled",
            {"doctor_test_policy_enabled": True},
        ),
        ({"planner_baseline": "full"}, "planner_baseline has no effect", {"preset": "original"}),
        ({"agent_config": "a"}, "agent_config has no effect without doctor uncertainty", {"doctor": "uncertainty"}),
        ({"split": "s.json"}, "split has no effect without part; set both, or leave out split", {"part": "test"}),
        ({"memory_endpoint": "e"}, "memory_endpoint has no effect without memory", {"memory": "m.jsonl"}),
        (
            {"memory": "m.jsonl", "embedding_llm": "e"},
            "embedding_llm has no effect without memory_retrieval embeddings",
            {"memory_retrieval": "embeddings"},
        ),
    ],
)
def test_a_key_that_has_no_effect_is_refused_with_what_it_needs(
    run: dict[str, Any], complaint: str, needed: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        refuse_without_effect(RunSettings(**run))
    refuse_without_effect(RunSettings(**run), "seed")
    refuse_without_effect(RunSettings(**run, **needed))


def test_only_the_edge_reads_the_keys_that_have_a_section() -> None:
    """Elsewhere a planner, a memory or a cluster is read from its section, so that it is whole."""
    package = Path(agentclinic.__file__).parent
    keys = "doctor_test_policy|planner_baseline|memory_|embedding_|engine|address|processes"
    flat = re.compile(rf"\brun\.(?:{keys})")
    reading = {path.name for path in package.rglob("*.py") if flat.search(path.read_text(encoding="utf-8"))}
    assert reading == {"config.py"}


def test_the_setting_that_judge_replaces_is_dropped_or_refused_with_its_new_name(tmp_path: Path) -> None:
    path = tmp_path / "config.used.json"
    path.write_text(json.dumps({"run": {"judge_relation": False, "seed": 3}}))
    assert load_settings(path).run.seed == 3, "as in every run of older versions"
    path.write_text(json.dumps({"run": {"judge_relation": True}}))
    with pytest.raises(ConfigError, match=r"judge_relation is now judge: cascade, model or original"):
        load_settings(path)
