"""A person at the terminal in the place of a model."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TextIO

import anyio.to_thread

from agentclinic.encounter import Rewind
from agentclinic.models.base import BadRequestError, Reply, Request, Usage
from agentclinic.models.payloads import DoctorPayload, Exchange, PatientPayload
