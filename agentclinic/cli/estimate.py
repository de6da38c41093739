"""`--dry-run`: what a command would use, as a table or as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentclinic.cli.format import print_json
from agentclinic.report.tables import text_table
from agentclinic.runs.budget import money
from agentclinic.runs.estimate import Estimate, Row, added, total


def show_estimate(estimate: Estimate, *, as_json: bool) -> None:
    """Print what a command would use, and what that is based on."""
    if as_json:
        print_json(estimate.as_dict())
        return
    print(f"{estimate.count:,} {estimate.what}; nothing was sent or written")
    if not estimate.count or not estimate.most:
        print("No model at an endpoint would be asked: it costs nothing.")
        return
    if estimate.typical == estimate.most:
        _print("", estimate.most)
    else:
        _print("typical", estimate.typical)
        _print("at most", estimate.most)
    print("\nBased on:")
    for line in estimate.based_on:
        print(f"- {line}")


def show_arms(arms: Mapping[str, Estimate], *, as_json: bool) -> None:
    """Print what each arm of a sweep would use, and all of them together."""
    whole = added(list(arms.values()))
    if as_json:
        print_json({"arms": {label: one.as_dict() for label, one in arms.items()}, **whole.as_dict()})
        return
    for label, one in arms.items():
        costs = [_cost(total(some).cost_usd) for some in (one.typical, one.most)]
        print(f"{label}: {one.count:,} {one.what}, {costs[0]}" + (f" to {costs[1]}" if costs[0] != costs[1] else ""))
    print()
    show_estimate(whole, as_json=False)


def _print(title: str, some: Sequence[Row]) -> None:
    head = (title, "model", "requests", "tokens in", "tokens out", "cost")
    rows = [_cells(row) for row in some]
    if len(some) > 1:
        rows.append(_cells(total(some)))
    print("\n".join(["", *text_table(head, rows, numbers=range(2, len(head)))]))


def _cells(row: Row) -> tuple[str, ...]:
    amount = row.amount
    numbers = (amount.requests, amount.input_tokens, amount.output_tokens)
    model = f"{row.model} at {row.host}" if row.model else ""
    return (row.role, model, *(f"{round(number):,}" for number in numbers), _cost(row.cost_usd))


def _cost(dollars: float | None) -> str:
    return "unknown" if dollars is None else money(dollars)
