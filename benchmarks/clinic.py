"""What the builtin clinic scores: a table, with intervals, of the doctor and the reference arms.

python benchmarks/clinic.py               the table, without the lockbox
python benchmarks/clinic.py --lockbox     also the lockbox, once per release
python benchmarks/clinic.py --redraw 200  how much accuracy varies when likelihoods are redrawn within their ranges
python benchmarks/clinic.py --fit         the doctor's temperature, fitted on OpenOSCE_1's development part
python benchmarks/clinic.py --speed 10000 encounters per second, and how time and memory grow
"""

from __future__ import annotations

import argparse
import json
import math
import random
import resource
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import anyio

from agentclinic.builtin import beliefs
from agentclinic.cases.model import Case
from agentclinic.config import RunSettings, Settings
from agentclinic.results.record import Record
from agentclinic.runs.build import Models
from agentclinic.runs.plan import Plan, Unit, make_plan
from agentclinic.runs.play import play
from agentclinic.scoring.calibration import calibration
from agentclinic.scoring.metrics import Orders, information, orders
from agentclinic.scoring.outcome import summarise
from agentclinic.scoring.rows import row_of
from agentclinic.scoring.stats import Estimate, Proportion
from agentclinic.scoring.verdicts import answer_key
from agentclinic.vocabulary.base import Knowledge, in_place, knowledge

PUBLIC = Path(__file__).parents[2] / "shared" / "data" / "agentclinic" / "agentclinic_medqa_extended.jsonl"
ARMS = ("plain", "prior_only", "door_only", "random_questions", "history_only", "full_information")


@dataclass(frozen=True)
class Part:
    """A part of a data set."""

    name: str
    dataset: str
    keep: Callable[[Case], bool] = lambda _: True
    lockbox: bool = False
    """Whether it is the data set's lockbox and not the rest."""


def unknown(case: Case) -> bool:
    """Whether the knowledge base does not have the case's diagnosis."""
    return knowledge().disease_named(case.diagnosis) is None


PARTS = (
    Part("OpenOSCE development", "OpenOSCE"),
    Part("OpenOSCE development, outside the knowledge base", "OpenOSCE", unknown),
    Part("OpenOSCE lockbox", "OpenOSCE", lambda case: case.in_lockbox, lockbox=True),
    Part("OpenOSCE_1 development", "OpenOSCE_1"),
    Part("OpenOSCE_1 lockbox", "OpenOSCE_1", lambda case: case.in_lockbox, lockbox=True),
    Part("MedQA_Ext", "MedQA_Ext"),
)


def plan_for(dataset: str, doctor: str = "plain", *, lockbox: bool = False) -> Plan:
    """The plan of a builtin run over a data set."""
    run = RunSettings(dataset=dataset, doctor=doctor, lockbox=lockbox, seed=1)
    return make_plan(Settings(run=run, datasets={"MedQA_Ext": str(PUBLIC)}))


async def played(plan: Plan, units: Iterable[Unit]) -> list[Record]:
    """Play units one after another."""
    async with Models(plan.settings) as models:
        return [await play(plan, unit, models) for unit in units]


def records_of(part: Part, doctor: str) -> list[Record]:
    """The records of a doctor on a part."""
    plan = plan_for(part.dataset, doctor, lockbox=part.lockbox)
    return anyio.run(played, plan, [unit for unit in plan.units if part.keep(unit.case)])


def row(part: Part, doctor: str, records: Sequence[Record]) -> dict[str, object]:
    """One line of the table."""
    summary = summarise(records)
    rows = [row_of(record) for record in records]
    facts, bill = information(rows), orders(rows)
    source = next((s for s in calibration(rows).sources if s.brier), None)
    return {
        "part": part.name,
        "doctor": doctor,
        "cases": len(records),
        "strict": share(summary.accuracy_strict),
        "lenient": share(summary.accuracy_lenient),
        "turns": mean(facts.turns, 1),
        "orders": mean(bill.orders, 1),
        "price_usd": price(bill, len(records)),
        "brier": mean(source.brier, 2) if source else "-",
    }


def price(bill: Orders, encounters: int) -> str:
    """Mean price per encounter; if some tests have no price, that of the others and the number without one."""
    if bill.unpriced == 0:
        return mean(bill.price_usd, 0)
    return f"{(bill.priced_usd or 0) / encounters:,.0f} and {bill.unpriced} of {bill.unpriced + bill.priced} unpriced"


def share(value: Proportion | None) -> str:
    """A share with its interval, in per cent."""
    if value is None or value.value is None or value.low is None or value.high is None:
        return "-"
    return f"{100 * value.value:.0f} ({100 * value.low:.0f}-{100 * value.high:.0f})"


def mean(value: Estimate | None, digits: int) -> str:
    """A mean with its interval."""
    if value is None or value.value is None:
        return "-"
    if value.low is None or value.high is None:
        return f"{value.value:,.{digits}f}"
    return f"{value.value:,.{digits}f} ({value.low:,.{digits}f}-{value.high:,.{digits}f})"


