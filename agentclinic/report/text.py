"""Words of a record as they may be shown: nothing in them can act on the page, the terminal or the reader's eye."""

from __future__ import annotations

import re

CLIPPED = 240
"""Characters of a diagnosis or message that a table shows; the transcript has them all."""

# Controls do nothing visible and can end strings early; directions turn text around so that it reads as what it is
# not; lone surrogates cannot be written down. All are shown by their number instead of being obeyed.
_ACTIVE = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def inert(text: str) -> str:
    """The text with every invisible actor made visible: `⟨U+202E⟩` for a character that turns text around."""
    return _ACTIVE.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text.replace("\r\n", "\n").replace("\r", "\n"))


def line(text: str | None, most: int = CLIPPED) -> str:
    """The text on one line, cut where it is too long for a table."""
    # Cut before looking closely: a model may have said a megabyte.
    flat = " ".join(inert((text or "")[: 4 * most]).split())
    return flat if len(flat) <= most and len(text or "") <= 4 * most else flat[: most - 1].rstrip() + "…"


def percent(value: float | None, digits: int = 1) -> str:
    """A share in per cent; a dash where it is not known."""
    return "–" if value is None else f"{100 * value:.{digits}f} %"


def dollars(value: float | None) -> str:
    """Money without more digits than it deserves."""
    if value is None:
        return "–"
    return f"${value:,.0f}" if value >= 10 or value == round(value) else f"${value:,.2f}"


def plural(count: int, one: str, many: str | None = None) -> str:
    """`1 case`, `2 cases`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
