"""Markup that escapes text unless it was made here, so that nothing in a record can become an element."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from agentclinic.jsonl import inert


class Html(str):
    """Text that already is markup."""

    __slots__ = ()


_VOID = frozenset({"meta", "br", "hr", "input", "col"})
_EMPTY = frozenset({"line", "rect", "circle", "path", "polygon"})
"""Elements of drawings, closed in place when they have no children."""


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """An element; `class_` becomes `class`, `data_run` becomes `data-run`.

    An attribute that is None or False is left out; True stands alone. Children are `Html`, text (escaped), None
    (nothing) or lists of those.
    """
    opened = "".join(
        _attribute(key, value) for key, value in attributes.items() if value is not None and value is not False
    )
    if not children and name in _VOID:
        return Html(f"<{name}{opened}>")
    if not children and name in _EMPTY:
        return Html(f"<{name}{opened}/>")
    return Html(f"<{name}{opened}>{join(children)}</{name}>")


def join(children: object) -> Html:
    """Children one after another."""
    if children is None:
        return Html("")
    if isinstance(children, Html):
        return children
    if isinstance(children, Iterable) and not isinstance(children, str):
        return Html("".join(join(child) for child in children))
    return Html(escape(inert(str(children)), quote=False))


def _attribute(key: str, value: object) -> str:
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(inert(str(value)), quote=True)}"'
