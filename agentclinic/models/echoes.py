"""Remove our own secrets from what a server sends back, in many spellings.

These are: any case, escapes of JSON, URLs and HTML (also of one another), Base64, hexadecimal, and anything but letters
and digits between the characters.
"""

from __future__ import annotations

import html
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits

SHORTEST = 6
"""A key such as "x" or "none" for a local server is not a secret, and removing it would garble messages."""
DISTINCTIVE = 20
"""Letters: a shorter secret without digits may be ordinary words, so it is not looked for in other case or spacing."""
LAYERS = 4
"""How deep escapes may be nested: JSON in JSON in a URL in a web page."""
MARK = b"[key]"

_LOWER = bytes.maketrans(ascii_uppercase.encode(), ascii_lowercase.encode())
_SEPARATORS = bytes(set(range(256)) - set((ascii_letters + digits).encode()))
# One pattern for each first character: a single pattern for all three takes a hundred times as long.
_ESCAPES = (
    re.compile(rb"\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2})"),
    re.compile(rb"%[0-9a-fA-F]{2}"),
    re.compile(rb"&(?:#[0-9]{1,9}|#[xX][0-9a-fA-F]{1,9}|[A-Za-z]\w{1,30}(?=;));?"),
)


class Echoes:
    """The secrets sent to one server, in all their spellings."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._exact: set[bytes] = set()
        self._folded: set[bytes] = set()
        for secret in (text.encode() for text in secrets if len(text) >= SHORTEST):
            spellings = {_joined(secret), _joined(_unescaped(secret))}
            folded = set(map(_folded, spellings))
            shortest = 8 if re.search(rb"\d", secret) else DISTINCTIVE
            if min(map(len, folded)) >= shortest:
                self._folded |= folded
            else:
                self._exact |= spellings
            self._folded |= {code for code in map(_folded, _codes(secret)) if len(code) >= 8}

    def remove(self, content: bytes) -> bytes:
        """The content with `[key]` for each secret; JSON stays valid unless a secret spans several parts."""
        if not self._holds(content):
            return content
        content = self._cut(content, _unescaped(content))
        content = self._cut(content, content)
        return MARK if self._holds(content) else content

    def _holds(self, content: bytes) -> bool:
        views = {content, _unescaped(content)} if self._folded else ()
        # The end first: searching for a hundred characters takes ten times as long as for twelve.
        return any(
            any(one[-12:] in folded and one in folded for one in self._folded)
            or any(one in _joined(view) for one in self._exact)
            for view in views
            for folded in (_folded(view),)
        )

    def _cut(self, content: bytes, view: bytes) -> bytes:
        """The content without what is a secret in a view of the same length."""
        pieces, end = [], 0
        for found in self._pattern.finditer(view):
            pieces += [content[end : found.start()], MARK]
            end = found.end()
        return b"".join((*pieces, content[end:]))

    @cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        exact = (rb"[\0\\]*+".join(re.escape(bytes((char,))) for char in one) for one in self._exact)
        folded = (b"(?i:%b)" % b"[^a-z0-9]*+".join(bytes((char,)) for char in one) for one in self._folded)
        # An escape of the first character begins before it: half an escape would make JSON unreadable.
        return re.compile(rb"[\0\\]*+(?:%b)" % b"|".join((*exact, *folded)))


def _folded(content: bytes) -> bytes:
    return content.translate(_LOWER, _SEPARATORS)


def _joined(content: bytes) -> bytes:
    return content.translate(None, b"\0\\")


def _codes(secret: bytes) -> Iterator[bytes]:
    """The secret in hexadecimal, and in Base64 after 0 to 2 other bytes, without the digits that depend on those."""
    yield secret.hex().encode()
    for before in range(3):
        yield b64encode(bytes(before) + secret)[-(-before * 8 // 6) : (before + len(secret)) * 8 // 6]


def _unescaped(content: bytes) -> bytes:
    """The content with each escape replaced by zeros and what it stands for, so that the length is the same."""
    for _ in range(LAYERS):
        before = content
        for char in b"bfnrt" if b"\\" in content else b"":
            content = content.replace(b"\\%c" % char, b"\0\0")
        for escape in _ESCAPES:
            content = escape.sub(lambda found: _character(found[0]), content)
        if content == before:
            break
    return content


@lru_cache(maxsize=4096)
def _character(escape: bytes) -> bytes:
    char = html.unescape(escape.decode()) if escape.startswith(b"&") else chr(int(escape.lstrip(b"\\%ux"), 16))
    return (char.encode() if len(char) == 1 and char.isascii() else b"\0").rjust(len(escape), b"\0")
