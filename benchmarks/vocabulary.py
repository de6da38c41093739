"""What the public vocabularies do for the judge: synonyms, siblings, parents and children of Mondo, drawn by seed.

`python benchmarks/vocabulary.py [--pairs N] [--seed N] [--left-out SHARE] [--cost]`. The draws come from the names in
`agentclinic/vocabulary/data/ontology.txt.gz`: every name and exact synonym of Mondo as written, spelling variants
included; the names of ICD-10-CM are not drawn. A second table leaves a share of the diseases out of the lookup and
shows the pairs that have one of these, which is what the rules do with names that no table has. `--cost` prints instead
the time and memory of a start and of the first lookup, each in a new process.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from agentclinic.scoring.stats import proportion
from agentclinic.vocabulary.compare import STRICT, Relation, compare
from agentclinic.vocabulary.ontology import Ontology, ontology

BROADER = frozenset({Relation.BROADER})
NARROWER = frozenset({Relation.NARROWER_CONSISTENT})
SAME = frozenset({Relation.SAME})
TOO_WIDE = 1000
"""A parent with more kinds than this ("hereditary disease") is not drawn: no one gives it as a diagnosis."""


class Pair(NamedTuple):
    """Two names, and the places of their diseases."""

    said: str
    truth: str
    diseases: frozenset[int]


class Draw(NamedTuple):
    """Pairs of one kind."""

    synonyms: list[Pair]
    siblings: list[Pair]
    children: list[Pair]
    """The child is said and the parent is the truth."""


def main(argv: Sequence[str] | None = None) -> None:
    """Print the shares with and without a part of the diseases, or the cost."""
    parser = argparse.ArgumentParser(description="How the judge reads pairs of names drawn from Mondo.")
    parser.add_argument("--pairs", type=int, default=2000, help="pairs of each kind (default: 2000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draw (default: 0)")
    parser.add_argument("--left-out", type=float, default=0.1, help="share of the diseases left out (default: 0.1)")
    parser.add_argument("--cost", action="store_true", help="print time and memory instead")
    asked = parser.parse_args(argv)
    if asked.cost:
        print_cost()
        return
    rng = random.Random(asked.seed)
    table = ontology()
    mondo = [place for place, line in enumerate(table.diseases) if line.startswith("MONDO")]
    print(f"{table.version}; seed {asked.seed}")
    show("all names in the lookup", draw(table, mondo, set(mondo), asked.pairs, rng))
    out = set(rng.sample(mondo, round(asked.left_out * len(mondo))))
    table.keys[:] = [line for line in table.keys if int(line.rpartition("\t")[2]) not in out]
    show(f"{asked.left_out:.0%} of the diseases left out of it", draw(table, mondo, out, asked.pairs, rng))


def draw(table: Ontology, mondo: list[int], among: set[int], count: int, rng: random.Random) -> Draw:
    """Draw pairs that have at least one of the diseases in `among`."""
    names = {place: table.names(place) for place in mondo}
    children: dict[int, list[int]] = {}
    for place in mondo:
        for parent in table.above(place, 1):
            children.setdefault(parent, []).append(place)
    parents = [place for place in children if int(table.diseases[place].split("\t")[2]) <= TOO_WIDE and place in names]
    families = [place for place in parents if len(children[place]) > 1]
    several = [place for place in mondo if len(names[place]) > 1]

    def pairs(one: Callable[[], Pair]) -> list[Pair]:
        found: dict[Pair, None] = {}
        while len(found) < count:
            pair = one()
            if pair.diseases & among:
                found[pair] = None
        return list(found)

    def synonyms() -> Pair:
        place = rng.choice(several)
        said, truth = rng.sample(names[place], 2)
        return Pair(said, truth, frozenset({place}))

    def siblings() -> Pair:
        one, other = rng.sample(children[rng.choice(families)], 2)
        return Pair(rng.choice(names[one]), rng.choice(names[other]), frozenset({one, other}))

    def child() -> Pair:
        parent = rng.choice(parents)
        place = rng.choice(children[parent])
        return Pair(rng.choice(names[place]), rng.choice(names[parent]), frozenset({place, parent}))

    return Draw(pairs(synonyms), pairs(siblings), pairs(child))


def show(title: str, drawn: Draw) -> None:
    """Print the shares of each relation that matters."""
    print(f"\n{title}: {len(drawn.synonyms):,} pairs of each kind, share and 95 % interval")
    show_share("synonyms: same", drawn.synonyms, SAME)
    show_share("synonyms: right by the strict rule", drawn.synonyms, STRICT)
    show_share("siblings: same", drawn.siblings, SAME)
    show_share("siblings: right by the strict rule", drawn.siblings, STRICT)
    turned = [Pair(pair.truth, pair.said, pair.diseases) for pair in drawn.children]
    show_share("child for parent: narrower", drawn.children, NARROWER)
    show_share("parent for child: broader", turned, BROADER)
    show_share("parent for child: right by the strict rule", turned, STRICT)
    both = [(one, other) for one, other in zip(drawn.children, turned, strict=True)]
    ways = [relation(one) in NARROWER and relation(other) in BROADER for one, other in both]
    print_share("parent and child the right way round", sum(ways), len(ways))


def relation(pair: Pair) -> Relation | None:
    """How the judge relates the names of a pair."""
    return compare(pair.said, pair.truth).relation


def show_share(label: str, pairs: list[Pair], counted: frozenset[Relation]) -> None:
    """Print the share of pairs with one of the relations."""
    print_share(label, sum(relation(pair) in counted for pair in pairs), len(pairs))


def print_share(label: str, hits: int, of: int) -> None:
    """Print a share with its interval."""
    share = proportion(hits, of)
    print(f"  {label:44s} {share.value:6.1%} ({share.low:.1%} - {share.high:.1%})")


START = """
import json, resource, sys, time
def used():
    return time.perf_counter(), time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
"""
RUN = """
from agentclinic.cli import main
sys.argv = ["agentclinic", "run", "--dataset", "OpenOSCE", "--limit", "3", "--quiet"]
sys.stdout, kept = sys.stderr, sys.stdout
try:
    main()
except SystemExit:
    pass
sys.stdout = kept
"""
LOOKUP = """
from agentclinic.vocabulary import compare
compare.compare("Heart attack", "Gout")
before = used()
compare.compare("Erdheim-Chester disease", "Polyostotic sclerosing histiocytosis")
"""
END = """
after, table = used(), sys.modules.get("agentclinic.vocabulary.ontology")
read = bool(table and table.ontology.cache_info().currsize)
print(json.dumps([[end - start for start, end in zip(before, after)], after[2], read]))
"""


def print_cost() -> None:
    """Print time and memory of a short builtin run and of the first lookup."""
    for label, code in (("run of 3 OpenOSCE cases, all roles builtin", RUN), ("first lookup", LOOKUP)):
        with tempfile.TemporaryDirectory() as folder:
            program = f"{START}sys.path.insert(0, {str(ROOT)!r})\nbefore = used()\n{code}{END}"
            done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, check=True)
        (wall, processor, memory), peak, read = json.loads(done.stdout.splitlines()[-1])
        print(
            f"{label}: {wall:.2f} s ({processor:.2f} s of processor time), {memory:+.0f} MB, peak {peak:.0f} MB, "
            f"vocabularies {'read' if read else 'not read'}"
        )


if __name__ == "__main__":
    main()
