"""A table of tests with prices of our own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import pytest

from agentclinic.scoring import orders
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.tests import Price, Test


def priced(name: str, usd: float, hours: float) -> Test:
    """A test of this name and id, with the price and the waiting time of a result."""
    some = next(iter(knowledge().tests.values()))
    return replace(some, id=name, name=name, price=Price(usd, "estimate"), wait_minutes=60 * hours)


@contextmanager
def price_list(tests: Mapping[str, Test]) -> Iterator[None]:
    """Look tests up in this table instead of the knowledge base."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(orders, "priced_test", tests.get)
        yield
