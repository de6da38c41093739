"""Failures at an endpoint as typed errors."""

from __future__ import annotations

from agentclinic.models import faults
from agentclinic.models.base import BadRequestError, ContextTooLongError


def test_only_the_beginning_of_a_servers_message_is_looked_at() -> None:
    host = faults.Host("http://127.0.0.1:8000/v1", "sk-secret-123456")

    def error(before: int) -> object:
        body = {"error": {"message": "x" * before + " maximum context sk-secret-123456"}}
        return faults.from_answer(400, body, {}, host, "m")

    assert isinstance(error(100), ContextTooLongError)
    assert type(error(faults.LONGEST_MESSAGE)) is BadRequestError
    assert "sk-secret" not in host.quote(" " * (faults.LONGEST_MESSAGE - 8) + "sk-secret-123456")
