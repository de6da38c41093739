"""Regular expressions that are compiled when they are first used: a run has a thousand, and begins with few of them."""

from __future__ import annotations

import re
from typing import Any, cast

_ATTRIBUTES = ("search", "match", "fullmatch", "findall", "finditer", "split", "sub", "subn", "flags", "groups")


class _Compiled:
    """Has the methods of a pattern as attributes of its own, which are found fast."""


class _Pattern(_Compiled):
    """Stands for a compiled pattern. When one of its methods is first looked for, it takes them all over."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._given = flags

    def __getattr__(self, name: str) -> Any:
        if name not in _ATTRIBUTES:
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self._given)
        for one in _ATTRIBUTES:
            setattr(self, one, getattr(compiled, one))
        # A class with `__getattr__` takes twice as long to find any attribute.
        self.__class__ = cast("type[_Pattern]", _Compiled)
        return getattr(compiled, name)


def regex(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Like `re.compile`, for patterns at the top of a module that every run imports.

    What it returns has the methods of a pattern but cannot be given to functions of `re`.
    """
    return cast("re.Pattern[str]", _Pattern(pattern, flags))
