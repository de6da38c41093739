"""Budgets: how much a run may use, what it has used, and when to stop between two encounters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agentclinic.config import REPLAY, Settings
from agentclinic.errors import ConfigError
from agentclinic.models.base import ANY_MODEL
from agentclinic.results.record import Record
from agentclinic.runs.build import Models, Used

Tokens = Mapping[str, int | None]
"""Tokens by kind, as in `Record.usage[role]`."""


@dataclass
class Spent:
    """What was used: the known part of it. A request that failed without an answer has no known tokens."""

    tokens: int = 0
    dollars: float = 0.0
    priced: set[str] = field(default_factory=set)
    """Roles whose cost was known at least once."""
    unpriced: set[str] = field(default_factory=set)
    """Roles that got answers whose cost is not known."""

    def add(self, role: str, usage: Tokens, cost: float | None, *, answered: bool = True) -> None:
        """Count what a role used; `answered` says whether its tokens should be known."""
        self.tokens += (usage.get("input_tokens") or 0) + (usage.get("output_tokens") or 0)
        if cost is not None:
            self.dollars += cost
            self.priced.add(role)
        elif answered:
            self.unpriced.add(role)

    def add_record(self, record: Record, models: Models) -> None:
        """Count a record; a cost that was unknown when it was written is worked out with the prices of now."""
        for role, used in (record.usage or {}).items():
            cost = (record.cost_usd or {}).get(role)
            if cost is None:
                cost = _cost_now(role, used, models)
            self.add(role, used, cost, answered=record.fault is None)

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.tokens + other.tokens,
            self.dollars + other.dollars,
            self.priced | other.priced,
            self.unpriced | other.unpriced,
        )


def _cost_now(role: str, used: Tokens, models: Models) -> float | None:
    name, _ = models.model_for(role)
    if name.startswith(REPLAY):
        return 0.0  # nothing is paid for a recording
    # A custom doctor may have asked other models than the one named for it.
    return None if role == "doctor" and models.custom_doctor else models.cost_usd(role, used)


@dataclass(frozen=True)
class Budget:
    """The limits of a run, and what was spent on it elsewhere: in the other arms of a sweep."""

    token_limit: int | None = None
    max_cost: float | None = None
    before: Spent = field(default_factory=Spent)

    @classmethod
    def of(cls, settings: Settings, before: Spent | None = None) -> Budget:
        runtime = settings.llm.runtime
        return cls(runtime.token_limit, runtime.max_cost, before or Spent())

    def used_up(self, spent: Spent) -> str | None:
        """Why no further encounter may begin; None while there is something left."""
        total = self.before + spent
        if self.token_limit is not None and total.tokens >= self.token_limit:
            return (
                f"the token limit of {self.token_limit:,} is reached with {total.tokens:,} used; "
                "raise it with --token-limit N"
            )
        if self.max_cost is None:
            return None
        if total.dollars >= self.max_cost:
            return (
                f"the budget of {money(self.max_cost)} is reached with {money(total.dollars)} spent; "
                "raise it with --max-cost USD"
            )
        unknown = sorted(total.unpriced - total.priced)
        if unknown:
            return (
                f"what the {' and the '.join(unknown)} cost is not known, because no token counts were reported, "
                "so that --max-cost cannot be kept; use --token-limit, or no limit"
            )
        return None


def refuse_unpriced(models: Models, settings: Settings, in_use: Sequence[Used]) -> None:
    """With `--max-cost`, refuse models whose price is not known: the limit could not be kept."""
    if settings.llm.runtime.max_cost is None:
        return
    one = {"input_tokens": 1, "output_tokens": 1}
    unpriced = [used for used in in_use if models.price(used.name, used.endpoint, one) is None]
    if not unpriced:
        return
    named = "; ".join(f"{', '.join(used.roles)}: {used.name!r} at {used.host}" for used in unpriced)
    first = unpriced[0]
    example = f'"prices": {{"{first.name}": {{"input": 0.5, "output": 1.5}}}}'
    file = "llm.config.json" if first.setting == "openai" else "agentclinic.config.json"
    raise ConfigError(
        f"--max-cost needs the price of every model, and these are not known: {named}. Set them in dollars per million "
        f'tokens (0 for a server of your own, "{ANY_MODEL}" for all models there), e.g. {example} in {first.setting} '
        f"of {file}; or limit tokens with --token-limit"
    )


def money(dollars: float) -> str:
    """An amount in dollars; small ones with enough digits to be told from zero."""
    return f"${dollars:.2f}" if dollars >= 1 or dollars == 0 else f"${dollars:.4f}"


def spent_on(settings: Settings) -> Spent:
    """What a run's own decisions about `simulator: auto` used."""
    spent = Spent()
    for role, choice in settings.simulators.items():
        if choice.requests and not choice.cached:
            tokens = {"input_tokens": choice.input_tokens, "output_tokens": choice.output_tokens}
            spent.add(role, tokens, choice.cost_usd)
    return spent
