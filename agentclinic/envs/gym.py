"""The clinic as a Gymnasium environment of text; importing this module registers it.

gymnasium.make("AgentClinic/OpenOSCE-v0", part="train", reward="frugal")
gymnasium.make("AgentClinic/Clinic-v0", dataset="Solvable:chest-pain,invented")
"""

from __future__ import annotations

import math
import string
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Unpack

from agentclinic.clinic.prompts import joined
from agentclinic.envs.episode import Episode, open_clinic, refuse_typos
from agentclinic.envs.needs import needs
from agentclinic.errors import AgentClinicError
from agentclinic.results.record import Status
from agentclinic.runs.options import RunOptions

needs("gymnasium", "gymnasium", "1.2")

import gymnasium  # noqa: E402 - after the line that says what to install
from gymnasium.error import CustomSpaceError  # noqa: E402
from gymnasium.spaces import Text  # noqa: E402
from gymnasium.vector.utils import create_shared_memory  # noqa: E402


class AnyText(Text):
    """Any text: length and characters are those of samples, since no list has all that people and models say."""

    def __init__(self) -> None:
        super().__init__(200, charset=string.ascii_letters + string.digits + " .,:?'-\n")

    def contains(self, x: Any) -> bool:
        return isinstance(x, str)


@create_shared_memory.register(AnyText)
def _(*_: object, **__: object) -> None:
    # Gymnasium 1.4 would return the texts that were there before the first reset, in every step.
    raise CustomSpaceError("text of any length does not fit into shared memory: pass shared_memory=False")


class GymClinic(gymnasium.Env[str, str]):
    """An episode is one encounter, an action what the doctor says, an observation what the doctor is then told.

    The settings are those of `ClinicEnv`. The diagnosis terminates an episode; running out of turns, or the failure of
    a patient, laboratory or judge at an endpoint, truncates it. Only then does `info` say anything: the parts of the
    reward, and the record. The rewards of the steps add up to the reward of the encounter.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012 - as Gymnasium declares it

    def __init__(
        self,
        dataset: str = "OpenOSCE",
        reward: str | Mapping[str, float] | None = None,
        *,
        config: str | Path | None = None,
        llm_config: str | Path | None = None,
        render_mode: str | None = None,
        **options: Unpack[RunOptions],
    ) -> None:
        self._clinic = open_clinic(dataset, reward, config=config, llm_config=llm_config, **options)
        self._episode: Episode | None = None
        self._paid = 0.0
        self._said: list[str] = []
        self.render_mode = render_mode
        self.observation_space, self.action_space = AnyText(), AnyText()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin an encounter with the case named in `options`, else with one that the seed decides."""
        super().reset(seed=seed)
        refuse_typos(options or (), "case")
        chosen = int(self.np_random.integers(2**31)) if seed is None else seed
        self._episode = Episode(self._clinic, self._clinic.unit(chosen, (options or {}).get("case")))
        self._paid, self._said = 0.0, [joined(self._episode.instructions, self._episode.told)]
        return self._said[0], {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Say something as the doctor, with the control tokens."""
        episode = self._episode
        if episode is None or episode.done:
            raise AgentClinicError("there is no encounter: call reset() first")
        episode.say(action)
        self._said += [f"Doctor: {action}", episode.told]
        before, parts = self._paid, episode.rewards()
        self._paid = math.fsum(parts.values())
        info: dict[str, Any] = {"rewards": parts, "record": episode.record()} if episode.done else {}
        terminated = episode.done and episode.record().status in (Status.DIAGNOSED, Status.NOT_READABLE)
        return episode.told, self._paid - before, terminated, episode.done and not terminated, info

    def render(self) -> str:
        """What was said so far."""
        return "\n\n".join(self._said).rstrip()


gymnasium.register("AgentClinic/OpenOSCE-v0", f"{__name__}:GymClinic", kwargs={"dataset": "OpenOSCE"})
gymnasium.register("AgentClinic/Clinic-v0", f"{__name__}:GymClinic")
