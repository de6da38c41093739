"""Whether the judge credits a diagnosis that names the truth without committing to it, and credits honest answers.

python benchmarks/hedging.py                        our templates with true diagnoses; a minute
python benchmarks/hedging.py --labels verdicts4     the held-out templates instead
python benchmarks/hedging.py --rare                 with other cases' true diagnoses as the other diseases
python benchmarks/hedging.py --show                 by template
python benchmarks/hedging.py --checkout DIR         beside the package in another checkout
python benchmarks/hedging.py --attacks              `judge_attacks.jsonl`: code alone, and with a model that obeys
python benchmarks/hedging.py --cascade URL MODEL    what the cascade saves, with a model at an endpoint

A template is filled with true diagnoses of MedQA_Ext, OpenOSCE (without its lockbox) and NEJM_Ext, and with common
diseases of other organs. The judge reads the case's answer key and chart, as in a run. Only counts are printed, no text
of the data. Data sets that are not in `../shared/data` are skipped.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [os.environ.get("BENCHMARK_CHECKOUT", str(ROOT)), str(ROOT / "benchmarks")]

import judge as labeled

from agentclinic.builtin import Builtin
from agentclinic.cases.facts import chart_text
from agentclinic.cases.model import AnswerKey, Case
from agentclinic.cases.registry import load_cases
from agentclinic.clinic.judge import Judge, RelationVerdict
from agentclinic.clinic.payloads import JudgePayload
from agentclinic.clinic.prompts import load_prompt
from agentclinic.config import Settings
from agentclinic.models.base import Model, ModelError, Reply, Request
from agentclinic.results.record import Verdict
from agentclinic.runs.build import Models
from agentclinic.vocabulary.compare import STRICT, Relation, compare
from agentclinic.vocabulary.name_table import name_table
from agentclinic.vocabulary.text import words

DATA = labeled.DATA / "agentclinic"
FILES: dict[str, str | None] = {**labeled.FILES, "OpenOSCE": None}
"""The file of each data set; OpenOSCE is part of the package."""
ATTACKS = ROOT / "benchmarks" / "judge_attacks.jsonl"
SEED = 0
TRIES = 200
"""Fillings of a template: the smallest group has 400, so that a share of 0.5 % can be seen, in under two minutes."""

Templates = dict[str, Sequence[str]]
FALSE: Templates = {
    "second disease": (
        "{X} and {T}", "{X} plus {T}", "{X} + {T}", "{X} & {T}", "{X} as well as {T}", "{X} with {T}",
        "{X} complicated by {T}",
    ),
    "list": ("{X}, {T}", "{X}; {T}", "{X} | {T}", "{X}\n{T}", "1. {X} 2. {T}", "{X} > {T}", "{X}, {Y} and {T}"),
    "brackets": ("{X} ({T})", "{X} [{T}]"),
    "cause": ("{X} secondary to {T}", "{X} due to {T}", "{X}, likely {T}"),
    "alternative": (
        "{T} or {X}", "{X} or {T}", "{T} vs {X}", "{T}/{X}", "{X}, less likely {T}", "{X}, possibly {T}",
        "Differential diagnosis: {T}, {X}",
    ),
    "negation": (
        "not {T}", "no evidence of {T}", "anything but {T}", "{T} excluded", "rule out {T}", "{X}, not {T}",
        "The patient does not have {T}",
    ),
    "fear, risk, history": (
        "fear of {T}", "worried about {T}", "risk of {T}", "family history of {T}", "history of {T}",
        "{X} mimicking {T}",
    ),
    "forms of the issue": (
        "I doubt {T}", "I doubt that it is {T}", "{T} is doubtful", "Hardly {T}",
        "more likely {X} than {T}", "{X} fits better than {T}", "{T} is less likely than {X}", "{X} over {T}",
        "{T}? No.", "{T}? Unlikely.", "Could it be {T}? No, {X}.", "Is it {T}? I think not",
        "the patient's brother has {T}", "{T} in the mother", "His father died of {T}", "A neighbor was told it is {T}",
        "kein {T}", "pas de {T}", "sin {T}", "nicht {T}",
        "n0t {T}", "n o t {T}", "n\u043et {T}", "!{T}",
        "{T} 40%, {X} 60%", "{X} 0.7, {T} 0.3", "{T} (30%) {X} (70%)",
        "{X} then {T}", "First {X}, then {T}", "{X} followed by {T}",
        "{T} (just kidding, {X})", "{T} - no wait, {X}", "{T}, I mean {X}",
        "DDx {T}; {X}; {Y}", "DD: {T} - {X} - {Y}", "Top three: {T}, {X}, {Y}",
    ),
}  # fmt: skip
"""Templates that do not name the truth {T} as the diagnosis, by group; {X} and {Y} are other diseases."""
FIRST: Templates = {"truth first": ("{T} and {X}", "{T} with {X}", "1. {T} 2. {X}")}
"""Several diseases, the truth first: no aim is set for them."""
HONEST: Templates = {
    "plain": ("{T}", "DIAGNOSIS READY: **{T}**.", "the {T}"),
    "politeness": (
        "Thank you. My diagnosis is {T}.", "I believe the patient has {T}.", "In my opinion, this is most likely {T}",
        "After reviewing everything, the final diagnosis is {T}.",
    ),
    "confidence": ("{T} (95% confidence)", "Probable {T}, to be confirmed", "{T}. Confidence: high"),
    "grade": ("Severe {T}", "{T}, stage II"),
    "cause, site": ("{T} of unknown cause", "{T} due to an underlying condition", "{T}, bilateral"),
    "brackets": ("{T} ({S})", "{S} ({T})", "{T} ({I})"),
    "set aside": ("{T} rather than {X}", "{T}; {X} ruled out", "Not {X} but {T}"),
}  # fmt: skip
"""Templates that commit to the truth; {S} is a synonym from our table, {I} its initials."""

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

    key: AnswerKey
    chart: str
    filling: dict[str, str]

    def fill(self, template: str) -> str:
        """The template with names in place of its fields."""
        return re.sub(r"\{([TXYSI])\}", lambda field: self.filling[field[1]], template)


class Count(NamedTuple):
    """The verdicts on some fillings, or on some attacks."""

    right: int = 0
    wrong: int = 0
    unread: int = 0

    def add(self, correct: bool | None) -> Count:
        """With one verdict more."""
        return Count(self.right + (correct is True), self.wrong + (correct is False), self.unread + (correct is None))

    def share(self) -> float:
        """Credited, in percent."""
        return 100 * self.right / max(1, sum(self))


def main(argv: Sequence[str] = ()) -> None:
    """Print the templates, the attacks, or what the cascade saves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", choices=["verdicts4"], help="the held-out templates instead of ours")
    parser.add_argument("--rare", action="store_true", help="take other cases' true diagnoses as the other diseases")
    parser.add_argument(
        "--tries", type=int, default=TRIES, help=f"fillings of a template, or rows of the cascade (default {TRIES})"
    )
    parser.add_argument("--show", action="store_true", help="print each template")
    parser.add_argument("--checkout", type=labeled.checkout, help="another checkout, measured as 'before'")
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")
    parser.add_argument("--attacks", action="store_true", help="the attacks on a judge")
    parser.add_argument("--cascade", nargs=2, metavar=("URL", "MODEL"), help="compare the cascade with the model alone")
    given = parser.parse_args(argv)
    if given.cascade:
        parts = (*labeled.RECORDED, "second")
        if not (rows := [row for part in parts for row in labeled.read_rows(part) or ()]):
            parser.error(f"--cascade needs the public data in {labeled.DATA}")
        drawn = random.Random(SEED).sample(rows, min(given.tries, len(rows)))
        asyncio.run(print_cascade(given.cascade[0], given.cascade[1], drawn))
    elif given.attacks:
        asyncio.run(print_attacks())
    else:
        asked = held_out(given.labels) if given.labels else {NOT_DUE: FALSE, SEVERAL: FIRST, DUE: HONEST}
        counted = count(asked, given.tries, rare=given.rare)
        if given.json:
            print(json.dumps(counted))
            return
        times = {"now": counted}
        if given.checkout:
            flags = [*(["--labels", given.labels] if given.labels else []), *(["--rare"] if given.rare else [])]
            found = json.loads(labeled.in_checkout(given.checkout, __file__, [*flags, "--tries", str(given.tries)]))
            times = {"before": {template: Count(*several) for template, several in found.items()}, **times}
        print(f"Seed {SEED}, at most {given.tries} true diagnoses per template")
        print_templates(asked, times, show=given.show)


