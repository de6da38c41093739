"""A study as one HTML page that requests nothing from anywhere: its answer, drawings and tables."""

from __future__ import annotations

from collections.abc import Sequence

from agentclinic.report.page import standalone, styles
from agentclinic.report.tables import Html, Section, tag


def study_page(
    title: str,
    lede: str,
    findings: Sequence[str],
    drawings: Sequence[Html],
    note: str,
    tables: Sequence[Section],
    limits: Sequence[str],
) -> str:
    """The whole file; the note is about the drawings."""
    body = tag(
        "body",
        tag("header", tag("p", tag("b", "AgentClinic"), " study", class_="eyebrow"), tag("h1", title)),
        tag(
            "main",
            tag("p", lede, class_="lede"),
            tag("ul", [tag("li", text) for text in findings]),
            tag(
                "section",
                tag("div", [tag("figure", one) for one in drawings], class_="figures"),
                tag("p", note, class_="note"),
            ),
            [tag("section", tag("h2", one.title), one.html()) for one in tables],
            tag("section", tag("h2", "What this cannot show"), tag("ul", [tag("li", text) for text in limits])),
        ),
        tag("footer", tag("p", "Made by agentclinic study. A research benchmark, not medical advice.")),
    )
    return standalone(f"{title} – AgentClinic study", styles(), body)
