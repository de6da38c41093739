"""Text as it may be shown: nothing a record says can act on the page, the terminal or a table."""

from __future__ import annotations

from agentclinic.jsonl import inert

CLIPPED = 240
"""Characters of a diagnosis or message that a table shows; the transcript has all of them."""
DASH = "–"
"""A number or text that is not known, in a table."""


def line(text: str | None, most: int = CLIPPED) -> str:
    """The text on one line, clipped to fit a table."""
    # Clip first: a model may have said a megabyte.
    flat = " ".join(inert((text or "")[: 4 * most]).split())
    return flat if len(flat) <= most and len(text or "") <= 4 * most else flat[: most - 1].rstrip() + "…"


def dollars(value: float | None) -> str:
    """Money, in cents only below ten dollars."""
    if value is None:
        return DASH
    return f"${value:,.0f}" if value >= 10 or value == round(value) else f"${value:,.2f}"


def plural(count: int, one: str, many: str | None = None) -> str:
    """`1 case`, `2 cases`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
