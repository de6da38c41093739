"""What the tests of endpoints share: requests, a clock on which waiting takes no time, and connections."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any, Literal

from pydantic import BaseModel, Field

from agentclinic.models.base import Message, Purpose, Request
from agentclinic.models.endpoint import Endpoint
from agentclinic.models.retry import Clock

KEY = "sk-planted-0123456789abcdef"
APIS: list[Literal["responses", "chat"]] = ["responses", "chat"]
Connect = Callable[..., Endpoint]
"""Makes endpoints at the scripted server: `connect(name, responses={...}, tries=3, ...)`."""


class Hypothesis(BaseModel):
    diagnosis: str = Field(min_length=1)
    probability: float = Field(ge=0, le=1)


class Naps:
    """A clock whose sleeps take no time and are recorded."""

    def __init__(self) -> None:
        self.time = 0.0
        self.slept: list[float] = []
        self.clock = Clock(self.sleep, lambda: self.time, random.Random(0))

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds
        await asyncio.sleep(0)


def ask(
    text: str = "How are you?",
    *,
    system: str = "You are a patient.",
    purpose: Purpose = Purpose.PATIENT,
    **more: Any,
) -> Request:
    return Request(purpose, (Message("system", system), Message("user", text)), **more)
