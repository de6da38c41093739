"""The cost of a run is known if there is a list price, and unknown otherwise."""

from __future__ import annotations

import pytest

from agentclinic.models.base import cost_usd

OPENAI = "https://api.openai.com/v1"
MILLION = {"input_tokens": 1_000_000, "output_tokens": 1_000_000, "cached_tokens": 0}


def test_a_model_at_openai_is_priced() -> None:
    # gpt-4o-mini: $0.15 and $0.60 per million tokens in and out, the list price since July 2024.
    assert cost_usd("gpt-4o-mini", OPENAI, MILLION) == pytest.approx(0.75)


def test_cached_tokens_are_cheaper() -> None:
    # Half price: 400,000 at $0.15 and 600,000 at $0.075 per million.
    cached = {"input_tokens": 1_000_000, "output_tokens": 0, "cached_tokens": 600_000}
    assert cost_usd("gpt-4o-mini", OPENAI, cached) == pytest.approx(0.105)


@pytest.mark.parametrize(
    ("model", "address", "usage"),
    [
        ("no-such-model-anywhere", OPENAI, MILLION),
        ("gpt-4o-mini", "http://127.0.0.1:8000/v1", MILLION),
        ("gpt-4o-mini", "http://localhost:8000/v1", MILLION),
        ("gpt-4o-mini", "https://llm.hospital.example/v1", MILLION),
        ("gpt-4o-mini", OPENAI, {"input_tokens": None, "output_tokens": 5}),
    ],
)
def test_without_a_price_the_cost_is_unknown_not_zero(model: str, address: str, usage: dict[str, int | None]) -> None:
    assert cost_usd(model, address, usage) is None