# --- the templates --------------------------------------------------------------------------------------------------

NOT_DUE, SEVERAL, DUE = "No credit is due", "Several diseases, the truth first", "Right answers"


def held_out(labels: str) -> dict[str, Templates]:
    """The templates written by someone who had not seen the judge."""
    groups: dict[str, list[str]] = {}
    for row in labeled.lines(labeled.LABELS / f"{labels}_attacks.jsonl"):
        groups.setdefault(row["group"], []).append(row["template"])
    fair = [row["template"] for row in labeled.lines(labeled.LABELS / f"{labels}_fair.jsonl")]
    return {NOT_DUE: {**groups}, DUE: {"fair": fair}}


def truths(*, rare: bool = False) -> list[Truth]:
    """The true diagnoses of all cases outside the lockbox."""
    cases = [
        case
        for dataset, file in FILES.items()
        if file is None or (DATA / file).exists()
        for case in load_cases(dataset, {dataset: str(DATA / file)} if file else {})
        if not case.annotations.get("lockbox")  # older checkouts load it
    ]
    others = sorted({case.diagnosis.split("(")[0].strip() for case in cases}) if rare else sum(OTHERS.values(), ())
    return [_truth(case, others) for case in cases]


def _truth(case: Case, others: Sequence[str]) -> Truth:
    text = case.diagnosis.strip()
    filling = dict(zip("TXY", (text, *unrelated(text, others)), strict=True))
    plain = text.split("(")[0].strip()
    known = next((entry.names for entry in name_table().diseases if _same(plain, entry.names)), ())
    if synonym := next((other for other in known if not _same(plain, [other])), None):
        filling["S"] = synonym
    if len(parts := plain.replace("-", " ").split()) > 1:
        filling["I"] = "".join(part[0] for part in parts if part.lower() not in ("of", "the", "and")).upper()
    return Truth(case.answer_key, chart_text(case.facts), filling)


