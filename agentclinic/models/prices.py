"""What tokens cost. An unknown price is None, never 0."""

from __future__ import annotations

from collections.abc import Mapping


def cost_usd(model: str, base_url: str, usage: Mapping[str, int | None]) -> float | None:
    """The price of these tokens at that provider, from the `genai-prices` package; None if it has no price.

    A local server has no list price, even if the same model is sold elsewhere.
    """
    sent, received = usage.get("input_tokens"), usage.get("output_tokens")
    if sent is None or received is None:
        return None
    # Imported here: it takes 0.2 s, and only hosted models need it.
    from genai_prices import Usage, calc_price

    cached = usage.get("cached_tokens") or 0
    tokens = Usage(input_tokens=sent, output_tokens=received, cache_read_tokens=cached or None)
    try:
        return float(calc_price(tokens, model_ref=model, provider_api_url=base_url).total_price)
    except LookupError:
        return None
