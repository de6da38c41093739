"""Quote text that someone else wrote, so that in a prompt it can neither speak for anyone nor end its block."""

from __future__ import annotations

import re
import unicodedata

from agentclinic import lazy

_INVISIBLE = lazy.regex(
    r"[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    r"\u2800\u3164\ud800-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U0010ffff]"
)
_SIGNS = str.maketrans("[]{}", "()()")
"""Prompts have headings in square brackets, and placeholders in braces."""
_TAG = lazy.regex(r"<(?=[\s/|!?]*+[^\W\d])|(?<=-)>")
"""What may open a tag, and the arrow between the parts of an experience; "WBC > 15" and "<5" stay as they are."""
_TOKEN = lazy.regex(r"(diagnosis)[\s_*·-]+(ready)|(request)[\s_*·-]+(test|images)", re.IGNORECASE | re.ASCII)
_LABEL = lazy.regex(
    r"(?<![^\W_])((?:doctor|physician|dr|assistant|patient|measurement|laboratory|lab|nurse|moderator|judge|clinic|system"
    r"|user|human|caregiver|results?|developer|tool|model|ai)(?:[\s_-](?:response|reply|answer|message|prompt))?)"
    r"[\W_]*[:\u2236\ua789]",
    re.IGNORECASE,
)


def quoted(text: str) -> str:
    """The text on one line, without invisible characters, tags, control tokens and speakers' labels; never longer.

    Clinical prose is unchanged, and so is text that is quoted already.
    """
    line = _INVISIBLE.sub("", " ".join(text.split()))
    line = line if line.isascii() else "".join(map(_plain, line))
    line = _TAG.sub(lambda sign: "‹" if sign[0] == "<" else "›", line.translate(_SIGNS))
    line = _TOKEN.sub(lambda token: "·".join(filter(None, token.groups())).lower(), line)
    return " ".join(_LABEL.sub(r"\1,", line).split())


def _plain(character: str) -> str:
    """The letter or sign that a character is a form of, such as `＜` or a bold D; digits, as in m², stay."""
    form = unicodedata.normalize("NFKC", character)
    return form if len(form) == 1 and form.isascii() and not form.isdigit() else character
