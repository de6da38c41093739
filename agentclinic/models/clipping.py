"""Shortening a prompt that is too long, oldest part first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from agentclinic.models.base import Message

MARKER = "[earlier dialogue left out]\n"


class Clipped(NamedTuple):
    """Messages that fit, and the number of characters left out."""

    messages: tuple[Message, ...]
    left_out: int


def clip(messages: Sequence[Message], longest: int) -> Clipped:
    """Cut messages down to `longest` characters in total.

    The oldest text goes first, message by message, each from its beginning. System messages are cut only if they are
    too long on their own, and then at the end. No message is dropped, so every tool result keeps its call.
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
        # Where lines are short, cut at the end of one.
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
