"""What tokens cost. An unknown price is None, never 0."""

from __future__ import annotations

from collections.abc import Mapping

from agentclinic.config import PriceSettings

ANY_MODEL = "*"
"""The name in `prices` that stands for every model without an entry of its own."""

BATCH_SHARE = 0.5
"""What a request in a batch costs, as a share of its usual price: the discount of OpenAI and most other providers."""


def cost_usd(
    model: str, base_url: str, usage: Mapping[str, int | None], prices: Mapping[str, PriceSettings] | None = None
) -> float | None:
    """The price of these tokens at that provider; None if it is not known.

    The user's own `prices` come first, then the list prices in the `genai-prices` package. A local server has no list
    price, even if the same model is sold elsewhere.
    """
    sent, received = usage.get("input_tokens"), usage.get("output_tokens")
    if sent is None or received is None:
        return None
    cached = usage.get("cached_tokens") or 0
    own = prices.get(model) or prices.get(ANY_MODEL) if prices else None
    if own is not None:
        again = own.input if own.cached_input is None else own.cached_input
        return ((sent - cached) * own.input + cached * again + received * own.output) / 1_000_000
    # Imported here: it takes 0.2 s, and only hosted models need it.
    from genai_prices import Usage, calc_price

    tokens = Usage(input_tokens=sent, output_tokens=received, cache_read_tokens=cached or None)
    try:
        return float(calc_price(tokens, model_ref=model, provider_api_url=base_url).total_price)
    except LookupError:
        return None
