"""What the table of public names takes from Mondo and ICD-10-CM."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from benchmark_support import load_benchmark

convert = load_benchmark("convert_vocabularies")


def term(label: str, *synonyms: str, above: tuple[str, ...] = (), deprecated: bool = False) -> dict[str, Any]:
    return {
        "label": label,
        "synonyms": list(synonyms),
        "ancestors": {number: steps for steps, number in enumerate(above, start=1)},
        "deprecated": deprecated,
    }


MONDO = {
    "MONDO:1": term("wobble", "wobble (disease)", "shakes"),
    "MONDO:2": term("severe wobble", "WOB", "shakes", above=("MONDO:1",)),
    "MONDO:3": term("tremble", "WOB", "quakes"),
    "MONDO:4": term("quiver", "quakes"),
    "MONDO:5": term("old wobble", deprecated=True),
    "MONDO:0005583": term("non-human animal disease"),
    "MONDO:6": term("wobble, sheep", above=("MONDO:0005583",)),
}
ICD = """<tabular><chapter><section>
<diag><name>A00</name><desc>Wobble</desc><diag><name>A00.1</name><desc>Other wobble</desc>
<inclusionTerm><note>Twitching wobble NOS</note><note>Wobble with any condition in B00</note></inclusionTerm>
</diag></diag>
<diag><name>Z00</name><desc>Wobble</desc><inclusionTerm><note>Encounter for wobble</note></inclusionTerm></diag>
</section></chapter></tabular>"""


def test_obsolete_terms_and_diseases_of_animals_are_left_out() -> None:
    found = {disease.id: disease for disease in convert.from_mondo(MONDO)}
    assert list(found) == ["MONDO:1", "MONDO:2", "MONDO:3", "MONDO:4"]
    assert found["MONDO:1"].names == ("wobble", "shakes")
    assert found["MONDO:2"].parents == ("MONDO:1",)


def test_a_name_of_several_diseases_is_left_out_unless_one_includes_the_others() -> None:
    index, ambiguous = convert.keys(list(convert.from_mondo(MONDO)))
    assert index == {"severe wobble": 1, "shake": 0, "tremble": 2, "quiver": 3, "wobble": 0}
    assert ambiguous == 2, "the abbreviation WOB, and quakes"


def test_inclusion_terms_are_kinds_of_the_nearest_title_that_names_a_disease() -> None:
    mondo = list(convert.from_mondo(MONDO))
    (found,) = convert.from_icd(ElementTree.fromstring(ICD), mondo)
    assert found == convert.Disease("ICD10CM:A00.1#1", ("MONDO:1",), ("Twitching wobble",))


def test_a_folder_without_the_packages_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        convert.main([str(tmp_path)])
    assert stopped.value.code == 2
    told = capsys.readouterr().err
    assert str(tmp_path) in told or "zstd" in told
