"""Where requests may go: credentialed data only to this machine and to attested hosts.

`Gate.check` refuses an address in advance; `models.transport` calls `Gate.local_addresses` again for each connection
and connects only to those. Host names are never trusted, only the addresses they resolve to.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any
from urllib.parse import urlsplit

from agentclinic import privacy
from agentclinic.config import Attestation, Settings, host_name, is_unix
from agentclinic.errors import ConfigError
from agentclinic.privacy import DataClass

Resolve = Callable[[str], Sequence[str]]
"""All addresses of a host name; raises `OSError` if it has none."""


class NotAllowedError(OSError):
    """The gate refuses this address. It is an `OSError`, so that aiohttp treats it as a failure to connect."""


class GateClosedError(ConfigError):
    """Data of this class may not go to an address; ends the run, even if a user's doctor made the request."""


def system_addresses(host: str) -> list[str]:
    """Every address the system finds for a host name, including those in /etc/hosts."""
    # No AI_ADDRCONFIG: an address of a family this machine cannot reach now still shows where the name points.
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(info[4][0]) for info in found))


def is_loopback_address(address: str) -> bool:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.scope_id is not None:
            return False
        parsed = parsed.ipv4_mapped or parsed
    return parsed.is_loopback


# Not a name if its last label is a number: some programs read 0x7f.1 or 2130706433 as an address.
_NUMERIC = re.compile(r"(?:.*\.)?(?:\d+|0[xX][0-9a-fA-F]*)\.?")


@dataclass(frozen=True)
class Gate:
    data_class: DataClass = DataClass.PUBLIC
    attested: Mapping[str, Attestation] = field(default_factory=dict)
    """Hosts with a complete attestation in the config and `--allow-host` on the command line."""
    named: Mapping[str, Attestation] = field(default_factory=dict)
    """All hosts in the config, whether their attestation is complete or not."""
    resolve: Resolve = system_addresses

    @property
    def closed(self) -> bool:
        return self.data_class is DataClass.CREDENTIALED

    def attests(self, base_url: str) -> bool:
        return not is_unix(base_url) and any(name in self.attested for name in _names(base_url))

    def check(self, base_url: str, setting: str) -> None:
        """Refuse an address that is neither on this machine nor attested; `setting` is where it comes from."""
        if not self.closed or is_unix(base_url):
            return
        try:
            host, names = urlsplit(base_url).hostname or "", _names(base_url)
        except ValueError:
            raise ConfigError(f"{setting}: not an address; write e.g. http://127.0.0.1:8000/v1") from None
        if self.attests(base_url):
            if base_url.lower().startswith("http:") and self.refusal(host):
                warnings.warn(f"{host}: credentialed data is sent there unencrypted; use https", stacklevel=2)
            return
        reason = self.refusal(host)
        if reason is not None:
            raise GateClosedError(
                f"{setting}: credentialed data may not go to {names[0]} ({reason}). "
                f"Use a server on this machine (127.0.0.1, ::1, localhost or unix:///SOCKET), "
                f"or {self._advice(base_url)} (docs/privacy.md)"
            )

    def refuse_storing(self, base_url: str, setting: str) -> None:
        """Refuse to store credentialed data in files on another machine: its attestation says that nothing is kept."""
        if self.closed and not is_unix(base_url) and self.refusal(urlsplit(base_url).hostname or ""):
            raise GateClosedError(
                f"{setting}.base_url: credentialed data may not be stored at {_names(base_url)[0]}, and a batch is a "
                "stored file; leave out --batch"
            )

    def refusal(self, host: str) -> str | None:
        """Why a host (a name or an address) is not this machine; None if it is."""
        found = self.local_addresses(host)
        return found if isinstance(found, str) else None

    def local_addresses(self, host: str) -> list[str] | str:
        """The addresses of a host if all of them are loopback; otherwise the reason why it is refused."""
        if not host:
            return "no host"
        if not host.isascii():
            return "write the host in plain ASCII"
        if ":" in host or _NUMERIC.fullmatch(host):
            try:
                ipaddress.ip_address(host)
            except ValueError:
                return "not an address in canonical form; write e.g. 127.0.0.1"
            return [host] if is_loopback_address(host) else "not a loopback address"
        try:
            found = list(self.resolve(host))
        except (OSError, UnicodeError):
            found = []
        if not found:
            return "the name cannot be resolved"
        elsewhere = [address for address in found if not is_loopback_address(address)]
        if elsewhere:
            return f"the name resolves to {elsewhere[0]}, which is not loopback"
        return found

    def _advice(self, base_url: str) -> str:
        names = _names(base_url)
        for name in names:
            if name in self.named:
                lacks = lacking(self.named[name])
                first = f"complete privacy.hosts.{name} ({'; '.join(lacks)}) and allow it" if lacks else "allow it"
                return f"{first} with --allow-host {name}"
        return (
            f"add it to privacy.hosts in agentclinic.config.json with {', '.join(Attestation.model_fields)}, "
            f"and allow it with --allow-host {names[-1]}"
        )


OPEN = Gate()


def gate_for(settings: Settings, data_class: DataClass, *, resolve: Resolve = system_addresses) -> Gate:
    """The gate for data of a class; refuses an `--allow-host` without a complete attestation in the config."""
    privacy.raise_data_class(data_class)
    try:
        allowed = [host_name(given) for given in settings.allow_hosts]
    except ValueError as error:  # not repeated: it may be an address with a password
        raise ConfigError(f"--allow-host: {error}") from None
    if data_class is not DataClass.CREDENTIALED:
        return Gate(data_class, resolve=resolve)
    if settings.llm.responses.get("store"):
        raise ConfigError("llm.responses.store: credentialed data may not be stored at an endpoint; remove this key")
    named = settings.privacy.hosts
    attested = {}
    for name in allowed:
        if name not in named:
            raise ConfigError(
                f"--allow-host {name}: not in privacy.hosts of agentclinic.config.json; add it there with "
                f"{', '.join(Attestation.model_fields)} (docs/privacy.md)"
            )
        lacks = lacking(named[name])
        if lacks:
            raise ConfigError(f"--allow-host {name}: privacy.hosts.{name}: {'; '.join(lacks)}")
        attested[name] = named[name]
    return Gate(data_class, attested, named, resolve)


def lacking(attestation: Attestation, today: date | None = None) -> list[str]:
    """What an attestation lacks, key by key."""
    wanted = ("zero_retention", "no_training", "no_human_review")
    lacks = [f"{key} must be true" for key in wanted if getattr(attestation, key) is not True]
    if not (attestation.attested_by or "").strip():
        lacks.append("attested_by must name the person responsible")
    if attestation.attested_on is None:
        lacks.append("attested_on must be its date, as YYYY-MM-DD")
    elif attestation.attested_on > (today or date.today()):
        lacks.append("attested_on is in the future")
    return lacks


def in_force(gate: Gate) -> list[dict[str, Any]]:
    """The attestations that open this gate, as written to the run folder."""
    return [{"host": name, **attestation.model_dump(mode="json")} for name, attestation in gate.attested.items()]


def _names(base_url: str) -> list[str]:
    """How the host of an address may be named: with its port, and also without if that is the default port."""
    parts = urlsplit(base_url)
    host = (parts.hostname or "").rstrip(".")
    shown = f"[{host}]" if ":" in host else host
    usual = 443 if parts.scheme == "https" else 80
    port = parts.port or usual
    return [f"{shown}:{port}", shown] if port == usual else [f"{shown}:{port}"]
