"""Remove our own secrets from what a server sends back, however it writes them.

Known spellings: any case, escapes of JSON, URLs and HTML in up to four layers, Base64, hexadecimal, and anything between
its characters but letters and digits.
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
"""Letters that no text has by chance. A shorter secret without a digit may be a word, such as `not-needed`: then only
its exact spelling is removed, and its escapes."""
LAYERS = 4
"""How many escapes may be wrapped in one another: JSON in JSON in a URL in a web page."""
MARK = b"[key]"

_LOWER = bytes.maketrans(ascii_uppercase.encode(), ascii_lowercase.encode())
_SEPARATORS = bytes(set(range(256)) - set((ascii_letters + digits).encode()))
# Each begins with one character, which is found a hundred times faster than one of three.
_ESCAPES = (
    re.compile(rb"\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2})"),
    re.compile(rb"%[0-9a-fA-F]{2}"),
    re.compile(rb"&(?:#[0-9]{1,9}|#[xX][0-9a-fA-F]{1,9}|[A-Za-z]\w{1,30}(?=;));?"),
)


class Echoes:
    """The secrets sent to one server, and all their spellings."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._exact: set[bytes] = set()
        self._folded: set[bytes] = set()
        """Spellings in small letters and digits alone."""
        for secret in (text.encode() for text in secrets if len(text) >= SHORTEST):
            spellings = {_joined(secret), _joined(_unescaped(secret))}
            folded = _folded(secret)
            if len(folded) >= (8 if re.search(rb"\d", folded) else DISTINCTIVE):
                self._folded |= {_folded(spelling) for spelling in spellings}
            else:
                self._exact |= spellings
            self._folded |= {_folded(code) for code in _codes(secret) if len(_folded(code)) >= 8}

    def remove(self, content: bytes) -> bytes:
        """The content with `[key]` for each secret; JSON stays JSON, unless a secret is spread over its parts."""
        if not self._folded or not self._in(content):
            return content
        content = self._cut(content, _unescaped(content))
        content = self._cut(content, content)
        return MARK if self._in(content) else content

    def _in(self, content: bytes) -> bool:
        plain = _unescaped(content)
        return self._seen(content) or (plain != content and self._seen(plain))

    def _seen(self, content: bytes) -> bool:
        folded = _folded(content)
        # The end first: to look for a hundred characters takes ten times as long as for twelve.
        if any(spelling[-12:] in folded and spelling in folded for spelling in self._folded):
            return True
        return bool(self._exact) and any(spelling in _joined(content) for spelling in self._exact)

    def _cut(self, content: bytes, view: bytes) -> bytes:
        """The content without what is a secret in a view of the same length."""
        pieces, end = [], 0
        for found in self._pattern.finditer(view):
            pieces += [content[end : found.start()], MARK]
            end = found.end()
        return b"".join((*pieces, content[end:]))

    @cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        exact = (rb"[\0\\]*+".join(re.escape(bytes((char,))) for char in spelling) for spelling in self._exact)
        folded = (b"(?i:%b)" % b"[^a-z0-9]*+".join(bytes((char,)) for char in spelling) for spelling in self._folded)
        # What stands for the first character may begin earlier: half an escape would make JSON unreadable.
        return re.compile(rb"[\0\\]*+(?:%b)" % b"|".join((*exact, *folded)))


def _folded(content: bytes) -> bytes:
    return content.translate(_LOWER, _SEPARATORS)


def _joined(content: bytes) -> bytes:
    return content.translate(None, b"\0\\")


def _codes(secret: bytes) -> Iterator[bytes]:
    """The secret in hexadecimal, and in Base64 wherever it begins: the characters that depend on nothing else."""
    yield secret.hex().encode()
    for before in range(3):
        code = b64encode(bytes(before) + secret)
        yield code[-(-before * 8 // 6) : (before + len(secret)) * 8 // 6]


def _unescaped(content: bytes) -> bytes:
    """The content with its escapes replaced by what they stand for, in the same places: after as many zeros."""
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
