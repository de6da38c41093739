"""How sensitive data is, how much of it messages may repeat, and what looks like a key.

`agentclinic.models.gate` decides where it may be sent.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable
from enum import StrEnum
from urllib.parse import unquote


class DataClass(StrEnum):
    """What a case was made from, from the least to the most restricted."""

    PUBLIC = "public"
    """A published benchmark, or a user's own file without a class."""
    SYNTHETIC = "synthetic"
    """Made from invented rows."""
    OPEN_DEMO = "open-demo"
    """Made from the openly licensed demonstration part of a credentialed source."""
    CREDENTIALED = "credentialed"
    """Made from patients' data under a data use agreement, e.g. MIMIC-IV: by default it stays on this machine."""


_ORDER = tuple(DataClass)


def strictest(classes: Iterable[DataClass]) -> DataClass:
    """The most restricted of several classes; `public` if there are none."""
    return max(classes, key=_ORDER.index, default=DataClass.PUBLIC)


# Global and never lowered: a thread that a user's doctor started lacks our context variables, and its requests must
# not go where the run itself may not send any.
_seen = DataClass.PUBLIC


def raise_data_class(data_class: DataClass) -> None:
    """Record that this process now holds data of this class."""
    global _seen
    _seen = strictest((_seen, data_class))


def strictest_seen() -> DataClass:
    """The most restricted class of data this process has held."""
    return _seen


def reset() -> None:
    """Start over as a new process would; only for tests, which share one."""
    global _seen
    _seen = DataClass.PUBLIC


def silent() -> bool:
    """Whether messages must not quote models, servers or exceptions, which may repeat a patient's chart."""
    return _seen is DataClass.CREDENTIALED


LEFT_OUT = "(left out: credentialed data)"


def quotation(text: str) -> str:
    """The text as a message may quote it: in full, or not at all once this process has held credentialed data."""
    return LEFT_OUT if silent() else text


def crash(error: BaseException, without: tuple[str, ...] = (), most: int = 0) -> str:
    """A traceback as Python prints it; only the places in the code once this process has held credentialed data.

    Calls in files that start with `without` are left out, and exceptions that were handled there; `most` is the number
    of calls to show, the last ones.
    """
    told = traceback.TracebackException.from_exception(error)
    chain = [told]
    while chain:
        one = chain.pop()
        frames = [frame for frame in one.stack if not frame.filename.startswith(without)]
        one.stack = traceback.StackSummary.from_list(frames[-most:])
        for link in ("__cause__", "__context__"):
            before = getattr(one, link)
            if before and before.stack and all(frame.filename.startswith(without) for frame in before.stack):
                setattr(one, link, None)
            elif before:
                chain.append(before)
    if not silent():
        return "".join(told.format())
    places = (f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}' for frame in told.stack)
    return "\n".join(("Traceback (most recent call last):", *places, f"{type(error).__name__}: {LEFT_OUT}", ""))


_SECRET_WORDS = re.compile(
    r"(?:^|_)(?:api)?(?:auth|authorization|bearer|cookie|credential|header|key|passwd|password|query|secret|token)s?(?:_|$)"
)
_HARMLESS = frozenset(
    {"max_output_tokens", "max_tokens", "max_completion_tokens", "token_limit", "prompt_cache_key", "api_key_env"}
)
_KEY = re.compile(
    r"\b(?:sk|pk|rk)[-_](?=[\w-]{0,99}\d)[\w-]{12,}|\b(?:hf|gsk|ghp|r8)_\w{16,}|\b(?:xai|nvapi|pplx)-[\w-]{16,}"
    r"|\bAIza[\w-]{30,}|\beyJ[\w-]{10,}\.eyJ[\w-]{10,}|(?i:bearer)\s+[\w.~+/=-]{12,}"
)


def names_secret(name: str) -> bool:
    """Whether a setting of this name holds a key or the like: `apiKey`, `X-Auth-Token`, `extra_headers`."""
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])|[^A-Za-z0-9]+", "_", name).lower()
    return snake not in _HARMLESS and _SECRET_WORDS.search(snake) is not None


def holds_key(text: str) -> bool:
    """Whether a text has a key of a well-known form in it."""
    return _KEY.search(text) is not None


def key_in_path(path: str) -> bool:
    """Whether the path of an address has a key in it: of a well-known form, or 20 or more random letters and digits.

    Random ones change between capitals, small letters and digits at almost every second place; names do not.
    """
    path = unquote(path)
    return holds_key(path) or any(
        len({(char.isupper(), char.isdigit()) for char in run}) == 3
        and len(re.findall("[a-z]+|[A-Z]+|[0-9]+", run)) > 0.45 * len(run)
        for run in re.findall("[A-Za-z0-9]{20,}", path)
    )


def shown_name(name: str) -> str:
    """The name of a setting as a message may show it: not if it may be a key in the wrong place."""
    # Names are words; 16 letters and digits in a row are a key of some form.
    return "(not shown: it may be a key)" if holds_key(name) or re.search(r"(?=[a-zA-Z]{0,15}\d)\w{16}", name) else name
