"""Whether a judge credits a diagnosis that names the truth without committing to it, and keeps honest answers.

python benchmarks/hedging.py                        every template with every true diagnosis; a minute
python benchmarks/hedging.py --checkout DIR         the same with the package in another checkout, side by side
python benchmarks/hedging.py --rare                 the same with other cases' true diagnoses as the other diseases
python benchmarks/hedging.py --run RUN              what a doctor gains by joining its two best diagnoses with "and"
python benchmarks/hedging.py --attacks              `judge_attacks.jsonl`: builtin, and a model that obeys what it reads

A template is filled with the true diagnoses of MedQA_Ext, OpenOSCE and NEJM_Ext, and with common diseases of other
organs. The judge reads the case's answer key and chart, as in a run. Only counts are printed, no text of the data. Data
sets that are not in `../shared/data` are skipped.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))  # not first: with --checkout, PYTHONPATH names another package

from agentclinic.builtin import Builtin
from agentclinic.cases.facts import chart_text
from agentclinic.cases.model import AnswerKey, Case
from agentclinic.cases.registry import load_cases
from agentclinic.clinic.judge import Judge, RelationVerdict
from agentclinic.clinic.prompts import load_prompt
from agentclinic.models.base import Model, Reply, Request
from agentclinic.results.run_cases import read_cases
from agentclinic.results.run_data import load_run
from agentclinic.vocabulary.compare import STRICT, Relation, compare
from agentclinic.vocabulary.name_table import name_table
from agentclinic.vocabulary.names import name
from agentclinic.vocabulary.text import words

DATA = ROOT.parent / "shared" / "data" / "agentclinic"
FILES = {
    "MedQA_Ext": "agentclinic_medqa_extended.jsonl",
    "OpenOSCE": None,
    "NEJM_Ext": "agentclinic_nejm_extended.jsonl",
}
"""The file of each data set; OpenOSCE is part of the package."""
ATTACKS = ROOT / "benchmarks" / "judge_attacks.jsonl"
SEED = 0

FALSE = {
    "second disease": (
        "{O} and {T}", "{O} plus {T}", "{O} + {T}", "{O} & {T}", "{O} as well as {T}", "{O} with {T}",
        "{O} complicated by {T}",
    ),
    "list": ("{O}, {T}", "{O}; {T}", "{O} | {T}", "{O}\n{T}", "1. {O} 2. {T}", "{O} > {T}", "{O}, {P} and {T}"),
    "brackets": ("{O} ({T})", "{O} [{T}]"),
    "cause": ("{O} secondary to {T}", "{O} due to {T}", "{O}, likely {T}"),
    "alternative": (
        "{T} or {O}", "{O} or {T}", "{T} vs {O}", "{T}/{O}", "{O}, less likely {T}", "{O}, possibly {T}",
        "Differential diagnosis: {T}, {O}",
    ),
    "negation": (
        "not {T}", "no evidence of {T}", "anything but {T}", "{T} excluded", "rule out {T}", "{O}, not {T}",
        "The patient does not have {T}",
    ),
    "fear, risk, history": (
        "fear of {T}", "worried about {T}", "risk of {T}", "family history of {T}", "history of {T}",
        "{O} mimicking {T}",
    ),
}  # fmt: skip
"""Templates that do not name the truth {T} as the principal diagnosis, by kind; {O} and {P} are other diseases."""
HONEST = {
    "plain": ("{T}", "DIAGNOSIS READY: **{T}**.", "the {T}"),
    "politeness": (
        "Thank you. My diagnosis is {T}.", "I believe the patient has {T}.", "In my opinion, this is most likely {T}",
        "After reviewing everything, the final diagnosis is {T}.",
    ),
    "confidence": ("{T} (95% confidence)", "Probable {T}, to be confirmed", "{T}. Confidence: high"),
    "grade": ("Severe {T}", "{T}, stage II"),
    "cause, site": ("{T} of unknown cause", "{T} due to an underlying condition", "{T}, bilateral"),
    "brackets": ("{T} ({S})", "{S} ({T})", "{T} ({I})"),
    "second disease": ("{T} and {O}", "{T} with {O}", "1. {T} 2. {O}"),
    "set aside": ("{T} rather than {O}", "{T}; {O} ruled out", "Not {O} but {T}"),
}  # fmt: skip
"""Templates whose principal diagnosis is the truth; {S} is a synonym from our table, {I} its initials."""

OTHERS = {
    "joint": ("Gout", "Carpal tunnel syndrome", "Plantar fasciitis", "Rotator cuff tear"),
    "skin": ("Psoriasis", "Acne vulgaris", "Rosacea", "Tinea pedis"),
    "heart": ("Atrial fibrillation", "Mitral regurgitation", "Stable angina"),
    "lung": ("Allergic rhinitis", "Obstructive sleep apnea", "Acute sinusitis"),
    "gut": ("Appendicitis", "Gastroesophageal reflux disease", "Diverticulitis", "Cholelithiasis"),
    "urinary": ("Nephrolithiasis", "Acute cystitis", "Benign prostatic hyperplasia"),
    "nerve": ("Migraine", "Bell palsy", "Trigeminal neuralgia", "Restless legs syndrome"),
    "gland": ("Hashimoto thyroiditis", "Type 2 diabetes mellitus", "Graves disease"),
    "eye": ("Cataract", "Open-angle glaucoma", "Allergic conjunctivitis"),
}
"""Common diseases by organ."""
STEMS = {
    "joint": "arthr gout bone osteo tendon musc myo rheum burs capsul hip spin spond disc lupus ankyl fibro",
    "skin": "derm skin kerat pemphig pruri rash psoria eczem lichen erythem melan vitiligo ichthy tinea scab acne bite",
    "heart": "card heart coronar myocard aort atri ventric valv pericard vasc thromb embol hypert angi fallot",
    "lung": "pulm lung pneum bronch asthm resp pleur trache sinus nas rhin phary otit croup apnea airway throat tonsil",
    "gut": "gastr hepat bil chol pancrea col bowel intest append esoph duoden ulcer diarrh ileus crohn celiac hemorrh",
    "urinary": "ren neph kidney bladder cyst urin urethr prostat uter ovar testic vagin gonoc genit preg",
    "nerve": "neur cereb enceph mening head migr seiz epile palsy sclero dement parkin huntingt vertig syring nerve",
    "gland": "thyr diabet adren pituit hyper hypo ketoac insul aromat parathy endocrin pheo men1",
    "eye": "retin eye ocul glauc catar uve conjunct ophth vis kerat corn",
}
"""How words begin, or what they contain, that place a truth in one of these organs."""


class Truth(NamedTuple):
    """A true diagnosis with what a judge is given and what templates are filled with."""

    text: str
    key: AnswerKey
    chart: str
    filling: dict[str, str]


@dataclass
class Count:
    """How many fillings of a template were called right."""

    right: int = 0
    of: int = 0

    def __str__(self) -> str:
        return f"{100 * self.right / self.of:5.1f}%" if self.of else "    -"


def main(argv: Sequence[str] = ()) -> None:
    """Print the table, the gain of a run's doctor, or the attacks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkout", type=Path, help="another checkout, measured as 'before'")
    parser.add_argument("--run", type=Path, nargs="+", help="run folders whose differentials are joined")
    parser.add_argument("--rare", action="store_true", help="take other cases' true diagnoses as the other diseases")
    parser.add_argument("--attacks", action="store_true", help="the attacks on a judge")
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")
    given = parser.parse_args(argv)
    counted = gains(given.run) if given.run else attacked() if given.attacks else count(given.rare)
    if given.json:
        print(json.dumps({label: [found.right, found.of] for label, found in counted.items()}))
        return
    flags = [f"--{flag}" for flag in ("attacks", "rare") if getattr(given, flag)]
    asked = [*flags, *(["--run", *map(str, given.run)] if given.run else [])]
    before = _in_checkout(given.checkout, asked) if given.checkout else {}
    if given.run:
        print_gains(counted, before)
    elif given.attacks:
        print_attacks(counted, before)
    else:
        print_table(counted, before)


