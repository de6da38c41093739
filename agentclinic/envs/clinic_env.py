"""The environment for libraries that give a model tools: one encounter at a time, without a new dependency."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from agentclinic.clinic.doctor import door_text
from agentclinic.clinic.prompts import joined
from agentclinic.envs.episode import Episode, open_clinic, refuse_typos
from agentclinic.errors import AgentClinicError
from agentclinic.results.record import Record
from agentclinic.results.utterance import DIAGNOSIS_READY, REQUEST_IMAGES, REQUEST_TEST, one_line
from agentclinic.worlds.menu import menu_text

if TYPE_CHECKING:
    from agentclinic.runs.options import RunOptions

_TASK = (
    "You are a doctor in a simulated consultation. Find out what is wrong with the patient by calling ask_patient and "
    "order_test, one call at a time. Then call diagnose with exactly one disease: the underlying one, not a "
    "complication. You have {turns} calls. If none of them is diagnose, you have made no diagnosis."
)
_LAST = "(One call is left. Only diagnose counts now.)"
_UNCLEAR = (
    "That was not understood. ask_patient takes a question, order_test the name of one test or examination, and "
    "diagnose the name of one disease."
)
_OVER = "The consultation is over."
_TOKENS = re.compile("|".join((DIAGNOSIS_READY, REQUEST_TEST, REQUEST_IMAGES)))


class ClinicEnv:
    """A clinic to train in: `reset` begins an encounter, the tools play it, and `get_reward` returns its reward.

    dataset   a data set, the path of a case file, or Solvable:WORLD
    reward    a name (right, lenient, frugal, careful; in worlds utility,
              regret) or the weights of its parts
    config, llm_config
              files like agentclinic.config.json and llm.config.json
    Options are those of `evaluate`: part="train" or "test" for one half of
    the data set, seed for the patients of a solvable world, patient_llm, ...

    With builtin roles, the same settings, seeds and calls give the same replies and rewards. Each tool does one thing,
    whatever words it is given: control tokens are removed, and what is not text or not understood uses up a call.
    """

    def __init__(
        self,
        dataset: str | Path = "OpenOSCE",
        reward: str | Mapping[str, float] | None = None,
        *,
        config: str | Path | None = None,
        llm_config: str | Path | None = None,
        **options: Unpack[RunOptions],
    ) -> None:
        self._clinic = open_clinic(dataset, reward, config=config, llm_config=llm_config, **options)
        self._chance = random.Random(self._clinic.plan.settings.run.seed)
        self._episode: Episode | None = None

    def reset(self, seed: int | None = None, case: str | int | None = None, **others: object) -> str:
        """Begin an encounter and return what the doctor knows at the door.

        `case` names a case by its id or row; otherwise the seed chooses one. Without either, it is drawn at random.
        Further arguments, such as other columns of a training set, are ignored.
        """
        refuse_typos(others, "seed", "case")
        chosen = self._chance.randrange(2**31) if seed is None else seed
        self._episode = Episode(self._clinic, self._clinic.unit(chosen, case))
        door = self._episode.case.door
        menu = menu_text(door.menu, tools=True) if door.menu else ""
        who = door_text(door) if not door.menu else joined(f"Patient: {door.demographics}", door.objective)
        return joined(_TASK.format(turns=self._episode.turns_left), who, menu)

    def ask_patient(self, question: str) -> str:
        """Ask the patient about one thing, in plain words.

        Args:
            question: What to ask.

        Returns:
            What the patient says.

        """
        return self._say(_words(question))

    def order_test(self, name: str) -> str:
        """Order one laboratory test, scan, vital sign or physical examination.

        Args:
            name: Its usual name.

        Returns:
            The result, or that it is not available.

        """
        return self._say(f"{REQUEST_TEST}: {_name(name)}")

    def diagnose(self, diagnosis: str, differential: dict[str, float] | None = None) -> str:
        """Commit to one disease, which ends the consultation.

        Args:
            diagnosis: The name of the one disease you diagnose, and nothing else.
            differential: Up to 20 diseases you consider possible, each with its probability from 0 to 1. Optional.

        Returns:
            That the consultation is over.

        """
        return self._say(f"{DIAGNOSIS_READY}: {_name(diagnosis)}", differential)

    def get_reward(self) -> float:
        """The reward of the encounter; one that is not over ends now, without a diagnosis.

        It is `nan` if a patient, a laboratory or a judge at an endpoint failed: that says nothing about the doctor.
        """
        episode = self._begun()
        episode.record()
        return math.fsum(episode.rewards().values())

    def _say(self, words: str, differential: Mapping[str, float] | None = None) -> str:
        episode = self._begun()
        if episode.done:
            return _OVER
        episode.say(words, differential)
        if episode.done:
            return _OVER
        heard = _UNCLEAR if _TOKENS.search(episode.heard) else episode.heard  # tools are not called by tokens
        return joined(heard, _LAST if episode.turns_left == 1 else "")

    def _begun(self) -> Episode:
        if self._episode is None:
            raise AgentClinicError("there is no encounter yet: call reset() first")
        return self._episode


def record_of(env: ClinicEnv) -> Record:
    """The record of the environment's encounter, as a run would write it; one that is not over ends now."""
    return env._begun().record()


def _words(given: object) -> str:
    """An argument without control tokens; a model may send anything."""
    return _TOKENS.sub(" ", given) if isinstance(given, str) else ""


def _name(given: object) -> str:
    return _words(one_line(given) if isinstance(given, str) else "")
