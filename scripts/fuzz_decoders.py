"""What is fuzzed, and what counts as a finding: any error but an `InputError`, or a decoder that is slow.

A finding is identified by its type and line, made as small as time allows, written to a file and shown once.
"""

from __future__ import annotations

import importlib
import json
import time
import traceback
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import msgspec

import fuzz_documents
import toolglot
from toolglot import InputError, arguments, jsontext, profiles

PACKAGE: Final = Path(toolglot.__file__).resolve().parent

SLOW_SECONDS: Final = 5.0
SHRINKING_SECONDS: Final = 5.0
MAX_FINDINGS: Final = 20
"""Findings of one decoder that are written to files; one mistake usually has many."""

COUNTED_EVERY: Final = 500
"""The counts are written to a file after this many inputs."""

Run = Callable[[bytes], None]
Mutation = Callable[[bytes, int], bytes | None]


class SlowInputError(Exception):
    """A decoder that took too long over a small input."""


@dataclass(frozen=True)
class Decoder:
    """What is fuzzed: `run` raises an `InputError`, which is right, or anything else, which is a finding."""

    run: Run
    seeds: list[bytes]
    words: list[str]
    lines: bool = False
    """Whether the input is text of lines and not JSON."""

    def mutation(self) -> Mutation:
        mutator = fuzz_documents.Mutator(self.seeds, self.words)
        return mutator.mutate_lines if self.lines else mutator.mutate


# --- the decoders -----------------------------------------------------------------------------------


def decoder(name: str, protocols: tuple[str, ...]) -> Decoder:
    """The decoder of that name; what it reads is written in all `protocols` by turns."""
    if name == "load":
        words = fuzz_documents.words_of(PACKAGE / "conversation")
        return Decoder(_load, fuzz_documents.canonical_seeds(), words)
    if name == "arguments":
        return Decoder(_arguments, fuzz_documents.ARGUMENT_SEEDS, fuzz_documents.words_of(PACKAGE / "arguments"))
    if name == "overrides":
        return Decoder(
            _overrides, fuzz_documents.OVERRIDE_SEEDS, fuzz_documents.words_of(PACKAGE / "profiles"), lines=True
        )
    protocol, kind = name.split(".")
    seeds = {"request": fuzz_documents.request_seeds, "reply": fuzz_documents.reply_seeds}[kind]
    words = fuzz_documents.words_of(PACKAGE / "protocols" / protocol)
    return Decoder(_wire(protocol, kind, protocols), seeds(protocol, _codec(protocol, kind).encode), words)


def _codec(protocol: str, kind: str) -> ModuleType:
    return importlib.import_module(f"toolglot.protocols.{protocol}.{kind}")


def _wire(protocol: str, kind: str, protocols: tuple[str, ...]) -> Run:
    """Reads a body, and writes what was read in its own protocol and, by turns, in each other one."""
    own = _codec(protocol, kind)
    others = [_codec(other, kind) for other in protocols]

    def run(data: bytes) -> None:
        body = _body(data)
        if body is None:
            return
        read = own.decode(body)
        msgspec.json.encode(own.encode(read))
        msgspec.json.encode(others[zlib.crc32(data) % len(others)].encode(read))

    return run


def _body(data: bytes) -> dict[str, Any] | None:
    """A JSON object, within the limits that hold for every document; None if it is none."""
    try:
        jsontext.parse(data)
        body = msgspec.json.decode(data)
    except (InputError, msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    return body if type(body) is dict else None


def _load(data: bytes) -> None:
    toolglot.dump(toolglot.load(data))


def _arguments(data: bytes) -> None:
    """The input as arguments; of a document with `text` and `schema`, the text under that schema."""
    body = _body(data)
    if body is not None and type(body.get("text")) is str:
        schema = body.get("schema")
        arguments.parse(body["text"], schema=schema if type(schema) in (dict, bool) else None, xml=True)
        return
    try:
        arguments.parse(data)
    except InputError:
        arguments.parse(data, xml=True)


def _overrides(data: bytes) -> None:
    overrides = profiles.Overrides(data)
    for name in overrides.names:
        profiles.get(name, "tuned-7b", overrides=overrides)


# --- findings ---------------------------------------------------------------------------------------


def finding(run: Run, data: bytes) -> BaseException | None:
    """The error of a decoder that is a finding; None: there is none."""
    start = time.process_time()
    try:
        run(data)
    except InputError:
        pass
    except Exception as error:  # noqa: BLE001 - anything else is what is looked for
        return error
    took = time.process_time() - start
    return SlowInputError(f"{took:.1f} s for {len(data)} bytes") if took > SLOW_SECONDS else None


def mark(error: BaseException) -> str:
    """What makes two findings the same: the kind of error, and the last line of toolglot that it went through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if str(PACKAGE) in frame.filename]
    where = f"{Path(frames[-1].filename).relative_to(PACKAGE)}:{frames[-1].lineno}" if frames else "?"
    return f"{type(error).__name__} at {where}"


def shrink(run: Run, data: bytes, wanted: str) -> bytes:
    """The smallest input near `data` that still gives the same finding."""
    deadline = time.monotonic() + SHRINKING_SECONDS
    smaller = True
    while smaller:
        smaller = False
        for attempt in _smaller(data):
            if time.monotonic() > deadline:
                return data
            error = finding(run, attempt)
            if error is not None and mark(error) == wanted:
                data, smaller = attempt, True
                break
    return data


def _smaller(data: bytes) -> list[bytes]:
    """The input with one part less: a value of a document, or a stretch of bytes."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        sizes = [len(data) >> shift for shift in range(1, 8) if len(data) >> shift]
        return [data[:at] + data[at + size :] for size in sizes for at in range(0, len(data), size)]
    attempts = []
    for number in range(sum(1 for _ in fuzz_documents.slots(document))):
        copied = json.loads(data)
        holder, key = list(fuzz_documents.slots(copied))[number]
        del holder[key]
        attempts.append(json.dumps(copied).encode())
    return [attempt for attempt in attempts if len(attempt) < len(data)]


@dataclass
class Hunt:
    """One decoder being fuzzed: counts inputs, and writes each new finding to a file once."""

    name: str
    decoder: Decoder
    folder: Path
    counts: Path | None = None
    tried: int = 0
    bytes_tried: int = 0
    marks: set[str] = field(default_factory=set)

    def write_counts(self) -> None:
        """How many inputs, and how many bytes they were."""
        if self.counts is not None:
            self.counts.write_text(json.dumps([self.tried, self.bytes_tried]))

    def try_one(self, data: bytes) -> None:
        self.tried += 1
        self.bytes_tried += len(data)
        if self.tried % COUNTED_EVERY == 0:
            self.write_counts()
        error = finding(self.decoder.run, data)
        if error is None or mark(error) in self.marks or len(self.marks) >= MAX_FINDINGS:
            return
        self.marks.add(mark(error))
        small = shrink(self.decoder.run, data, mark(error))
        path = self.folder / f"{self.name}-{zlib.crc32(mark(error).encode()):08x}"
        path.write_bytes(small)
        text = "".join(traceback.format_exception_only(error)).strip()[:300]
        print(f"FOUND {self.name}: {mark(error)}\n  {text}\n  input {small[:400]!r}\n  in {path}", flush=True)
