"""The settings of a run as keyword arguments."""

from __future__ import annotations

from typing import Literal, TypedDict

from agentclinic.config import Effort


class RunOptions(TypedDict, total=False):
    """The settings of a run, by their names in `agentclinic.config.json`; docs/settings.md says what each does."""

    preset: Literal["original", "frugal"] | None
    num_scenarios: int | None
    offset: int
    scenarios: str | None
    sample: int | None
    lockbox: bool
    seed: int
    repeats: int
    total_inferences: int
    workers: int
    engine: Literal["local", "ray"]
    address: str | None
    processes: int | None
    inf_type: Literal["llm", "human_doctor", "human_patient"]
    doctor_llm: str
    patient_llm: str
    measurement_llm: str
    moderator_llm: str
    judge: Literal["builtin", "cascade", "model", "original"] | None
    doctor_endpoint: str | None
    patient_endpoint: str | None
    measurement_endpoint: str | None
    moderator_endpoint: str | None
    temperature: float
    top_p: float
    max_output_tokens: int
    reasoning_effort: Effort
    doctor_temperature: float
    doctor_top_p: float
    doctor_max_output_tokens: int
    doctor_reasoning_effort: Effort
    patient_temperature: float
    patient_top_p: float
    patient_max_output_tokens: int
    patient_reasoning_effort: Effort
    measurement_temperature: float
    measurement_top_p: float
    measurement_max_output_tokens: int
    measurement_reasoning_effort: Effort
    moderator_temperature: float
    moderator_top_p: float
    moderator_max_output_tokens: int
    moderator_reasoning_effort: Effort
    agent_config: str | None
    uncertainty_agent_type: str | None
    doctor_bias: str | None
    patient_bias: str | None
    patient_traits: dict[str, int] | str
    doctor_image_request: bool
    simulator: Literal["auto", "grounded", "voiced", "free"]
    dialogue: Literal["chat", "transcript"] | None
    missing_test: Literal["unavailable", "normal", "completed"] | None
    pending_results: bool | None
    setting_limits: bool
    test_budget: float | None
    order_limit: int | None
    silent_symptom: Literal["deny", "unknown"]
    elicit_confidence: bool
    doctor_test_policy_enabled: bool
    doctor_test_policy: str
    doctor_test_policy_mode: Literal["separate", "inline"]
    planner_baseline: Literal["door", "full"]
    policy_in_prompt: bool
    memory: str | None
    memory_retrieval: Literal["bm25", "embeddings", "shuffled"]
    memory_llm: str | None
    memory_endpoint: str | None
    embedding_llm: str | None
    embedding_endpoint: str | None
    split: str | None
    part: Literal["train", "test"] | None
    synthesis_llm: str | None
    synthesis_endpoint: str | None
    resource_level: Literal["normal", "busy", "scarce"] | None
    measurement_cost_llm: str | None
    prompts_dir: str | None
    record: str | None
    output_dir: str
    name: str | None
    check: bool