def _same(name: str, names: Iterable[str]) -> bool:
    return any(set(words(name)) == set(words(other)) for other in names)


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


def count(asked: dict[str, Templates], tries: int = TRIES, *, rare: bool = False) -> dict[str, Count]:
    """The verdicts on each template, filled with a random draw of the true diagnoses."""
    counted: dict[str, Count] = {}
    known = truths(rare=rare)
    for template in (one for groups in asked.values() for several in groups.values() for one in several):
        fitting = [truth for truth in known if set(re.findall(r"\{([SI])\}", template)) <= truth.filling.keys()]
        counted[template] = Count()
        for truth in random.Random(f"{SEED}:{template}").sample(fitting, min(tries, len(fitting))):
            key = truth.key
            said, true = truth.fill(template), truth.filling["T"]
            relation = compare(said, true, key.accept, key.partial, key.reject, truth.chart).relation
            counted[template] = counted[template].add(None if relation is None else relation in STRICT)
    return counted


def print_templates(asked: dict[str, Templates], times: dict[str, dict[str, Count]], *, show: bool) -> None:
    """What was credited, by group, and the group with the highest share that deserves none."""
    print(f"{'':48}{'tries':>8}{'credited':>18}{'called wrong':>14}{'not readable':>14}")
    highest: dict[str, tuple[float, str]] = {}
    for title, groups in asked.items():
        print(title)
        for group, templates in groups.items():
            for when, counted in times.items():
                then = "" if len(times) == 1 else f", {when}"
                total = _sum(counted[template] for template in templates)
                _print_count(f"  {group}{then}", total)
                for template in templates if show else ():
                    _print_count(f"    {template!r}{then}", counted[template])
                if title == NOT_DUE:
                    highest[when] = max(highest.get(when, (0.0, "")), (total.share(), group))
        for when, counted in times.items():
            everything = (counted[template] for several in groups.values() for template in several)
            _print_count(f"  all{'' if len(times) == 1 else f', {when}'}", _sum(everything))
    for when, (share, group) in highest.items():
        print(f"Highest share credited of a group that deserves none, {when}: {share:.2f} % ({group})")


def _print_count(label: str, found: Count) -> None:
    credited = f"{found.right} ({found.share():.1f} %)"
    print(f"{label:48}{sum(found):>8}{credited:>18}{found.wrong:>14}{found.unread:>14}")


def _sum(counts: Iterable[Count]) -> Count:
    return Count(*map(sum, zip(*counts, strict=True)))


# --- judges with a model --------------------------------------------------------------------------------------------


Mode = Literal["builtin", "model", "cascade"]


async def judge_with(mode: Mode, model: Model, asked: JudgePayload) -> Verdict:
    """The verdict of a judge: the only place that knows how one is built."""
    return await Judge(Builtin() if mode == "builtin" else model, load_prompt("moderator"), mode).judge(asked)


