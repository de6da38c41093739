"""Markup in which text is escaped unless it was made here: what a record says cannot become an element."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from agentclinic.report.text import inert


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


_VOID = frozenset({"meta", "br", "hr", "input", "col", "line", "rect", "circle", "path", "polygon"})


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """An element; `class_` is `class`, `data_run` is `data-run`; None leaves an attribute out, True has no value.

    Children are `Html`, text (escaped), None (nothing) or lists of those.
    """
    opened = "".join(
        _attribute(key, value) for key, value in attributes.items() if value is not None and value is not False
    )
    if name in _VOID and not children:
        return Html(f"<{name}{opened}/>" if name not in ("meta", "br", "hr", "input", "col") else f"<{name}{opened}>")
    return Html(f"<{name}{opened}>{join(children)}</{name}>")


def join(children: object) -> Html:
    """Children one after another."""
    if children is None:
        return Html("")
    if isinstance(children, Html):
        return children
    if isinstance(children, str):
        return Html(escape(inert(children), quote=False))
    if isinstance(children, Iterable):
        return Html("".join(join(child) for child in children))
    return Html(escape(str(children), quote=False))


def _attribute(key: str, value: object) -> str:
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(inert(str(value)), quote=True)}"'
