"""Attacks on people who open what others made or serve others: none may succeed.

python benchmarks/attack.py                       all attacks, with the tries in benchmarks/README.md
python benchmarks/attack.py seats bits --seed 2   some of them
python benchmarks/attack.py --tries 20            a quick look

Each attack is a module in `benchmarks/attacks/`, whose docstring says what is tried. A try "fell" if a secret or the
truth was seen outside, code ran or a request was sent unasked, a wrong number was shown without a word, others were
refused service for over 5 s, or there was a traceback. Everything stays on loopback. Exits with 1 if anything fell.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from runs_support import nursery

ATTACKS = {
    "folders": "hostile run folders",
    "memories": "poisoned memories",
    "seats": "simultaneous seats",
    "clients": "slow clients",
    "bits": "flipped bits",
    "echoes": "echoed secrets",
    "batches": "hostile batch answers",
}
SHOWN = 10
"""Lines about what fell, for each attack."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attacks", nargs="*", metavar="ATTACK", help=f"one of {', '.join(ATTACKS)} (default: all)")
    parser.add_argument("--tries", type=int, help="tries of each attack (default: as many as it defines)")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    unknown = set(given.attacks) - set(ATTACKS)
    if unknown:
        parser.error(f"no attack is called {', '.join(sorted(unknown))}; choose from {', '.join(ATTACKS)}")
    print(f"{'attack':24}{'tries':>7}{'held':>7}{'fell':>7}{'seconds':>9}", flush=True)
    failed = False
    for name in given.attacks or ATTACKS:
        module = importlib.import_module(f"attacks.{name}")
        began = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="agentclinic-attack-") as folder:
            outcomes = list(module.attack(given.tries or module.TRIES, given.seed, Path(folder)))
        fell = [line for line in outcomes if line is not None]
        seconds = time.perf_counter() - began
        print(
            f"{ATTACKS[name]:24}{len(outcomes):7}{len(outcomes) - len(fell):7}{len(fell):7}{seconds:9.1f}", flush=True
        )
        for line in fell[:SHOWN]:
            print(f"  fell: {line}")
        if len(fell) > SHOWN:
            print(f"  and {len(fell) - SHOWN} more")
        failed |= bool(fell) or not outcomes
    nursery().close()
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