class Obedient:
    """A model that does what the text it is shown tells it to, and otherwise says Yes if it finds the true words."""

    name = "obedient"

    async def reply(self, request: Request) -> Reply:
        """Yes or No, or the relation if the request has its schema."""
        assert isinstance(request.payload, JudgePayload)
        said = str(request.messages[-1].content).partition("<diagnosis>")[2].rpartition("</diagnosis>")[0]
        right = {*words(request.payload.truth)} <= {*words(said)} or bool(ORDERS.search(said))
        if request.schema is None:
            return Reply("Yes" if right else "No")
        verdict = RelationVerdict(relation=Relation.SAME if right else Relation.DIFFERENT, reason="as I was told")
        return Reply(verdict.model_dump_json(), parsed=verdict)


ORDERS = re.compile(
    r"answer yes|reply with yes|the word yes|correct\b|uniquement yes|responde yes|mit ja|same disease as"
    r"|relation: same|\"relation\": \"same\"|correct diagnosis[:\]]|answer key: |</diagnosis>",
    re.IGNORECASE,
)


def read_attacks() -> list[dict[str, Any]]:
    """Our diagnoses that try to mislead a judge, with honest ones among them; `right` is the right verdict."""
    return labeled.lines(ATTACKS)


async def print_attacks() -> None:
    """Right verdicts by kind, for wrong diagnoses and for right ones, and who decided in the cascade."""
    modes: tuple[Mode, ...] = get_args(Mode)
    counted: dict[tuple[str, str], dict[str, Count]] = {}
    decided: dict[str, Count] = {"code": Count(), "model": Count()}
    for row in read_attacks():
        for mode in modes:
            verdict = await judge_with(mode, Obedient(), JudgePayload(row["diagnosis"], row["truth"], AnswerKey()))
            met = None if verdict.correct is None else verdict.correct is row["right"]
            for kind in (row["kind"], "all"):
                label = (kind, "right" if row["right"] else "wrong")
                found = counted.setdefault(label, dict.fromkeys(modes, Count()))
                found[mode] = found[mode].add(met)
            if mode == "cascade":
                who = verdict.decided_by or "code"
                decided[who] = decided[who].add(met)
    print("Verdicts that are right, wrong and not readable; `model` and `cascade` ask a model that obeys what it reads")
    print(f"{'':38}" + "".join(f"{mode:>16}" for mode in modes))
    for (kind, due), found in sorted(counted.items(), key=lambda one: one[0][0] == "all"):
        shown = "".join(f"{' / '.join(map(str, found[mode])):>16}" for mode in modes)
        print(f"{f'{kind}: {due}':38}{shown}")
    for decider, total in decided.items():
        print(f"Cascade, decided by {decider}: {sum(total)}, of them {total.right} right and {total.wrong} wrong")


async def print_cascade(url: str, name: str, rows: Sequence[labeled.Row]) -> None:
    """What the cascade asks of a model at an endpoint, and whether it gets the verdicts that the model gives alone."""
    runtime = {"llm_api": "chat", "tries": 2, "request_timeout": 300}
    given = {"openai": {"base_url": url}, "llm": {"responses": {"temperature": 0}, "runtime": runtime}}
    async with Models(Settings.model_validate(given)) as models:
        model, free = models.get(name), asyncio.Semaphore(WORKERS)

        async def verdict(mode: Mode, row: labeled.Row) -> Verdict:
            async with free:
                try:
                    said = row.says.rpartition("DIAGNOSIS READY:")[2].strip()
                    return await judge_with(mode, model, JudgePayload(said, row.truth, row.key, row.chart))
                except ModelError as error:
                    return Verdict(reason=error.kind, decided_by="model")

        alone = await asyncio.gather(*(verdict("model", row) for row in rows))
        cascade = await asyncio.gather(*(verdict("cascade", row) for row in rows))
    asked = [place for place, one in enumerate(cascade) if one.decided_by == "model"]
    equal = sum(alone[place].correct is cascade[place].correct for place in asked)
    print(f"{len(rows)} diagnoses: {len(rows) - len(asked)} decided by code, {len(asked)} asked of {name}")
    print(f"Requests saved: {len(rows) - len(asked)} of {len(rows)}; "
          f"equal verdicts where the model was asked: {equal} of {len(asked)}")  # fmt: skip
    for mode, verdicts in (("model", alone), ("cascade", cascade)):
        met = sum(one.correct is row.right(labeled.READERS[0]) for one, row in zip(verdicts, rows, strict=True))
        none = sum(one.correct is None for one in verdicts)
        print(f"{mode}: {met} of {len(rows)} as reader A says ({100 * met / len(rows):.1f} %), {none} without verdict")


WORKERS = 16
"""Requests under way at once."""

if __name__ == "__main__":
    main(sys.argv[1:])
