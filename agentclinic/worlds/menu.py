"""What a doctor is told of a world at the door, and how the names in its words are read."""

from __future__ import annotations

from functools import lru_cache

from agentclinic.vocabulary.denial import Phrasebook
from agentclinic.worlds.model import DEFER, Finding, Way, World

HEADINGS: dict[Way, str] = {
    "question": "You can ask the patient about:",
    "examination": "You can examine (REQUEST TEST: NAME):",
    "test": "You can order (REQUEST TEST: NAME):",
}
TOOL_HEADINGS: dict[Way, str] = {
    "question": "You can ask the patient about (ask_patient):",
    "examination": "You can examine (order_test):",
    "test": "You can order (order_test):",
}


def menu_text(told: World, *, tools: bool = False) -> str:
    """What can be found out and what can be answered, with the control tokens or with the tools of an environment."""
    headings = TOOL_HEADINGS if tools else HEADINGS
    lists = [_items(told, way, heading) for way, heading in headings.items()]
    ready = "call diagnose with" if tools else "write DIAGNOSIS READY: and"
    return "\n\n".join(
        [
            "Each turn, name one thing from these lists. The answer is always exact. If you name several, only the "
            "first counts. A message that names none of them gets no answer and still costs a turn.",
            *filter(None, lists),
            f"When you are ready, {ready} the name of one disease{_deferring(told, tools)}.",
            answers_text(told),
        ]
    )


def answers_text(told: World) -> str:
    """The possible diseases, the points and, if it is shown, the table."""
    parts = [f"The patient has exactly one of these: {'; '.join(told.diseases)}.", points_text(told)]
    if told.shown:
        parts.append("\n".join(["How common each is, and how often it shows each finding:", *_table(told)]))
    return "\n\n".join(parts)


def _items(told: World, way: Way, heading: str) -> str:
    lines = [f"- {name}{_results(one)}{_price(one)}" for name, one in told.findings.items() if one.by == way]
    return "\n".join([heading, *lines]) if lines else ""


def _results(item: Finding) -> str:
    """What an item can show, if its name does not say."""
    return f": {item.present} or {item.says(False)}" if item.present else ""


def _price(item: Finding) -> str:
    said = [f"${item.price:g}"] if item.price else []
    said += [f"{item.minutes:g} min"] if item.minutes else []
    return f" ({', '.join(said)})" if said else ""


def _deferring(told: World, tools: bool) -> str:
    said = f"with {DEFER}" if tools else f"DIAGNOSIS READY: {DEFER}"
    return "" if told.utilities.deferred is None else f", or {said} to hand the patient over"


def points_text(told: World) -> str:
    """What each ending is worth, and what dollars, minutes and turns cost."""
    given, costs = told.utilities, told.costs
    pairs = [
        f"{value:g} for {said} if the patient has {truth}"
        for truth, row in given.wrong_pairs.items()
        for said, value in row.items()
    ]
    said = [f"{given.right:g} for the right diagnosis", f"{given.wrong:g} for a wrong one", *pairs]
    said += [] if given.deferred is None else [f"{given.deferred:g} for {DEFER}"]
    said.append(f"{given.no_answer:g} for any other answer, or none within {told.turns} turns")
    charged = f"{costs.dollar:g} per dollar, {costs.minute:g} per minute, {costs.turn:g} per turn before the diagnosis"
    return f"Points: {'; '.join(said)}. Costs in points: {charged}."


def _table(told: World) -> list[str]:
    lines = []
    for name, disease in told.diseases.items():
        shown = [
            f"{_shown(item, one)} {_percent((one.probability or {})[name])}" for item, one in told.findings.items()
        ]
        lines.append(f"- {name}: {_percent(disease.prior or 0.0)} of the patients; {', '.join(shown)}.")
    return lines


def _shown(name: str, item: Finding) -> str:
    return f"{name} ({item.present})" if item.present else name


def _percent(p: float) -> str:
    return f"{100 * p:.10g}%"


def request(name: str, item: Finding) -> str:
    """How to ask for an item of the menu."""
    return f"{name}?" if item.by == "question" else f"REQUEST TEST: {name}"


def answer(name: str, item: Finding, present: bool) -> str:
    """The exact answer."""
    return f"{name}: {item.says(present)}."


def read_answer(told: World, reply: str) -> tuple[str, bool] | None:
    """The finding and its state in an exact answer; None for other words."""
    return _answers(told).get(reply)


def named_items(told: World, text: str) -> list[str]:
    """The items of the menu that a text names, in its order."""
    return list(dict.fromkeys(mention.key for mention in _phrases(told)[0].find(text)))


def named_ending(told: World, text: str) -> str | None:
    """The one answer that a diagnosis names; None if it names none or several."""
    found = {mention.key for mention in _phrases(told)[1].find(text)}
    return found.pop() if len(found) == 1 else None


@lru_cache(maxsize=64)
def _phrases(told: World) -> tuple[Phrasebook, Phrasebook]:
    items = {name: (name, *one.synonyms) for name, one in told.findings.items()}
    diseases = {name: (name, *one.synonyms) for name, one in told.diseases.items()}
    return Phrasebook(items), Phrasebook(diseases | ({DEFER: (DEFER,)} if DEFER in told.endings else {}))


@lru_cache(maxsize=64)
def _answers(told: World) -> dict[str, tuple[str, bool]]:
    return {
        f"{before}{answer(name, one, present)}": (name, present)
        for name, one in told.findings.items()
        for present in (True, False)
        for before in ("", "RESULTS: ")
    }
