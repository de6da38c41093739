"""What a laboratory may do in one encounter: what its setting offers, the money for tests, the items of an order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from agentclinic import lazy
from agentclinic.cases.matcher import Ordered, as_written, asked_of_measurement, parts_of_others
from agentclinic.clinic.offered import Part, is_all_laboratory, parts_of
from agentclinic.clinic.pending import capital
from agentclinic.results.turn import Charge, Disclosure, Provenance
from agentclinic.vocabulary.settings import Offer, Setting

Price = Callable[[str], tuple[str, float]]
"""What a test is charged as, by its name, and its price in dollars; an encounter is charged once for each."""
_EXAMPLES = ("complete blood count", "chest X-ray", "echocardiogram", "CT abdomen and pelvis", "MRI brain")
"""Tests whose prices are told to a doctor, from a cheap one to an expensive one."""


AMOUNTS = lazy.regex(r"\$[\d,]+(?:\.\d\d)?|\bOnly \d+ items? an order:")
"""Numbers in a laboratory's reply that are about its limits, not about the patient."""


@dataclass(frozen=True)
class Limits:
    """What a laboratory may do, and what it has charged so far."""

    price: Price
    setting: Setting | None = None
    """The setting, if it does not offer everything."""
    budget: float | None = None
    """Dollars for all tests of the encounter."""
    items: int | None = None
    """Items of an order that are done."""
    charged: Mapping[str, float] = field(default_factory=dict)
    """Prices by what was charged."""

    @property
    def left(self) -> float | None:
        """The money that is left; None if there is no budget."""
        return None if self.budget is None else max(0.0, self.budget - sum(self.charged.values()))

    @property
    def nothing(self) -> str:
        """What is said of every order in a setting where nothing can be examined or tested; else empty."""
        return self.setting.nothing if self.setting else ""

    def cost(self, name: str) -> float:
        """What a test would cost now: nothing, if it was charged before."""
        key, usd = self.price(name)
        return 0.0 if key in self.charged else usd

    def pays(self, name: str) -> bool:
        return self.left is None or self.cost(name) <= self.left

    def would_do(self, order: str) -> bool:
        """Whether an order would be carried out now, as far as a doctor can know: a part of it, within the limits."""
        trial = Order(self, order)
        return bool(trial.done(asked_of_measurement(order, ()))) and not trial.exceeded

    def after(self, done: Iterable[str]) -> Limits:
        """The limits when these have been done."""
        return replace(self, charged={**self.charged, **dict(map(self.price, done))})

    def charges(self, done: Iterable[str], refused: Iterable[str]) -> tuple[Charge, ...]:
        """What an order costs, test by test, and what of it is refused."""
        limits, charges = self, []
        for name in done:
            charges.append(Charge(name, limits.cost(name)))
            limits = limits.after((name,))
        return (*charges, *(Charge(name, refused=True) for name in dict.fromkeys(refused)))

    @property
    def told(self) -> str:
        """What a doctor is told of the limits before the encounter."""
        return self.nothing or " ".join(filter(None, (self._setting_told, self._budget_told, self._items_told)))

    @property
    def line(self) -> str:
        """What is left, for the end of a reply; empty without a budget."""
        if self.left is None or self.budget is None or self.nothing:
            return ""
        return f"Left for tests: {dollars(self.left)} of {dollars(self.budget)}."

    @property
    def _setting_told(self) -> str:
        if not self.setting:
            return ""
        offers = "; ".join(f"{offer.shown} ({self._offer_price(offer)}, {_time(offer)})" for offer in self._offers)
        return (
            f"This is a {self.setting.name}. You can examine the patient and measure vital signs. Only these tests can "
            f"be ordered (price, time until the result): {offers}."
        )

    @property
    def _offers(self) -> tuple[Offer, ...]:
        return (self.setting.offers or ()) if self.setting else ()

    def _offer_price(self, offer: Offer) -> str:
        return dollars(self.price(offer.name)[1])

    @property
    def _budget_told(self) -> str:
        if self.budget is None:
            return ""
        prices = ", ".join(f"{name} {dollars(self.price(name)[1])}" for name in _EXAMPLES)
        examples = "" if self._offers else f" Some prices: {prices}."
        return (
            f"You have {dollars(self.budget)} for tests in this consultation. A test that costs more than what is left "
            f"is not done. Questions, examinations and vital signs cost nothing.{examples}"
        )

    @property
    def _items_told(self) -> str:
        if self.items is None:
            return ""
        return f"An order may name up to {_items(self.items, 'test or examination', 'tests or examinations')}."


