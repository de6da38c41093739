"""Images in the form an endpoint accepts: an address it can fetch, or the file as a data URL."""

from __future__ import annotations

import base64
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from agentclinic.errors import InputError
from agentclinic.files import expanded

LARGEST = 20 * 2**20
"""Bytes. OpenAI's limit was 20 MB per request when this was chosen; a clinical photograph has 0.1 to 5 MB."""


def image_url(address: str) -> str:
    """The address to send for an image: URLs unchanged, a local file as a data URL."""
    if address.lower().startswith(("http://", "https://", "data:")):
        return address
    try:
        path = Path(unquote(urlsplit(address).path)) if address.startswith("file://") else expanded(address)
        stat = path.stat()
    except (OSError, ValueError) as error:  # a ValueError: no file can have this name
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{address}: image cannot be read ({reason}); check the image path in the case") from None
    if not path.is_file():
        raise InputError(f"{path}: not an image file")
    if stat.st_size > LARGEST:
        size = stat.st_size / 2**20
        raise InputError(f"{path}: image has {size:.0f} MB, the limit is {LARGEST // 2**20} MB; make it smaller")
    return _data_url(path, stat.st_mtime_ns, stat.st_size)


# An image is sent again with every later turn; 32 is enough for many encounters at once.
@lru_cache(maxsize=32)
def _data_url(path: Path, changed: int, size: int) -> str:  # noqa: ARG001 - part of the cache's key
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: image cannot be read ({error.strerror})") from None
    kind = _kind(content)
    if kind is None:
        raise InputError(f"{path}: not a PNG, JPEG, GIF or WebP image; convert it to one of these")
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"


def _kind(content: bytes) -> str | None:
    """The type by the first bytes: file names can be wrong."""
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "png"
    if content.startswith(b"\xff\xd8\xff"):
        return "jpeg"
    if content.startswith((b"GIF87a", b"GIF89a")):
        return "gif"
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return "webp"
    return None
