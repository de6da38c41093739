"""Shortening a prompt that is too long, from its oldest end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from agentclinic.models.base import Message

MARKER = "[earlier dialogue left out]\n"


class Clipped(NamedTuple):
    """Messages that fit, and how many characters were left out to make them."""

    messages: tuple[Message, ...]
    left_out: int


def clip(messages: Sequence[Message], longest: int) -> Clipped:
    """Cut messages down to `longest` characters in all.

    What is oldest goes first: message by message, each from its beginning, except the system's instructions.
    Only where those alone are too long are they cut too, at their end. No message disappears, so that every
    tool result keeps its call.
    """
    excess = sum(len(message.content) for message in messages) - longest
    if excess <= 0:
        return Clipped(tuple(messages), 0)
    kept = list(messages)
    left_out = 0
    for index, message in enumerate(kept):
        if message.role == "system" or len(message.content) <= len(MARKER):
            continue
        cut = min(len(message.content), excess + len(MARKER))
        # A whole line less reads better than half a line, where lines are short.
        line_end = message.content.find("\n", cut - 1, cut + 200) + 1
        cut = line_end if 0 < line_end < len(message.content) else cut
        kept[index] = replace(message, content=MARKER + message.content[cut:])
        left_out += cut
        excess -= cut - len(MARKER)
        if excess <= 0:
            return Clipped(tuple(kept), left_out)
    for index, message in reversed(list(enumerate(kept))):
        if message.role != "system" or excess <= 0:
            continue
        cut = min(len(message.content), excess)
        kept[index] = replace(message, content=message.content[: len(message.content) - cut])
        left_out += cut
        excess -= cut
    return Clipped(tuple(kept), left_out)
