"""Requests of the input, one by one, through `toolglot.convert`: what convert, repair and switch-report share.

Law: a request that cannot be converted is an outcome with its error and never ends the run, unless it is the only one.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct

from toolglot import ConvertedRequest, Policy, convert, profiles
from toolglot.cli import targets
from toolglot.cli.files.documents import Record, compact, open_document
from toolglot.cli.files.output import Write
from toolglot.cli.screen.terminal import Terminal
from toolglot.cli.targets import Target
from toolglot.conversation.report import Entry
from toolglot.errors import InputError, RefusedError, quote
from toolglot.masking import mask
from toolglot.profiles import Overrides
from toolglot.protocols.base import get
from toolglot.protocols.request_detection import examine
from toolglot.translate.requests import is_foreign_model

FAULTS: Final = {
    "canonical": "the conversation was broken",
    "renderer": "the target writes it otherwise",
    "projection": "the target takes other ids and names",
    "policy": "a policy decided",
    "loss": "the target has no place for it",
}
"""What a fault class means."""


class ConversionOutcome(Struct, frozen=True, kw_only=True):
    """What became of one request."""

    record: Record
    source: str = ""
    target: str = ""
    before: dict[str, Any] | None = None
    out: ConvertedRequest | None = None
    error: InputError | None = None

    @property
    def is_changed(self) -> bool:
        return self.out is not None and self.out.body != self.before

    @property
    def data(self) -> bytes:
        """What is written: the bytes that came, where nothing was changed."""
        assert self.out is not None  # noqa: S101 - asked of outcomes without an error only
        if self.is_changed:
            return self.record.written(self.out.body)
        return self.line if self.record.is_line else self.record.data

    @property
    def repaired(self) -> bytes:
        """What takes the place of the record in its file: all that was not changed stays as it was, to the byte."""
        assert self.out is not None  # noqa: S101 - asked of outcomes without an error only
        assert self.before is not None  # noqa: S101
        data = self.record.rewritten(self.before, self.out.body) if self.is_changed else self.record.data
        return self.record.blank + data

    @property
    def line(self) -> bytes:
        """The same as a line of JSONL."""
        assert self.out is not None  # noqa: S101 - asked of outcomes without an error only
        if self.is_changed or not self.record.is_compact:
            return compact(self.out.body)
        return self.record.data.removeprefix(b"\xef\xbb\xbf").strip() + b"\n"

    @property
    def entries(self) -> tuple[Entry, ...]:
        return self.out.report.entries if self.out is not None else ()

    def as_json(self) -> dict[str, Any]:
        """Its report, for programs."""
        about: dict[str, Any] = {
            "file": self.record.file,
            "line": self.record.line if self.record.is_line else None,
            "source": self.source,
            "target": self.target,
        }
        if self.error is not None:
            said = {"message": self.error.message, "path": self.error.path, "hint": self.error.hint}
            return {**about, "error": {name: mask(text) for name, text in said.items()}}
        assert self.out is not None  # noqa: S101 - an outcome has the one or the other
        return {**about, "model": self.out.model, **msgspec.json.decode(self.out.report.to_json())}


class Converter:
    """Takes records from a source, given or found, to a target."""

    def __init__(
        self,
        *,
        source: Target | None,
        target: Target | None,
        overrides: Overrides | None,
        policy: Policy,
        terminal: Terminal,
        is_quiet: bool,
        option: str = "--from",
        refuses_foreign_models: bool = False,
    ) -> None:
        self.source = source
        self.target = target
        """None: repaired for the provider that its protocol is named after."""
        self.overrides = overrides
        self.policy = policy
        self.terminal = terminal
        self.is_quiet = is_quiet
        self.option = option
        self.refuses_foreign_models = refuses_foreign_models
        self._noted: set[str] = set()

    def outcome(self, record: Record) -> ConversionOutcome:
        """What becomes of a record.

        A single document raises that cannot be read, whose protocol is unclear, or whose model is another provider's.
        """
        source = ""
        try:
            body = record.parse()
            source = self._source(body, record)
        except InputError as error:
            if not record.is_line:
                raise
            return ConversionOutcome(record=record, source=source, error=error)
        target = self.target or Target(source)
        try:
            out = convert(
                body,
                source=source,
                target=target.name,
                model=target.model,
                overrides=self.overrides,
                policy=self.policy,
            )
            if self.refuses_foreign_models and not target.model:
                self._refuse_foreign_model(out)
        except InputError as error:
            if isinstance(error, ForeignModelError) and not record.is_line:
                raise
            error = self._with_protocol(error, body, source)
            return ConversionOutcome(record=record, source=source, target=str(target), error=error)
        return ConversionOutcome(record=record, source=source, target=str(target), before=body, out=out)

    def _with_protocol(self, error: InputError, body: dict[str, Any], source: str) -> InputError:
        """The error with a hint, where the body is plainly of another protocol than what it was said to be."""
        found = examine(body)
        if found.by != "structure" or found.protocol in (None, profiles.get(source, overrides=self.overrides).protocol):
            return error
        hint = f"this looks like a request of {found.protocol}: {self.option} {get(found.protocol).provider}"
        if self.option == "--for":
            hint += f", or toolglot convert --to {source}"
        return InputError(error.message, path=error.path, hint=hint)

    def _refuse_foreign_model(self, out: ConvertedRequest) -> None:
        if is_foreign_model(out.target):
            ways = "--model NAME, or --to" if self.option == "--from" else self.option
            raise ForeignModelError(
                f"{quote(out.model)} is a model of another provider, which {out.target.name} does not have",
                path="--model" if self.option == "--from" else self.option,
                hint=f"name one of its own: {ways} {out.target.name}@NAME",
            )

    def _source(self, body: dict[str, Any], record: Record) -> str:
        if self.source is not None:
            return self.source.name
        found = targets.protocol_of(body, record.where, self.option)
        assert found.protocol is not None  # noqa: S101 - protocol_of raises otherwise
        if found.by == "model" and found.protocol not in self._noted and not self.is_quiet:
            self._noted.add(found.protocol)
            self.terminal.note(f"{targets.told(found, record.where)}; {self.option} decides")
        return get(found.protocol).provider


class ForeignModelError(InputError):
    """A request that would ask its new provider for a model of another one."""


def outcomes(
    files: list[str], converter: Converter, terminal: Terminal, label: str, trailing: Write = len
) -> Iterator[ConversionOutcome]:
    """Every request of every file; `trailing` gets the blank lines at its end. A file that cannot be read raises."""
    for file in files:
        with (
            open_document(file) as document,
            terminal.progress(document.size, f"{label} {file}", quiet=converter.is_quiet) as advance,
        ):
            for record in document.records:
                yield converter.outcome(record)
                advance(len(record.data))
            trailing(bytes(document.trailing))


def add_policy(parser: argparse.ArgumentParser) -> None:
    """Choices of `toolglot.Policy` that matter here."""
    parser.add_argument(
        "--server-tools",
        choices=("refuse", "spare", "drop"),
        default="refuse",
        help="tools that only their own provider runs: refuse the request (the default), or leave them out and say so",
    )
    parser.add_argument(
        "--required",
        choices=("auto", "keep", "filter", "aggressive"),
        default="auto",
        help="required parameters that their own description calls optional (default: auto)",
    )
    parser.add_argument(
        "--ids",
        choices=("reversible", "canonical"),
        default="reversible",
        help="call ids: swap known prefixes, or make them anew from the canonical id (default: reversible)",
    )


def policy_of(arguments: argparse.Namespace) -> Policy:
    return Policy(server_tools=arguments.server_tools, required=arguments.required, ids=arguments.ids)


def show_failure(outcome: ConversionOutcome, terminal: Terminal) -> None:
    """An outcome's error, with what to do about a refusal."""
    error = outcome.error
    assert error is not None  # noqa: S101 - asked of failures only
    if isinstance(error, RefusedError) and not error.hint:
        error = InputError(error.message, path=error.path, hint=f"{outcome.target} has no way to take it")
    where = outcome.record.where
    terminal.error(error, where=error.path if error.path.startswith(where) else where)


def model_target(text: str, model: str, option: str, overrides: Overrides | None) -> Target:
    """A target, with the model of `--model` or after the `@`."""
    target = targets.one_target(text, option, overrides)
    if model and target.model and model != target.model:
        raise InputError(f"names two models: {target.model!r} and {model!r}", path=option, hint="leave one out")
    return Target(target.name, model or target.model)