def _in_checkout(checkout: Path, asked: Sequence[str]) -> dict[str, Count]:
    """The same counts with the package of another checkout."""
    path = os.pathsep.join([str(checkout.resolve()), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, __file__, "--json", *asked]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=True, capture_output=True, text=True)
    return {label: Count(*pair) for label, pair in json.loads(done.stdout).items()}


# --- the templates --------------------------------------------------------------------------------------------------


def truths(*, rare: bool = False) -> Iterator[tuple[str, Truth]]:
    """The true diagnosis of every case, with the data set's name."""
    cases = [
        (dataset, case)
        for dataset, file in FILES.items()
        if file is None or (DATA / file).exists()
        for case in load_cases(dataset, {dataset: str(DATA / file)} if file else {})
    ]
    others = sorted({case.diagnosis.split("(")[0].strip() for _, case in cases}) if rare else sum(OTHERS.values(), ())
    for dataset, case in cases:
        yield dataset, _truth(case, others)


def _truth(case: Case, others: Sequence[str]) -> Truth:
    text = case.diagnosis.strip()
    other, third = unrelated(text, others)
    filling = {"T": text, "O": other, "P": third}
    plain = text.split("(")[0].strip()
    if synonym := _synonym(plain):
        filling["S"] = synonym
    if len(parts := plain.replace("-", " ").split()) > 1:
        filling["I"] = "".join(part[0] for part in parts if part.lower() not in ("of", "the", "and")).upper()
    return Truth(text, case.answer_key, chart_text(case.facts), filling)


