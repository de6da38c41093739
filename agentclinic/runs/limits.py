"""What a run's laboratory may do in a case, and what tests cost there."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from agentclinic.cases.model import Case
from agentclinic.clinic.limits import Limits
from agentclinic.clinic.offered import offer_of
from agentclinic.config import RunSettings
from agentclinic.results.record import OwnPrice, PriceTable, Record
from agentclinic.scoring.costs import Costs
from agentclinic.scoring.information import requests
from agentclinic.scoring.orders import items, price_of, waiting_factor
from agentclinic.scoring.prices import estimate, priced_test
from agentclinic.vocabulary.settings import Setting, limited_setting


def limits_of(run: RunSettings, case: Case, costs: Costs | None) -> Limits | None:
    """What the laboratory may do in a case; None if it may do everything."""
    setting = _limited(run, case)
    if case.drawn or (setting is None and run.test_budget is None and run.order_limit is None):
        return None
    return Limits(Prices(run, case, costs).charged_as, setting, run.test_budget, run.order_limit)


def with_terms(run: RunSettings, cases: Iterable[Case], costs: Costs | None) -> list[Case]:
    """Cases whose doctors are told what can be ordered, and for how much, if that is not everything."""
    told = [(case, limits.told if (limits := limits_of(run, case, costs)) else "") for case in cases]
    return [
        case if case.door.terms == terms else replace(case, door=replace(case.door, terms=terms))
        for case, terms in told
    ]


def _limited(run: RunSettings, case: Case) -> Setting | None:
    return limited_setting(case.annotations) if run.setting_limits else None


@dataclass(frozen=True)
class Prices:
    """What tests cost in one case of a run: by the user's own table, by that of a limited setting, or by ours.

    Under a budget no test is free because our table lacks it: it has the middle price of its kind.
    """

    run: RunSettings
    case: Case
    costs: Costs | None

    def charged_as(self, name: str) -> tuple[str, float]:
        """What a test is charged as, and its price, exactly as scoring will read them from the record."""
        found = price_of(name, self._about([name]))
        return (found.key, found.usd) if found else (name, 0.0)

    def used_in(self, record: Record) -> PriceTable | None:
        """The prices of the tests in a record that are not those of our own table; None if there are none."""
        if self.costs is None and self.run.test_budget is None and _limited(self.run, self.case) is None:
            return None
        asked = requests(record) or ()
        return self._about({item.name for one in asked if one.kind == "test" for item in items(one)})

    def _about(self, names: Collection[str]) -> PriceTable | None:
        level = self.run.resource_level
        own = self.costs.about(names, level) if self.costs else None
        further = {name: price for name in sorted(names) if (price := self._further(name))}
        if own:
            return own.model_copy(update={"tests": {**further, **own.tests}})
        setting = _limited(self.run, self.case)
        file = f"prices of the {setting.name}" if setting else "estimates for tests without a price"
        waiting = waiting_factor(level)
        return (
            PriceTable(file=file, digest="", waiting=waiting, waiting_known=False, tests=further) if further else None
        )

    def _further(self, name: str) -> OwnPrice | None:
        """The price of a test in a limited setting, or an estimate if it has none."""
        setting = _limited(self.run, self.case)
        if setting and (offer := offer_of(setting, name)):
            return OwnPrice(offer.name, offer.usd, offer.minutes, 0.0)
        if self.run.test_budget is None or priced_test(name):
            return None
        return OwnPrice(name, estimate(name), 60.0, 0.0)
