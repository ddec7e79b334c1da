"""Runs the requests of input files through `toolglot.convert`, for `convert`, `repair` and `switch-report`.

Law: a request that cannot be converted becomes an outcome with its error. It ends the run only if it is the only one.
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
from toolglot.errors import InputError, ModelProtocolError, RefusedError, ToolProtocolError, quote
from toolglot.masking import mask
from toolglot.profiles import Overrides
from toolglot.protocols.base import get
from toolglot.protocols.request_detection import examine
from toolglot.translate.requests import is_foreign_model
from toolglot.upstream.cache_prices import cost_of_markers
from toolglot.upstream.prices import LISTED
from toolglot.upstream.providers import PROVIDERS

FAULTS: Final = {
    "canonical": "the conversation was already broken",
    "renderer": "the target has another form for it",
    "projection": "the target requires other ids or names",
    "policy": "a policy setting decided",
    "loss": "the target cannot represent it",
}
"""The meaning of each fault class."""


class ConversionOutcome(Struct, frozen=True, kw_only=True):
    """The result of one request."""

    record: Record
    source: str = ""
    target: str = ""
    before: dict[str, Any] | None = None
    out: ConvertedRequest | None = None
    error: InputError | None = None
    moved: str = ""
    """Why it is converted for another target of the provider than the one that was named; empty: it is not."""

    @property
    def is_changed(self) -> bool:
        return self.out is not None and self.out.body != self.before

    @property
    def data(self) -> bytes:
        """The output: the original bytes if nothing changed."""
        assert self.out is not None  # noqa: S101 - only for outcomes without an error
        if self.is_changed:
            return self.record.encode_body(self.out.body)
        return self.line if self.record.is_line else self.record.data

    @property
    def repaired_data(self) -> bytes:
        """The output that replaces the record in its file. Unchanged parts keep their bytes."""
        assert self.out is not None  # noqa: S101 - only for outcomes without an error
        assert self.before is not None  # noqa: S101
        data = self.record.rewrite_body(self.before, self.out.body) if self.is_changed else self.record.data
        return self.record.blank + data

    @property
    def line(self) -> bytes:
        """The output as a line of JSONL."""
        assert self.out is not None  # noqa: S101 - only for outcomes without an error
        if self.is_changed or not self.record.is_compact:
            return compact(self.out.body)
        return self.record.data.removeprefix(b"\xef\xbb\xbf").strip() + b"\n"

    @property
    def entries(self) -> tuple[Entry, ...]:
        return self.out.report.entries if self.out is not None else ()

    def as_json(self) -> dict[str, Any]:
        """The report, for programs."""
        about: dict[str, Any] = {
            "file": self.record.file,
            "line": self.record.line if self.record.is_line else None,
            "source": self.source,
            "target": self.target,
        }
        if self.error is not None:
            fields = {"message": self.error.message, "path": self.error.path, "hint": self.error.hint}
            return {**about, "error": {name: mask(text) for name, text in fields.items()}}
        assert self.out is not None  # noqa: S101 - an outcome has either a result or an error
        return {**about, "model": self.out.model, **msgspec.json.decode(self.out.report.to_json())}


class Converter:
    """Converts records to a target. The source protocol is detected unless it is set."""

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
        follows_protocol: bool = False,
    ) -> None:
        self.source = source
        self.target = target
        """None: the provider that the protocol of the request is named after."""
        self.overrides = overrides
        self.policy = policy
        self.terminal = terminal
        self.is_quiet = is_quiet
        self.option = option
        self.refuses_foreign_models = refuses_foreign_models
        self.follows_protocol = follows_protocol
        """Whether a request goes to the protocol of the provider that serves it, as the gateway sends it."""
        self._noted: set[str] = set()

    def outcome(self, record: Record) -> ConversionOutcome:
        """Convert one record.

        Raises for a single document that cannot be parsed, whose protocol is ambiguous, or whose model belongs to
        another provider. For a line of JSONL, these are outcomes with an error.
        """
        source = ""
        try:
            body = record.parse()
            source = self._source(body, record)
        except InputError as error:
            if not record.is_line:
                raise
            return ConversionOutcome(record=record, source=source, error=error)
        target, moved = self.target or Target(source), ""
        try:
            try:
                out = self._convert(body, source, target)
            except (ToolProtocolError, ModelProtocolError) as error:
                served = self._served(target, body)
                if served is None:
                    raise
                if not self.follows_protocol:
                    raise type(error)(error.message, path=error.path, hint=self._hint_for(served)) from None
                out, moved = self._convert(body, source, served), error.message
            if out.rendered.has_placed_markers:
                out.report.add(cost_of_markers(LISTED.of(out.model, target.name), out.target))
            if self.refuses_foreign_models and not target.model:
                self._refuse_foreign_model(out)
        except InputError as error:
            if isinstance(error, ForeignModelError) and not record.is_line:
                raise
            error = self._with_protocol(error, body, source)
            return ConversionOutcome(record=record, source=source, target=str(target), error=error)
        return ConversionOutcome(record=record, source=source, target=str(target), before=body, out=out, moved=moved)

    def _convert(self, body: dict[str, Any], source: str, target: Target) -> ConvertedRequest:
        return convert(
            body, source=source, target=target.name, model=target.model, overrides=self.overrides, policy=self.policy
        )

    def _served(self, target: Target, body: dict[str, Any]) -> Target | None:
        """The target of the same provider that serves the request; None: it has no other."""
        named = body.get("model")
        model = target.model or (named[: profiles.MAX_NAME] if isinstance(named, str) else "")
        own, provider = profiles.get(target.name, model, overrides=self.overrides), PROVIDERS.get(target.name)
        name = own.request.target or own.tools.protocol
        return Target(name, target.model) if provider is not None and name in provider.also else None

    def _hint_for(self, served: Target) -> str:
        option = "--to" if self.option == "--from" else self.option
        return f"send it in the protocol that does: {option} {served}"

    def _with_protocol(self, error: InputError, body: dict[str, Any], source: str) -> InputError:
        """Add a hint to the error if the body is clearly of another protocol than `source`."""
        found, spoken = examine(body), profiles.get(source, overrides=self.overrides).protocol
        is_certain = found.by == "structure" or spoken not in found.candidates
        if found.protocol in (None, spoken) or not is_certain:
            return error
        hint = f"this looks like {found.protocol}: use {self.option} {get(found.protocol).provider}"
        if self.option == "--for":
            hint += f", or toolglot convert --to {source}"
        return InputError(error.message, path=error.path, hint=hint)

    def _refuse_foreign_model(self, out: ConvertedRequest) -> None:
        if is_foreign_model(out.target):
            ways = "--model NAME, or --to" if self.option == "--from" else self.option
            raise ForeignModelError(
                f"{out.target.name} does not have the model {quote(out.model)}, which belongs to another provider",
                path="--model" if self.option == "--from" else self.option,
                hint=f"choose one of its models: {ways} {out.target.name}@NAME",
            )

    def _source(self, body: dict[str, Any], record: Record) -> str:
        if self.source is not None:
            return self.source.name
        if record.protocol:
            return record.protocol
        found = targets.detect_protocol(body, record.where, self.option)
        assert found.protocol is not None  # noqa: S101 - detect_protocol raises otherwise
        if found.by == "model" and found.protocol not in self._noted and not self.is_quiet:
            self._noted.add(found.protocol)
            self.terminal.note(f"{targets.detection_note(found, record.where)}; {self.option} decides")
        return get(found.protocol).provider


class ForeignModelError(InputError):
    """The model of the request belongs to another provider than the target."""


def convert_files(
    files: list[str], converter: Converter, terminal: Terminal, label: str, trailing: Write = len
) -> Iterator[ConversionOutcome]:
    """Convert every request of every file. `trailing` gets the blank lines at the end of a file. Raises for a file that
    cannot be read."""
    for file in files:
        with (
            open_document(file) as document,
            terminal.progress(document.size, f"{label} {file}", quiet=converter.is_quiet) as advance,
        ):
            for record in document.records:
                yield converter.outcome(record)
                advance(len(record.data))
            trailing(bytes(document.trailing))


def add_conversion(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    """Add the options of a conversion: protocol, target, model, and the settings of `toolglot.Policy` that matter.

    several: whether there can be several targets.
    """
    parser.add_argument(
        "--from", dest="source", metavar="PROTOCOL", help="the protocol of the requests (default: detected)"
    )
    targets_help = "the target that must accept them" + ("; or several, separated by commas" if several else "")
    metavar = "TARGET[@MODEL][,…]" if several else "TARGET[@MODEL]"
    parser.add_argument("--to", dest="target", metavar=metavar, required=True, help=targets_help)
    parser.add_argument("--model", default="", help="the model to request (default: that of the request)")
    parser.add_argument(
        "--server-tools",
        choices=("refuse", "spare", "drop"),
        default="refuse",
        help="tools that only their own provider can run: refuse the request (default), drop them and report it, or "
        "spare the request: drop them if it has other tools",
    )
    parser.add_argument(
        "--required",
        choices=("auto", "keep", "filter", "aggressive"),
        default="auto",
        help="parameters that are marked as required but described as optional (default: auto)",
    )
    parser.add_argument(
        "--ids",
        choices=("reversible", "canonical"),
        default="reversible",
        help="call ids: swap known prefixes, or derive them from the canonical id (default: reversible)",
    )


def read_converter(
    arguments: argparse.Namespace,
    terminal: Terminal,
    *,
    refuses_foreign_models: bool = False,
    follows_protocol: bool = False,
) -> Converter:
    """The converter that the options of `add_conversion` describe."""
    overrides = targets.read_overrides(arguments)
    return Converter(
        source=targets.parse_target(arguments.source, "--from", overrides) if arguments.source else None,
        target=_model_target(arguments.target, arguments.model, "--to", overrides),
        overrides=overrides,
        policy=Policy(server_tools=arguments.server_tools, required=arguments.required, ids=arguments.ids),
        terminal=terminal,
        is_quiet=arguments.quiet,
        refuses_foreign_models=refuses_foreign_models,
        follows_protocol=follows_protocol,
    )


def read_converters(arguments: argparse.Namespace, terminal: Terminal) -> list[Converter]:
    """The converters for several targets; `--model` is for each that names none."""
    words = dict.fromkeys(word.strip() for word in arguments.target.split(",") if word.strip())
    each = [argparse.Namespace(**{**vars(arguments), "target": word}) for word in words or (arguments.target,)]
    return [read_converter(one, terminal, follows_protocol=True) for one in each]


def show_failure(outcome: ConversionOutcome, terminal: Terminal) -> None:
    """Print the error of an outcome."""
    error = outcome.error
    assert error is not None  # noqa: S101 - only for failures
    if isinstance(error, RefusedError) and not error.hint:
        error = InputError(error.message, path=error.path, hint=f"{outcome.target} cannot represent it")
    where = outcome.record.where
    terminal.error(error, where=error.path if error.path.startswith(where) else where)


def _model_target(text: str, model: str, option: str, overrides: Overrides | None) -> Target:
    """A target with its model, from `--model` or after the `@`."""
    target = targets.parse_target(text, option, overrides)
    if model and target.model and model != target.model:
        raise InputError(f"two models: {target.model!r} and {model!r}", path=option, hint="remove one of them")
    return Target(target.name, model or target.model)