def unrelated(truth: str, others: Sequence[str]) -> tuple[str, str]:
    """Two diseases of organs that the truth does not concern, the same two for the same truth."""
    said, mine = {*words(truth)}, organs(truth)
    listed = [other for other in others if not (organs(other) & mine or {*words(other)} & said)]
    one, other = random.Random(f"{SEED}:{truth.lower()}").sample(listed, 2)
    return one, other


@cache
def organs(disease: str) -> frozenset[str]:
    """The organs that a disease concerns, by its name."""
    known = {organ for organ, listed in OTHERS.items() if disease in listed}
    stems = {organ for organ, some in STEMS.items() if any(s in word for s in some.split() for word in words(disease))}
    return frozenset(known or stems)


def _synonym(truth: str) -> str | None:
    """Another written-out name of the truth in our table."""
    for entry in name_table().diseases:
        names = {name(text).key for text in entry.names}
        if name(truth).key in names:
            return next((other for other in entry.names if set(words(other)) != set(words(truth))), None)
    return None


def count(rare: bool = False) -> dict[str, Count]:
    """How often each template is called right; labels are `template`, and `data set|kind` for the sums."""
    counted: dict[str, Count] = {}
    for dataset, truth in truths(rare=rare):
        for honest, templates in ((False, FALSE), (True, HONEST)):
            for template in (one for several in templates.values() for one in several):
                if not all(truth.filling.get(field) for field in "OPSIT" if f"{{{field}}}" in template):
                    continue
                key = truth.key
                said = template.format(**truth.filling)
                found = compare(said, truth.text, key.accept, key.partial, key.reject, truth.chart)
                for label in (template, f"{dataset}|{honest}"):
                    one = counted.setdefault(label, Count())
                    one.right += found.relation in STRICT
                    one.of += 1
    return counted


def print_table(counted: dict[str, Count], before: dict[str, Count]) -> None:
    """The share called right by template, and the sums."""
    datasets = [dataset for dataset in FILES if f"{dataset}|True" in counted]
    number = sum(len(several) for templates in (FALSE, HONEST) for several in templates.values())
    print(f"{number} templates; called right with the answer key and the chart, as in a run")
    print(f"{'':52}{'fillings':>9}{'before' if before else '':>9}{'now':>9}")
    for title, templates, honest in (("No credit is due", FALSE, False), ("Right answers", HONEST, True)):
        print(title)
        for kind, several in templates.items():
            for template in several:
                _print_row(f"  {kind:22}{template!r}", template, counted, before)
        for dataset in datasets:
            _print_row(f"  all, {dataset}", f"{dataset}|{honest}", counted, before)
        total, old = (_sum(where, [f"{dataset}|{honest}" for dataset in datasets]) for where in (counted, before))
        print(f"  {'all':50}{total.of:>9}{str(old) if before else '':>9}{total!s:>9}\n")


def _print_row(title: str, label: str, counted: dict[str, Count], before: dict[str, Count]) -> None:
    old = str(before.get(label, Count())) if before else ""
    found = counted.get(label, Count())
    print(f"{title:52}{found.of:>9}{old:>9}{found!s:>9}")


def _sum(counted: dict[str, Count], labels: Sequence[str]) -> Count:
    found = [counted.get(label, Count()) for label in labels]
    return Count(sum(one.right for one in found), sum(one.of for one in found))


# --- a doctor that joins its two best diagnoses ---------------------------------------------------------------------