class Order:
    """One order as it is carried out, item by item."""

    def __init__(self, limits: Limits, request: str) -> None:
        self.limits = limits
        self.said: list[str] = []
        """What is said of items that are not done, or not in whole."""
        self.refused: list[Disclosure] = []
        self.exceeded = False
        """Whether something was refused that would have been done with more money or in a smaller order."""
        self._request = request
        self._over: list[str] = []
        self._seen: set[str] = set()
        self._parts = parts_of_others(request)

    def admitted(self, item: Ordered, written: str) -> list[Part]:
        """What may be done of an item, so far; `written` is its name as it is said."""
        limits = self.limits
        self._seen.add(item.name)  # a test may be reported in two parts
        over = limits.items is not None and len(self._seen - self._parts) > limits.items
        if over and not limits.nothing:
            self._over.append(written)
            self.exceeded = True
            self.refused.append(Disclosure(written, Provenance.REFUSED))
            return []
        if is_all_laboratory(item.name) and not limits.nothing:
            self._refuse(written, f"{capital(written)}: please name the tests.")
            return []
        parts = self._offered(item, written)
        return [
            part._replace(item=replace(part.item, name=written)) if part.item.name == item.name else part
            for part in parts
        ]

    def _offered(self, item: Ordered, written: str) -> list[Part]:
        """The parts of an item that the setting offers; the rest is refused by name."""
        setting = self.limits.setting
        parts, whole = parts_of(setting, item, self._request) if setting else ([Part(item)], True)
        if setting and not parts:
            self._refuse_there(written)
        elif not whole:
            some = " and ".join(part.item.name for part in parts)
            self.said.append(f"{capital(written)}: of this, only {some} can be done in this setting.")
        return parts

    def refuse_parts(self) -> None:
        """Name what the setting does not offer among the parts of an order that got no reply of their own.

        "Lumbar puncture with culture" is answered by one report.
        """
        setting = self.limits.setting
        for part in asked_of_measurement(self._request, ()) if setting else ():
            if setting and part.name not in self._seen and not parts_of(setting, part, self._request)[0]:
                self._refuse_there(as_written(part.name, self._request))

    def pays(self, name: str) -> bool:
        """Whether there is money for a test; it is refused if there is not."""
        if self.limits.pays(name):
            return True
        self.exceeded = True
        left = f"only {dollars(self.limits.left)} is left" if self.limits.left else "no money is left"
        self._refuse(name, f"{capital(name)} ({dollars(self.limits.cost(name))}): not done, {left}.")
        return False

    def charge(self, done: Iterable[str]) -> None:
        self.limits = self.limits.after(done)

    def done(self, items: Iterable[Ordered]) -> list[str]:
        """What is done of items whose results are not known here, by name."""
        done = []
        for item in items:
            for part in self.admitted(item, as_written(item.name, self._request)):
                if self.pays(part.item.name):
                    done.append(part.item.name)
                    self.charge((part.item.name,))
        return done

    @property
    def refusals(self) -> list[str]:
        """What is said of all that was not done."""
        said = list(dict.fromkeys(self.said))
        if self._over:
            most = _items(self.limits.items or 0, "item", "items")
            said.append(f"Only {most} an order: {', '.join(self._over)} not done.")
        return said

    def _refuse_there(self, name: str) -> None:
        self._refuse(name, self.limits.nothing or f"{capital(name)}: not available in this setting.")

    def _refuse(self, name: str, said: str) -> None:
        self.said.append(said)
        self.refused.append(Disclosure(name, Provenance.REFUSED))


def dollars(usd: float) -> str:
    return f"${usd:,.0f}" if float(usd).is_integer() else f"${usd:,.2f}"


def _time(offer: Offer) -> str:
    return f"{offer.minutes / 60:g} h" if offer.minutes >= 120 else f"{offer.minutes:g} min"


def _items(count: int, one: str, more: str) -> str:
    return f"{count} {one if count == 1 else more}"
