"""What a run's laboratory may do in a case, and what tests cost there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import median

from agentclinic.cases.matcher.order_items import EXAM, MEASURED
from agentclinic.cases.matcher.order_words import reading, vocabulary
from agentclinic.cases.model import Case
from agentclinic.clinic.limits import Limits
from agentclinic.clinic.offered import offer_of
from agentclinic.config import RunSettings
from agentclinic.results.record import OwnPrice, PriceTable, Record
from agentclinic.scoring.costs import Costs
from agentclinic.scoring.information import requests
from agentclinic.scoring.orders import items, price_of, priced_test, waiting_factor
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.settings import Setting, bedside, setting_of


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
    setting = setting_of(case.annotations) if run.setting_limits else None
    return setting if setting and setting.limited else None


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


@lru_cache(maxsize=4096)
def estimate(name: str) -> float:
    """The price of a test that our table lacks: the middle of those of its kind; nothing for an examination.

    An image is compared with images made in the same way, a panel costs as much as its values, a value as much as the
    cheapest panel that has it, and anything else is compared with the tests of its category.
    """
    read = reading(name)
    if not any(read.of(kind) for kind in MEASURED):
        examined = read.by_kind or EXAM.search(name)
        return 0.0 if examined else _middle("laboratory")
    if read.of("tests") and read.of("tests") <= bedside():
        return 0.0
    if read.of("modalities"):
        tests = knowledge().tests.values()
        alike = [test.price.usd for test in tests if reading(test.name).of("modalities") & read.of("modalities")]
        return round(median(alike)) if alike else _middle("imaging")
    for category, named in _CATEGORIES.items():
        if read.of("tests") & named:
            return _middle(category)
    panels = vocabulary().panels
    within = [
        test.price.usd
        for panel, one in panels.items()
        if read.of("values") and read.of("values") <= one.values and {one.specimen} <= {None, *read.of("specimens")}
        if (test := priced_test(panel))
    ]
    if within:
        return min(within)
    if read.of("panels"):
        values = sorted(frozenset().union(*(panels[panel].values for panel in read.of("panels"))))
        parts = {test.id if (test := priced_test(value)) else value: test for value in values}
        together = sum(test.price.usd if test else _middle("laboratory") for test in parts.values())
        return max(together, _middle("laboratory"))
    return _middle("laboratory")


@lru_cache(maxsize=16)
def _middle(category: str) -> float:
    return round(median(test.price.usd for test in knowledge().tests.values() if test.category == category))


_CATEGORIES: Mapping[str, frozenset[str]] = {
    "endoscopy": frozenset(
        ("upper endoscopy", "colonoscopy", "sigmoidoscopy", "anoscopy", "endoscopy", "capsule endoscopy",
         "endoscopic ultrasound", "ercp", "bronchoscopy", "cystoscopy", "hysteroscopy", "colposcopy", "laparoscopy",
         "arthroscopy", "mediastinoscopy", "thoracoscopy", "laryngoscopy")
    ),
    "pathology": frozenset(
        ("biopsy", "fine needle aspiration", "histopathology", "cytology", "immunofluorescence",
         "immunohistochemistry", "bone marrow", "genetic", "karyotype", "fish", "microarray")
    ),
    "microbiology": frozenset(
        ("culture", "swab", "smear", "gram stain", "acid fast", "mycobacterial culture", "fungal culture",
         "viral culture", "pcr", "serology", "microscopy")
    ),
    "neurophysiology": frozenset(
        ("eeg", "emg", "nerve conduction", "electrodiagnostic", "evoked potentials", "polysomnography")
    ),
    "cardiac": frozenset(("holter", "stress test", "tilt table", "cardiac catheterization", "electrophysiology study")),
}  # fmt: skip
"""Tests of the table by the category that their price is taken from; all others are priced like laboratory tests."""