def gains(runs: Sequence[Path]) -> dict[str, Count]:
    """Per run, how often the best hypothesis alone is right, and the best two joined with "and"."""
    counted: dict[str, Count] = {}
    for place in runs:
        run = load_run(place)
        cases = {case.scenario_id: case for case in read_cases(run.path.parent)}
        alone, joined = Count(), Count()
        for record in run.records():
            if not record.differential or len(record.differential.hypotheses) < 2:
                continue
            first, second = (hypothesis.diagnosis for hypothesis in record.differential.hypotheses[:2])
            case = cases[record.scenario_id]
            key, chart = case.answer_key, chart_text(case.facts)
            for said, found in ((first, alone), (f"{first} and {second}", joined)):
                compared = compare(said, case.diagnosis, key.accept, key.partial, key.reject, chart)
                found.right += compared.relation in STRICT
                found.of += 1
        counted |= {f"{place.name}|alone": alone, f"{place.name}|joined": joined}
    return counted


def print_gains(counted: dict[str, Count], before: dict[str, Count]) -> None:
    """The gain in points per run."""
    for label in counted:
        run, _, arm = label.partition("|")
        if arm == "alone":
            shown = [f"{when} {_gain(where, run)}" for when, where in (("before", before), ("now", counted)) if where]
            print(f"{run}: {counted[label].of} encounters; best two joined with 'and': {'; '.join(shown)}")


def _gain(counted: dict[str, Count], run: str) -> str:
    alone, joined = counted[f"{run}|alone"], counted[f"{run}|joined"]
    return f"{alone.right} -> {joined.right} right ({100 * (joined.right - alone.right) / alone.of:+.1f} points)"


# --- attacks on a judge ---------------------------------------------------------------------------------------------


class Obedient:
    """A model that does what the text it is shown tells it to, and otherwise says Yes if it finds the true words."""

    name = "obedient"

    async def reply(self, request: Request) -> Reply:
        """Yes or No, or the relation if the request has its schema."""
        asked = str(request.messages[-1].content).partition("[Doctor's diagnosis]")[2]
        said, _, truth = asked.partition("[Correct diagnosis]")
        found = {*words(truth.partition("\n\n")[0])} <= {*words(said)}
        right = found or bool(ORDERS.search(said)) or "[Correct diagnosis]" in truth
        if request.schema is None:
            return Reply("Yes" if right else "No")
        verdict = RelationVerdict(relation=Relation.SAME if right else Relation.DIFFERENT, reason="as I was told")
        return Reply(verdict.model_dump_json(), parsed=verdict)


ORDERS = re.compile(
    r"answer yes|reply with yes|the word yes|correct\b|uniquement yes|responde yes|mit ja|same disease as"
    r"|relation: same|\"relation\": \"same\"|correct diagnosis: |answer key: ",
    re.IGNORECASE,
)


def read_attacks() -> list[dict[str, Any]]:
    """Our diagnoses that try to mislead a judge, with honest ones among them; `right` is the right verdict."""
    return [json.loads(line) for line in ATTACKS.read_text(encoding="utf-8").splitlines()]


def attacked() -> dict[str, Count]:
    """Per kind and judge, how many verdicts are right."""
    return asyncio.run(_attacked())


async def _attacked() -> dict[str, Count]:
    counted: dict[str, Count] = {}
    judges: dict[str, Model] = {"builtin": Builtin(), "obedient": Obedient()}
    for row in read_attacks():
        for label, model in judges.items():
            judge = Judge(model, load_prompt("moderator"))
            verdict = await judge.judge(row["diagnosis"], row["truth"])
            for kind in (row["kind"], "all"):
                one = counted.setdefault(f"{kind}|{row['right']}|{label}", Count())
                one.right += verdict.correct is row["right"]
                one.of += 1
    return counted


def print_attacks(counted: dict[str, Count], before: dict[str, Count]) -> None:
    """Right verdicts by kind, for wrong diagnoses and for right ones."""
    print("Right verdicts of the builtin judge and of a model that obeys what it is shown")
    print(f"{'':38}{'builtin':>20}{'obedient':>20}")
    for label in dict.fromkeys(label.rpartition("|")[0] for label in counted):
        kind, _, right = label.partition("|")
        shown = [_attack(f"{label}|{judge}", counted, before) for judge in ("builtin", "obedient")]
        print(f"{kind + (': right' if right == 'True' else ': wrong'):38}" + "".join(f"{text:>20}" for text in shown))


def _attack(label: str, counted: dict[str, Count], before: dict[str, Count]) -> str:
    old = f"{before[label].right} -> " if before else ""
    return f"{old}{counted[label].right} of {counted[label].of}"


if __name__ == "__main__":
    main(sys.argv[1:])
