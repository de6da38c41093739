"""The patient and the laboratory of a solvable world, who give exact answers, and its judge, who compares names."""

from __future__ import annotations

from agentclinic.cases.solvable import Drawn, path_of
from agentclinic.clinic.doctor import History
from agentclinic.clinic.prompts import fill
from agentclinic.results.record import Verdict
from agentclinic.results.turn import NO_TOKENS, Disclosure, Exchange, Provenance, Turn
from agentclinic.results.utterance import DIAGNOSIS_READY, RESULTS
from agentclinic.worlds.menu import answer, named_ending, named_items
from agentclinic.worlds.model import DEFER

EXACT = "exact"
"""What records call the patient, the laboratory and the judge of a solvable world."""
NOT_ON_THE_LIST = (
    "That names nothing on the lists, so there is no answer. Name one thing from the lists, in the words used there."
)

A_DIAGNOSIS = "That is a diagnosis, not something to find out. If you mean it, write exactly this line:\n{form}"


class Desk:
    """The patient or the laboratory: tells the first item of the menu that the doctor names, and nothing else."""

    def __init__(self, drawn: Drawn) -> None:
        self.history = History()
        self._drawn = drawn

    async def answer(self, said: str, _asked: tuple[Exchange, ...] = (), *, turn: int = 0) -> Turn:
        """What the patient says."""
        reply = self._reply(said, turn, "patient")
        self.history.add("Doctor", said)
        self.history.add("Patient", reply.text)
        return reply

    async def report(self, request: str, said: str, *, turn: int = 0) -> Turn:
        """What the laboratory says."""
        reply = self._reply(request, turn, "measurement")
        self.history.add("Doctor", said)
        self.history.add("Measurement", reply.text)
        return reply

    def _reply(self, words: str, turn: int, role: str) -> Turn:
        world, before = self._drawn.world, f"{RESULTS} " if role == "measurement" else ""
        named = named_items(world, words)
        if not named:
            ending = named_ending(world, words)
            why = fill(A_DIAGNOSIS, form=f"{DIAGNOSIS_READY}: {ending}") if ending else NOT_ON_THE_LIST
            return Turn(turn=turn, role=role, text=f"{before}{why}", usage=NO_TOKENS)
        name = named[0]
        return Turn(
            turn=turn,
            role=role,
            text=f"{before}{answer(name, world.findings[name], self._drawn.findings[name])}",
            disclosures=(Disclosure(name, Provenance.CHART, (path_of(world, name),)),),
            usage=NO_TOKENS,
        )


def by_name(drawn: Drawn, truth: str, diagnosis: str) -> Verdict:
    """Judge a diagnosis by identity: right if it names the true disease and no other."""
    said = named_ending(drawn.world, diagnosis)
    reasons = {None: "it does not name exactly one disease of the menu", DEFER: "the doctor deferred"}
    right = said == truth
    reason = reasons.get(said, "the disease drawn" if right else "another disease of the menu")
    return Verdict(right, "same" if right else "different" if said and said != DEFER else None, reason, right, "code")
