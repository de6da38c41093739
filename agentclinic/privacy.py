"""What kind of data this is, and what may be repeated of it.

Where it may travel is decided in `agentclinic.models.gate`.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class DataClass(StrEnum):
    """Whose data a case was made from; the order is from free to strict."""

    PUBLIC = "public"
    """A published benchmark, or a user's own file that says nothing else."""
    SYNTHETIC = "synthetic"
    """Made from invented rows."""
    OPEN_DEMO = "open-demo"
    """Made from the openly licensed demonstration part of a credentialed source."""
    CREDENTIALED = "credentialed"
    """Made from patients' data under a data use agreement, e.g. MIMIC-IV: goes nowhere by default."""


_ORDER = tuple(DataClass)


def strictest(classes: Iterable[DataClass]) -> DataClass:
    """The class that counts where several meet; `public` where there is none."""
    return max(classes, key=_ORDER.index, default=DataClass.PUBLIC)


# One for the process and never lowered: a thread that a user's doctor started knows no context of ours, and what it
# asks must not go where the run itself may not send it.
_met = DataClass.PUBLIC


def meet(data_class: DataClass) -> None:
    """Note that data of this class is in this process from now on."""
    global _met
    _met = strictest((_met, data_class))


def met() -> DataClass:
    """The strictest class of data this process has had to do with."""
    return _met


def forget() -> None:
    """Begin as a new process would; for tests, which share one."""
    global _met
    _met = DataClass.PUBLIC


def silent() -> bool:
    """Whether what models, servers or programs said must stay out of messages: it may repeat a patient's chart."""
    return _met is DataClass.CREDENTIALED


LEFT_OUT = "(left out: credentialed data)"


def quotation(text: str) -> str:
    """The text as a message may repeat it: whole, or not at all once this process has met credentialed data."""
    return LEFT_OUT if silent() else text
