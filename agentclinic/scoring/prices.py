"""What tests cost, from the knowledge base: one perspective and one year, stated in `vocabulary/data/tests.json`."""

from __future__ import annotations

from functools import lru_cache

from agentclinic.scoring.orders import Price
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.tests import Test
from agentclinic.vocabulary.text import fold


@lru_cache(maxsize=4096)
def knowledge_prices(name: str) -> Price | None:
    """The price and waiting time of a test by name; None if the knowledge base does not know it.

    A single test is billed with its panel only if the order names the panel itself; tests ordered separately are
    charged separately, once per encounter.
    """
    test = priced_test(name)
    return Price(test.price.usd, test.wait_minutes / 60, test.id) if test else None


def priced_test(name: str) -> Test | None:
    """The test of this name, or the first test named in it; None if the knowledge base does not know it."""
    return _by_name().get(fold(name)) or _named_in(name)


def _named_in(name: str) -> Test | None:
    found = knowledge().test_names.find(name)
    return knowledge().tests[found[0].key] if found else None


@lru_cache(maxsize=1)
def _by_name() -> dict[str, Test]:
    return {fold(test.name): test for test in knowledge().tests.values()}
