"""How a model samples, by the names that a protocol has for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from toolglot.conversation import Sampling
from toolglot.protocols.fields.reading import Fields, optional, optional_number, optional_texts


def _whole(fields: Fields, key: str) -> int | None:
    return optional(fields, key, int)


_READERS: Final[dict[str, Callable[[Fields, str], Any]]] = {
    "max_tokens": _whole,
    "temperature": optional_number,
    "top_p": optional_number,
    "top_k": _whole,
    "stop": optional_texts,
    "seed": _whole,
    "presence_penalty": optional_number,
    "frequency_penalty": optional_number,
}


def read_sampling(fields: Fields, names: Mapping[str, str]) -> Sampling:
    """The settings; `names` says what each is called here."""
    return Sampling(
        **{setting: _READERS[setting](fields, name) for setting, name in names.items() if fields.get(name) is not None}
    )


def write_sampling(sampling: Sampling, names: Mapping[str, str]) -> Fields:
    """The settings that are set and that the protocol has."""
    fields: Fields = {}
    for setting, name in names.items():
        value = getattr(sampling, setting)
        if value is not None and value != ():
            fields[name] = list(value) if setting == "stop" else value
    return fields
