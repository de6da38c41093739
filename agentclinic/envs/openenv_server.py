"""The clinic as an environment of OpenEnv: a server with many sessions, for the clients of that library."""

from __future__ import annotations

import math
import random
import uuid
from functools import partial
from typing import Any

from starlette.types import ASGIApp

from agentclinic import sync_bridge
from agentclinic.clinic.prompts import joined
from agentclinic.envs.episode import Clinic, Episode, refuse_typos
from agentclinic.envs.needs import needs
from agentclinic.errors import AgentClinicError
from agentclinic.version import __version__
from agentclinic.viewer.server import LOOPBACK, Guard, explained, is_loopback

needs("openenv", "openenv", "0.10")

from fastapi import FastAPI  # noqa: E402 - OpenEnv brings it
from openenv.core.env_server import http_server, interfaces, types  # noqa: E402


class DoctorAction(types.Action):
    """What the doctor says."""

    utterance: str
    """A question, or one line with `REQUEST TEST: ...` or `DIAGNOSIS READY: ...`."""


class ClinicObservation(types.Observation):
    """What the doctor hears; at the end, `metadata` has the `record` of the encounter and the parts of the `rewards`.

    The reward of an encounter is the sum of those of its steps. The last one is null if a patient, a laboratory or a
    judge at an endpoint failed: that says nothing about the doctor.
    """

    text: str
    """After a reset, the instructions and what is known at the door; empty at the end."""


class ClinicState(types.State):
    """How far the encounter is; nothing about the case."""

    turns_left: int = 0
    done: bool = True


class ClinicEnvironment(interfaces.Environment):
    """One session. It holds at most one encounter, and drops it when it ends."""

    SUPPORTS_CONCURRENT_SESSIONS = True
    REQUIRES_SINGLE_THREAD_EXECUTOR = True  # or the library keeps a thread for each session

    def __init__(self, clinic: Clinic) -> None:
        super().__init__()
        self._clinic = clinic
        self._episode: Episode | None = None
        self._paid = 0.0
        self._state = ClinicState()

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, case: str | int | None = None, **others: Any
    ) -> ClinicObservation:
        """Begin an encounter with the case named by its id or row, or else with one that the seed chooses."""
        refuse_typos(others, "seed", "case", "episode_id")
        # The library checks these only over HTTP.
        asked = types.ResetRequest(seed=seed, episode_id=episode_id)
        chosen = random.randrange(2**31) if asked.seed is None else asked.seed
        self._episode = Episode(self._clinic, self._clinic.unit(chosen, case))
        self._paid = 0.0
        name = asked.episode_id or str(uuid.uuid4())
        self._state = ClinicState(episode_id=name, turns_left=self._episode.turns_left, done=False)
        return ClinicObservation(text=joined(self._episode.instructions, self._episode.told))

    def step(self, action: DoctorAction, **_: Any) -> ClinicObservation:
        """Say something as the doctor, and hear the answer."""
        episode = self._episode
        if episode is None:
            raise AgentClinicError("there is no encounter, or it is over: call reset() first")
        episode.say(action.utterance)
        parts, before = episode.rewards(), self._paid
        self._paid = math.fsum(parts.values())
        reward = None if math.isnan(self._paid) else self._paid - before
        heard = ClinicObservation(text=episode.told, reward=reward, done=episode.done)
        if episode.done:
            rewards = {} if reward is None else parts
            heard.metadata = {"record": episode.record().model_dump(mode="json"), "rewards": rewards}
            self.close()
        self._state.step_count += 1
        self._state.turns_left, self._state.done = episode.turns_left, episode.done
        return heard

    async def reset_async(self, **options: Any) -> ClinicObservation:
        return await self._answer(partial(self.reset, **options))

    async def step_async(self, action: DoctorAction, **options: Any) -> ClinicObservation:
        return await self._answer(partial(self.step, action, **options))

    async def _answer(self, function: partial[ClinicObservation]) -> ClinicObservation:
        """In a thread if it waits for an endpoint; else here, since threads would only take turns."""
        return await sync_bridge.in_thread(function) if self._clinic.waits else function()

    @property
    def state(self) -> ClinicState:
        return self._state

    def get_metadata(self) -> types.EnvironmentMetadata:
        about = "Simulated patients for language-model doctors"
        return types.EnvironmentMetadata(name="agentclinic", description=about, version=__version__)

    def close(self) -> None:
        """Let go of the encounter."""
        self._episode = None


def openenv_app(clinic: Clinic, max_sessions: int, *, host: str = LOOPBACK, password: str | None = None) -> ASGIApp:
    """The application: OpenEnv's protocol behind the viewer's checks; sessions beyond `max_sessions` are refused."""
    # Without OpenEnv's own pages and FastAPI's: they load scripts from elsewhere, which the checks do not allow.
    app = FastAPI(title="AgentClinic", version=__version__, docs_url=None, redoc_url=None)
    app.add_exception_handler(AgentClinicError, explained)
    http_server.HTTPEnvServer(
        partial(ClinicEnvironment, clinic),
        DoctorAction,
        ClinicObservation,
        max_sessions,
        env_name="agentclinic",
        state_cls=ClinicState,
    ).register_routes(app, types.ServerMode.SIMULATION)
    return Guard(app, shared=not is_loopback(host), password=password, programs=True)
