"""Matching of model names with patterns, and what names have at their end.

    claude-opus-4-5[1m]               Claude Code's mark for a long context; providers do not know it
    claude-opus-4-5-20251101          a date

Names are compared without regard to case.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection
from functools import lru_cache
from typing import Final

_MARK: Final = re.compile(r"\[[0-9]{1,4}[km]\]$", re.IGNORECASE)
_DATE: Final = re.compile(r"[-@](?:20[0-9]{6}|20[0-9]{2}-[0-9]{2}-[0-9]{2})$")


def strip_context_mark(name: str) -> str:
    """A name without the mark of a context length."""
    return _MARK.sub("", name)


def spellings(name: str) -> tuple[str, ...]:
    """A name as it is, without its mark, and without its mark and its date, each once."""
    plain = strip_context_mark(name)
    return tuple(dict.fromkeys((name, plain, _DATE.sub("", plain))))


def matches(name: str, patterns: Collection[str]) -> bool:
    """Whether a name, which is bounded in length, fits one of the patterns."""
    return any(_compile_pattern(pattern.lower()).match(name.lower()) for pattern in patterns)


@lru_cache(maxsize=4096)
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(pattern))
