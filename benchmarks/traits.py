"""Difficult patients keep the truth: every fact can be obtained, and nothing that is said is false.

`python benchmarks/traits.py` lets a persistent interviewer ask the builtin patient of every bundled case outside the
lockbox for every fact, at every level of every trait, and prints which facts never came out and how many turns it took
against level 0. Then it asks every patient the same questions at every level (`--questions 200`) and checks each
sentence of each reply against the chart, and that nothing is denied that is not denied at level 0. `--cases N` takes
the first N cases of each data set, `--obtain` or `--truth` does only one part.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from agentclinic import Case, load_cases
from agentclinic.cases.model import Fact
from agentclinic.clinic.answers import SET_PHRASES, Part, matched, own_words, payload_of, worded
from agentclinic.clinic.payloads import NO_TRAITS, PatientTraits
from agentclinic.config import STRONGEST, TRAITS
from agentclinic.results.turn import Disclosure, Exchange, Provenance
from agentclinic.vocabulary.jargon import mentions, terms

DATA_SETS = ("OpenOSCE", "OpenOSCE_Demo", "OpenOSCE_1")
SEED = 7
LEVELS = tuple(range(1, STRONGEST + 1))
DOSES = tuple(PatientTraits(**{trait: level}, seed=SEED) for trait in TRAITS for level in LEVELS)
"""Each trait alone at each level above 0."""
TOGETHER = PatientTraits(**dict.fromkeys(TRAITS, STRONGEST), seed=SEED)

# --- a doctor who keeps asking ---------------------------------------------------------------------------------------

CONFIDENTIAL = "Whatever you tell me is confidential. May we talk about it in private, just the two of us?"
_DENIES = re.compile(r"^(?:denies|no|not|never) ", re.IGNORECASE)
MOST_ATTEMPTS = 4
"""How often a question is put again before the next is tried: reluctant, played down, exact, and one more."""


@dataclass
class Interview:
    """A dialogue with the builtin patient of a case."""

    case: Case
    traits: PatientTraits
    exchanges: list[Exchange] = field(default_factory=list)
    told: set[str] = field(default_factory=set)

    @property
    def turns(self) -> int:
        return len(self.exchanges)

    def ask(self, question: str) -> tuple[Disclosure, ...]:
        parts = matched(payload_of(self.case, question, tuple(self.exchanges), of_patient=self.traits))
        disclosures = tuple(part.disclosure for part in parts)
        self.exchanges.append(Exchange("question", question, worded(parts), disclosures))
        self.told.update(path for part in disclosures for path in part.paths)
        return disclosures

    def insist(self, fact: Fact) -> bool:
        """Ask for a fact until it is told; False if no question brings it out."""
        for question in questions_about(fact):
            words = question
            for _ in range(MOST_ATTEMPTS):
                reply = self.ask(words)
                if fact.path in self.told:
                    return True
                if any(effect.reason.startswith("literacy") for part in reply for effect in part.withheld):
                    words = explained(question)
                elif not any(fact.path == e.path for part in reply for e in (*part.withheld, *part.vague)):
                    break  # it was not meant by this question
        return False


def explained(question: str) -> str:
    """A question with every term explained: "Any edema? By edema I mean swelling"."""
    known = {one.word.lower(): f"By {one.word} I mean {one.term.plain[0]}." for one in mentions(question)}
    return " ".join([question, *known.values()])


def questions_about(fact: Fact) -> Iterator[str]:
    """The author's questions, then the fact itself as a question, alone and under its heading."""
    yield from fact.asked
    yield f"{fact.text.rstrip('.')}?"
    if fact.denied:
        yield f"Do you have {_DENIES.sub('', fact.text.rstrip('.'))}?"
    heading = fact.heads[-1] if fact.heads else "story"
    yield f"Tell me about your {heading.lower()}: {fact.text.rstrip('.')}?"
    yield f"Tell me about your {heading.lower()}."
    yield from ["Is there anything else?"] * 3


def interviewed(case: Case, traits: PatientTraits) -> tuple[Interview, list[Fact]]:
    """The dialogue in which every fact is asked for, and the facts that never came out."""
    interview = Interview(case, traits)
    interview.ask(CONFIDENTIAL)
    missing = [fact for fact in case.patient_facts if fact.path not in interview.told and not interview.insist(fact)]
    return interview, missing


def named(traits: PatientTraits) -> str:
    return ", ".join(f"{trait} {level}" for trait, level in traits.levels.items()) or "no traits"


def obtained(cases: Sequence[Case], doses: Sequence[PatientTraits] = DOSES) -> Iterator[str]:
    """What a persistent interviewer does not get, or gets only in more than twice the turns of level 0, by case."""
    for case in cases:
        plain, never = interviewed(case, NO_TRAITS)
        known = {fact.path for fact in never}
        yield from (f"{case.dataset} {case.name}, no traits: never told: {fact.text}" for fact in never)
        for traits in doses:
            interview, missing = interviewed(case, traits)
            lost = [fact.text for fact in missing if fact.path not in known]
            if lost:
                yield f"{case.dataset} {case.name}, {named(traits)}: never told: {'; '.join(lost)}"
            if interview.turns > 2 * plain.turns:
                yield f"{case.dataset} {case.name}, {named(traits)}: {interview.turns} turns, {plain.turns} at level 0"


# --- what is said, against the chart ------------------------------------------------------------------------------

_SENTENCE = re.compile(r"(?<=[.!?])\s+")


