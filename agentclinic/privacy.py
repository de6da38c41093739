"""How sensitive data is, and what messages may repeat of it.

`agentclinic.models.gate` decides where it may be sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


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
_met = DataClass.PUBLIC


def meet(data_class: DataClass) -> None:
    """Record that this process now holds data of this class."""
    global _met
    _met = strictest((_met, data_class))


def met() -> DataClass:
    """The most restricted class of data this process has held."""
    return _met


def forget() -> None:
    """Start over as a new process would; only for tests, which share one."""
    global _met
    _met = DataClass.PUBLIC


def silent() -> bool:
    """Whether messages must not quote models, servers or exceptions, which may repeat a patient's chart."""
    return _met is DataClass.CREDENTIALED


LEFT_OUT = "(left out: credentialed data)"


def quotation(text: str) -> str:
    """The text as a message may quote it: in full, or not at all once this process has held credentialed data."""
    return LEFT_OUT if silent() else text
