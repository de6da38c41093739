"""Lines of the package by room: code, docstrings, comments and blank lines.

python benchmarks/lines.py                   this checkout
python benchmarks/lines.py --checkout DIR    another one beside it, as 'before'
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("code", "docstrings", "comments", "blank")


def count(source: str) -> Counter[str]:
    """The lines of a program by kind; the text under a field counts as a docstring."""
    lines = [line.strip() for line in source.splitlines()]
    kinds = ["blank" if not line else "comments" if line.startswith("#") else "code" for line in lines]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            last = node.end_lineno or node.lineno
            kinds[node.lineno - 1 : last] = ["docstrings"] * (last - node.lineno + 1)
    return Counter(kinds)


def rooms(checkout: Path) -> dict[str, Counter[str]]:
    """The lines of each room of the package; files beside the rooms count as one more."""
    package = checkout / "agentclinic"
    found: dict[str, Counter[str]] = {}
    for path in sorted(package.rglob("*.py")):
        place = path.relative_to(package).parts
        room = place[0] if len(place) > 1 else "(beside the rooms)"
        found.setdefault(room, Counter()).update(count(path.read_text(encoding="utf-8")))
    return found


def main() -> None:
    """Print a line per room, and the total."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkout", type=Path, help="another checkout, counted as 'before'")
    before = parser.parse_args().checkout
    counted = [rooms(place) for place in (before, ROOT) if place]
    print(f"{'room':20}{'lines':>16}" + "".join(f"{kind:>16}" for kind in KINDS))
    for room in [*sorted({room for one in counted for room in one}), "total"]:
        lines = [sum(one.values(), Counter()) if room == "total" else one.get(room, Counter()) for one in counted]
        columns = [[each.total() for each in lines], *([each[kind] for each in lines] for kind in KINDS)]
        print(f"{room:20}" + "".join(f"{' → '.join(f'{number:,}' for number in column):>16}" for column in columns))


if __name__ == "__main__":
    main()