def table(parts: Sequence[Part]) -> None:
    """Print the table."""
    columns = ("doctor", "cases", "strict", "lenient", "turns", "orders", "price_usd", "brier")
    for part in parts:
        if part.dataset == "MedQA_Ext" and not PUBLIC.is_file():
            print(f"\n{part.name}: skipped, the public data is not in {PUBLIC.parent}")
            continue
        print(f"\n{part.name} (95 % intervals in brackets; accuracies in per cent; prices are estimates)")
        rows = [row(part, doctor, records_of(part, doctor)) for doctor in ARMS]
        widths = {name: max(len(name), *(len(str(line[name])) for line in rows)) for name in columns}
        print("  ".join(name.ljust(widths[name]) for name in columns))
        for line in rows:
            print("  ".join(str(line[name]).ljust(widths[name]) for name in columns))


def accuracy(records: Sequence[Record]) -> float:
    """Share right by the strict rule."""
    return sum(bool(record.correct) for record in records) / len(records)


def redrawn(known: Knowledge, rng: random.Random) -> Knowledge:
    """The same knowledge with every likelihood redrawn within its range (triangular, mode at p)."""
    diseases = {
        disease.id: replace(
            disease,
            links=tuple(replace(link, p=rng.triangular(link.low, link.high, link.p)) for link in disease.links),
        )
        for disease in known.diseases.values()
    }
    return Knowledge(diseases, known.findings, known.tests)


def _redraw(seed: int) -> float:
    with in_place(redrawn(knowledge(), random.Random(seed))):
        return accuracy(records_of(PARTS[0], "plain"))


def redraw(times: int) -> None:
    """Print how much accuracy varies when every likelihood is redrawn within its range."""
    with ProcessPoolExecutor(2) as pool:
        found = sorted(pool.map(_redraw, range(times)))
    low, middle, high = (found[math.floor(q * (times - 1))] for q in (0.025, 0.5, 0.975))
    shipped = accuracy(records_of(PARTS[0], "plain"))
    print(f"{PARTS[0].name}: {shipped:.1%} as shipped; over {times} redraws median {middle:.1%}, "
          f"95 % between {low:.1%} and {high:.1%}, extremes {found[0]:.1%} and {found[-1]:.1%}")  # fmt: skip


def fit() -> None:
    """Print the log score of the truth at the end of development encounters, by temperature."""
    plan = plan_for("OpenOSCE_1")
    results = []
    for temperature in (0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0):
        beliefs.TEMPERATURE = temperature
        records = anyio.run(played, plan, plan.units)
        loss = sum(-math.log(max(1e-6, truth_probability(record))) for record in records) / len(records)
        results.append((loss, temperature))
        print(f"temperature {temperature:4.2f}: log score {loss:.3f}, accuracy {accuracy(records):.1%}")
    print(f"lowest at {min(results)[1]}")


def truth_probability(record: Record) -> float:
    """The final differential's probability of the truth, or of "other" if the knowledge base does not have it."""
    from agentclinic.scoring.verdicts import names_truth

    differential = record.differential
    if differential is None:
        return 0.0
    for hypothesis in differential.hypotheses:
        if names_truth(hypothesis.diagnosis, record):
            return hypothesis.probability or 0.0
    known = knowledge().disease_named(record.ground_truth or "") or any(
        knowledge().disease_named(name) for name in answer_key(record).accept
    )
    rest = differential.other or 0.0
    # Its share of the rest is not recorded; an equal share is the least informed guess.
    return rest / (len(knowledge().diseases) - len(differential.hypotheses) + 1) if known else rest


def speed(count: int) -> None:
    """Print encounters per second and peak memory at a tenth of the count and at the count."""
    plan = plan_for("OpenOSCE_1")
    results = []
    for size in (count // 10, count):
        units = (replace(unit, repeat=n) for n in range(size) for unit in [plan.units[n % len(plan.units)]])
        began = time.process_time()
        done = anyio.run(_count, plan, units)
        seconds = time.process_time() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        results.append((done, seconds, peak))
        print(f"{done} encounters: {done / seconds:.0f} per second of one core, peak memory {peak:.0f} MB")
    began = time.perf_counter()
    with ProcessPoolExecutor(2) as pool:
        both = sum(pool.map(_worker, [count // 10] * 2))
    print(f"two processes on two cores: {both / (time.perf_counter() - began):.0f} per second, start-up included")
    (few, short, low), (many, long, high) = results
    print(json.dumps({"time_ratio": round((long / many) / (short / few), 2), "memory_ratio": round(high / low, 2)}))


def _worker(count: int) -> int:
    plan = plan_for("OpenOSCE_1")
    return anyio.run(_count, plan, [replace(plan.units[n % len(plan.units)], repeat=n) for n in range(count)])


async def _count(plan: Plan, units: Iterable[Unit]) -> int:
    done = 0
    async with Models(plan.settings) as models:
        for unit in units:
            await play(plan, unit, models)
            done += 1
    return done


def main() -> None:
    """Run what the flags ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--redraw", type=int, metavar="N")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--speed", type=int, metavar="N")
    parser.add_argument("--lockbox", action="store_true", help="also the lockbox, which is scored once per release")
    given = parser.parse_args()
    if given.redraw:
        redraw(given.redraw)
    elif given.fit:
        fit()
    elif given.speed:
        speed(given.speed)
    else:
        table([part for part in PARTS if given.lockbox or not part.lockbox])


if __name__ == "__main__":
    main()