def script(case: Case, others: Sequence[str], count: int) -> list[str]:
    """Questions for a case: its author's, those of other cases, and some with words of the trade."""
    rng = random.Random(f"{SEED}:{case.id}")
    own = [question for fact in case.patient_facts for question in fact.asked] or [
        question for fact in case.patient_facts for question in questions_about(fact)
    ]
    words = [f"Have you had any {term.names[0]}?" for term in terms()]
    wanted = ((own, count // 2), (others, count // 4), (words, count))
    asked = [question for pool, most in wanted for question in rng.sample(pool, min(most, len(pool)))][:count]
    rng.shuffle(asked)
    return asked


@dataclass
class Tally:
    """What a patient did in reply to a script."""

    replies: int = 0
    sentences: int = 0
    effects: Counter[str] = field(default_factory=Counter)
    false: list[str] = field(default_factory=list)

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.replies + other.replies,
            self.sentences + other.sentences,
            self.effects + other.effects,
            self.false + other.false,
        )


def told_truly(case: Case, traits: PatientTraits, questions: Sequence[str]) -> Tally:
    """Ask the questions in turn, and check what is said: that it is in the chart, and that no denial is new."""
    tally = Tally()
    asked: tuple[Exchange, ...] = ()
    for question in questions:
        parts = matched(payload_of(case, question, asked, of_patient=traits))
        reply = worded(parts)
        for problem in untrue(case, reply, parts):
            tally.false.append(f"{case.name}, {named(traits)}: {question!r}: {problem}")
        denied = _denied(parts) - _denied(matched(payload_of(case, question, asked)))
        tally.false += [
            f"{case.name}, {named(traits)}: {question!r}: denies {one}, which level 0 does not" for one in denied
        ]
        tally.replies += 1
        tally.sentences += len(_SENTENCE.split(reply))
        for part in parts:
            told = part.disclosure
            tally.effects.update({"withheld": len(told.withheld), "vague": len(told.vague), "added": len(told.added)})
        disclosures = tuple(part.disclosure for part in parts)
        asked = (*asked, Exchange("question", question, reply, disclosures))
    return tally


def _denied(parts: Sequence[Part]) -> set[str]:
    return {part.disclosure.topic for part in parts if part.disclosure.provenance is Provenance.DEFAULT_NEGATIVE}


def untrue(case: Case, reply: str, parts: Sequence[Part]) -> Iterator[str]:
    """Sentences of a reply that are neither a told fact's words, nor vague ones of the author's, nor a set phrase."""
    facts = {fact.path: fact for fact in case.patient_facts}
    paths = {path for part in parts for path in part.disclosure.paths}
    vague = {effect.path for part in parts for effect in part.disclosure.vague}
    for path in (paths | vague) - facts.keys():
        yield f"tells {path}, which is not a fact of the patient"
    allowed = [own_words(case, facts[path]) for path in paths & facts.keys()]
    allowed += [facts[path].vague or "" for path in vague & facts.keys()]
    manner = case.annotations.get("Manner")
    allowed += [str(line) for line in manner.values()] if isinstance(manner, dict) else []
    known = " ".join(_plain(text) for text in (*allowed, *SET_PHRASES))
    defaults = any(part.disclosure.provenance is Provenance.DEFAULT_NEGATIVE for part in parts)
    for sentence in _SENTENCE.split(reply):
        plain = _plain(sentence)
        by_name = plain.startswith("no ") and defaults  # "No fever or chills."
        asks_back = plain.startswith(("im not sure what you mean by", "you mean"))
        asks_back = asks_back or plain.endswith("maybe im not sure")
        if plain and plain not in known and not by_name and not asks_back:
            yield f"says {sentence!r}"


def _plain(text: str) -> str:
    words = re.sub(r"[^\w ]", "", text.lower())
    return re.sub(r"^no (?=\w+ )", "", words) if words.startswith("no i") else words


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, help="only the first of each data set")
    parser.add_argument("--questions", type=int, default=200, help="questions for each case and dose")
    parser.add_argument("--obtain", action="store_true", help="only whether every fact can be obtained")
    parser.add_argument("--truth", action="store_true", help="only whether what is said is true")
    given = parser.parse_args()
    failed = False
    others = [question for case in load_cases("OpenOSCE") for fact in case.patient_facts for question in fact.asked[:1]]
    totals: dict[PatientTraits, Tally] = {}
    for name in DATA_SETS:
        cases = load_cases(name)[: given.cases]
        if not given.truth:
            problems = list(obtained(cases))
            for problem in problems:
                print(problem)
            facts = sum(len(case.patient_facts) for case in cases)
            print(f"{name}: {len(cases)} cases, {facts:,} facts, {len(DOSES)} doses: {len(problems)} problems")
            failed = failed or any("no traits" not in problem for problem in problems)
        for case in cases if not given.obtain else ():
            questions = script(case, others, given.questions)
            for traits in (NO_TRAITS, *DOSES, TOGETHER):
                totals[traits] = totals.get(traits, Tally()) + told_truly(case, traits, questions)
    if totals:
        print("dose                     replies  sentences  withheld  vague  added  false")
    for traits, tally in totals.items():
        done = (f"{tally.effects[kind]:>6,}" for kind in ("withheld", "vague", "added"))
        label = "all four at 3" if traits == TOGETHER else named(traits)
        print(f"{label:<24} {tally.replies:>8,} {tally.sentences:>9,}   {'  '.join(done)} {len(tally.false):>5}")
        for problem in tally.false[:20]:
            print(f"  {problem}")
    return int(failed or any(tally.false for tally in totals.values()))


if __name__ == "__main__":
    sys.exit(main())
