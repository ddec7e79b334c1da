"""`toolglot probe`: find out how an unknown endpoint handles tools."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import msgspec

from toolglot import profiles
from toolglot.cli.files.output import refuse_existing, replace_file
from toolglot.cli.options import add_profiles, add_quiet
from toolglot.cli.screen.probe_progress import progress_on
from toolglot.cli.screen.terminal import Terminal, clean
from toolglot.conversation import Usage
from toolglot.discovery.comparison import Departure, departures
from toolglot.discovery.endpoint_client import Budget, Endpoint
from toolglot.discovery.findings import DiscoveryResult
from toolglot.discovery.found_profile import entries_of, profile_toml
from toolglot.discovery.markdown_report import report, value_text
from toolglot.discovery.model_opinion import ask_model
from toolglot.discovery.plan import ProbePlan, plan
from toolglot.discovery.probe import GROUPS, protocol_order
from toolglot.discovery.protocol_detection import known_provider
from toolglot.discovery.remedies import remedy
from toolglot.discovery.run import Discovery, select_probes
from toolglot.errors import InputError
from toolglot.profiles import Overrides, Profile
from toolglot.upstream import check_url
from toolglot.upstream.prices import Price, Prices

INTERRUPTED: Final = 130
_DESCRIPTION: Final = """\
Find out how an unknown endpoint handles tools: which protocols it speaks, native calls or calls in text, streams,
ids, results, tool choice, schemas, turns, thinking. Each finding has the request and the response that show it. The
result is a profile that 'toolglot serve' loads, a report, and JSON.

Probing costs tokens: '--dry-run' prints every probe and an estimate, and sends nothing."""

_EPILOG: Final = f"""\
groups of probes, for --only:
  {", ".join(GROUPS)}

examples:
  toolglot probe http://127.0.0.1:8000/v1 --dry-run
  toolglot probe https://api.example.com/v1 --key-env EXAMPLE_KEY --model big -o example.toml --report example.md
  toolglot serve --config example.toml
  toolglot probe https://api.example.com/v1 --key-env EXAMPLE_KEY --diff example.toml

exit codes:
  0    all probes were sent; with --diff: the endpoint matches its profile
  1    with --diff: it differs from its profile; otherwise: no protocol works, or some probes could not be sent
  2    wrong usage
  130  interrupted (Ctrl-C); what was found by then is written
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    parser.add_argument("url", metavar="URL", help="the base address, such as http://127.0.0.1:8000/v1")
    parser.add_argument("--key-env", metavar="NAME", help="the environment variable that holds the key")
    parser.add_argument(
        "--model", default="", metavar="NAME", help="the model to call (default: the first one that it lists)"
    )
    parser.add_argument(
        "--protocol", default="auto", choices=("auto", *protocol_order()), help="default: the first that answers"
    )
    parser.add_argument(
        "--header", action="append", default=[], metavar="NAME:VALUE",
        help="a header for every request; may be repeated; 'NAME:env:VARIABLE' takes it from the environment",
    )  # fmt: skip
    parser.add_argument("--name", default="", metavar="NAME", help="the name of the profile (default: the host)")
    parser.add_argument("--base", default="", metavar="TARGET", help="the profile to start from")
    parser.add_argument(
        "--only", action="append", default=[], metavar="GROUP", help="a group of probes, or one; may be repeated"
    )
    parser.add_argument("--max-requests", type=int, default=300, metavar="N", help="default: %(default)s")
    parser.add_argument(
        "--max-tokens", type=int, default=200_000, metavar="N", help="limit on tokens in total (default: 200000)"
    )
    parser.add_argument(
        "--timeout", type=float, default=60.0, metavar="SECONDS", help="time limit of a request (default: 60)"
    )
    parser.add_argument(
        "--max-seconds", type=float, default=900.0, metavar="SECONDS", help="time limit in total (default: 900)"
    )
    parser.add_argument("--dry-run", action="store_true", help="print the probes and an estimate; send nothing")
    parser.add_argument(
        "--diff", metavar="PROFILE", help="a profile, or a file with one: show where the endpoint differs from it"
    )
    parser.add_argument(
        "--ask", metavar="PROVIDER/MODEL", help="let a model look at the evidence; its findings are marked as opinion"
    )
    parser.add_argument("--ask-url", default="", metavar="URL", help="the address of that provider, if not its own")
    parser.add_argument("--json", action="store_true", help="print the whole result, including evidence, on stdout")
    parser.add_argument("--report", metavar="FILE", help="a report in Markdown")
    parser.add_argument("-o", "--output", metavar="FILE", help="the found profile, as TOML for 'toolglot serve'")
    parser.add_argument("--force", action="store_true", help="overwrite existing files")
    add_profiles(parser)
    add_quiet(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    own = profiles.read_overrides(arguments.profiles) if arguments.profiles else None
    against = _against(arguments.diff, own)
    with _naming_options({"only": "--only"}):
        select_probes(arguments.only)
    if arguments.dry_run:
        return _dry_run(arguments, terminal)
    for path in filter(None, (arguments.output, arguments.report)):
        refuse_existing(path, force=arguments.force)
    url = check_url(arguments.url, path="URL")
    key_env = arguments.key_env or _default_key_variable(url, os.environ)
    key = _key(key_env, os.environ, demanded=bool(arguments.key_env))
    result, was_interrupted = _discover(arguments, url, key, terminal)
    if arguments.ask and not was_interrupted:
        result = asyncio.run(ask_model(result, arguments.ask, os.environ, url=arguments.ask_url))
    return _finish(arguments, terminal, result, against, key_env, was_interrupted=was_interrupted)


# --- arguments -----------------------------------------------------------------------------


@contextlib.contextmanager
def _naming_options(options: Mapping[str, str]) -> Iterator[None]:
    """Errors name the option instead of the parameter."""
    try:
        yield
    except InputError as error:
        raise InputError(error.message, path=options.get(error.path, error.path), hint=error.hint) from None


def _default_key_variable(url: str, environ: Mapping[str, str]) -> str:
    """The variable that usually holds the key of a known host."""
    known = known_provider(url)
    return next((name for name in known.key_env if environ.get(name)), "") if known is not None else ""


def _key(name: str, environ: Mapping[str, str], *, demanded: bool) -> str:
    key = environ.get(name, "").strip() if name else ""
    if demanded and not key:
        raise InputError(f"the environment variable {name} is not set", path="--key-env", hint=f"export {name}=…")
    return key


def _headers(options: Sequence[str], environ: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The headers, and the values from the environment, which must not be shown."""
    found: dict[str, str] = {}
    secrets: list[str] = []
    for entry in options:
        name, colon, value = entry.partition(":")
        value = value.strip()
        if value.startswith("env:"):
            variable = value.removeprefix("env:")
            value = environ.get(variable, "")
            secrets.append(value)
            if not value:
                raise InputError(f"the environment variable {variable} is not set", path="--header")
        if not colon or not name.strip().isascii() or not value.isprintable() or any(c in name for c in " \t\r\n"):
            raise InputError("expected NAME:VALUE", path="--header", hint="such as 'x-team: search'")
        found[name.strip().lower()] = value
    return found, tuple(secrets)


def _against(name: str | None, own: Overrides | None) -> tuple[str, Overrides | None] | None:
    """The profile to compare with: its name, and the file that defines it."""
    if not name:
        return None
    if Path(name).is_file():
        file_profiles = profiles.read_overrides(name)
        if len(file_profiles.names) != 1:
            raise InputError(
                f"the file defines {len(file_profiles.names)} profiles",
                path="--diff",
                hint="name one of them, and pass the file with --profiles",
            )
        return file_profiles.names[0], file_profiles
    return profiles.find(name, overrides=own, kind="profile", path="--diff"), own


# --- the dry run ------------------------------------------------------------------------------------


def _dry_run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    planned = plan(arguments.protocol, arguments.only)
    price = Prices().of(arguments.model) if arguments.model else None
    if arguments.json:
        body = {**msgspec.to_builtins(planned), "cost_usd": str(_cost(planned, price)) if price else None}
        terminal.write_json(body)
        return 0
    rows = [
        (one.probe, str(one.requests), str(one.input_tokens + one.output_tokens), one.question)
        for one in planned.probes
    ]
    terminal.out.table(rows, heading=("PROBE", "REQUESTS", "TOKENS", "QUESTION"))
    total = planned.input_tokens + planned.output_tokens
    terminal.out.line()
    terminal.out.line(f"at most {planned.requests} requests and {total:,} tokens; usually less than half")
    limits = f"--max-requests {arguments.max_requests}, --max-tokens {arguments.max_tokens}"
    terminal.out.line(f"limits: {limits}")
    if price is not None:
        terminal.out.line(f"at most ${_cost(planned, price):.2f}, by the price list for {clean(arguments.model)}")
    else:
        named = clean(arguments.model) if arguments.model else "an unnamed model (use --model)"
        terminal.out.line(f"unknown cost: no price for {named}")
    return 0


def _cost(planned: ProbePlan, price: Price) -> Decimal:
    return price.cost(Usage(planned.input_tokens, planned.output_tokens))


# --- the discovery ----------------------------------------------------------------------------------


def _discover(arguments: argparse.Namespace, url: str, key: str, terminal: Terminal) -> tuple[DiscoveryResult, bool]:
    options = {
        "requests": "--max-requests",
        "tokens": "--max-tokens",
        "timeout": "--timeout",
        "seconds": "--max-seconds",
    }
    with _naming_options(options):
        budget = Budget(
            requests=arguments.max_requests,
            tokens=arguments.max_tokens,
            seconds=arguments.max_seconds,
            timeout=arguments.timeout,
        )
    from toolglot.upstream import HttpTransport  # noqa: PLC0415 - it is an extra

    headers, secrets = _headers(arguments.header, os.environ)
    made: list[Discovery] = []

    async def discover() -> None:
        transport = HttpTransport()
        try:
            with progress_on(terminal.err, select_probes(arguments.only), quiet=arguments.quiet) as shown:
                discovery = Discovery(
                    Endpoint(url=url, transport=transport, key=key, headers=headers, secrets=secrets),
                    budget=budget,
                    model=arguments.model,
                    protocol=arguments.protocol,
                    name=arguments.name,
                    base=arguments.base,
                    only=arguments.only,
                    progress=shown.on_end,
                    begin=shown.on_start,
                )
                made.append(discovery)
                await discovery.run()
        finally:
            await transport.close()

    try:
        asyncio.run(discover())
    except KeyboardInterrupt:
        if not made:
            raise
        return made[0].result("interrupted"), True
    return made[0].result(), False


# --- the result -------------------------------------------------------------------------------


def _finish(
    arguments: argparse.Namespace,
    terminal: Terminal,
    result: DiscoveryResult,
    against: tuple[str, Overrides | None] | None,
    key_env: str,
    *,
    was_interrupted: bool,
) -> int:
    day = datetime.now(UTC).date().isoformat()
    profile = _profile(against, result)
    differences = departures(result, profile) if profile is not None else ()
    if arguments.output and result.sdk.protocol:
        _write(arguments.output, profile_toml(result, key_env=key_env, day=day))
    if arguments.report:
        named = against[0] if against is not None else ""
        _write(arguments.report, report(result, differences=differences, against=named, day=day))
    if arguments.json:
        body = {**msgspec.to_builtins(result), "departures": msgspec.to_builtins(differences) if against else None}
        terminal.write_json(body)
    else:
        _print_result(result, differences, against, arguments, terminal)
    if was_interrupted:
        return INTERRUPTED
    return 1 if differences or not result.complete or not result.sdk.protocol else 0


def _profile(against: tuple[str, Overrides | None] | None, result: DiscoveryResult) -> Profile | None:
    return profiles.get(against[0], result.provider.model, overrides=against[1]) if against is not None else None


def _write(path: str, text: str) -> None:
    with replace_file(path) as output:
        output.write(text.encode(errors="replace"))


_WAYS: Final = {True: "native calls", False: "calls as text", None: "no calls seen"}


def _print_result(
    result: DiscoveryResult,
    differences: Sequence[Departure],
    against: tuple[str, Overrides | None] | None,
    arguments: argparse.Namespace,
    terminal: Terminal,
) -> None:
    page, provider, tooling = terminal.out, result.provider, result.tooling
    if not result.complete:
        page.paragraph(f"incomplete: {clean(result.stopped)}", indent="  ")
    if not result.sdk.protocol:
        return
    also = f" (also {', '.join(provider.protocols[1:])})" if provider.protocols[1:] else ""
    page.line(page.paint(f"{clean(provider.url)} speaks {result.sdk.protocol}{also}", "bold"))
    page.line(f"  model     {clean(provider.model)}")
    read_by = f", dialect {tooling.dialect}" if tooling.dialect else ""
    page.line(f"  tools     {_WAYS[tooling.native]}{read_by}")
    several = {True: "yes", False: "no", None: "not seen"}
    page.line(f"  parallel  {several[tooling.parallel]}; streams: {several[result.sdk.streaming]}")
    spent = result.spent
    counted = "" if spent.counted else " (estimated)"
    tokens = f"{spent.input_tokens + spent.output_tokens:,} tokens{counted}"
    page.line(f"  sent      {spent.requests} requests, {tokens}, {spent.seconds:.1f} s")
    entries = entries_of(result)
    page.line(f"  found     {len(entries)} profile entries")
    if tooling.quirks:
        page.line()
        page.line(page.paint("quirks", "bold"))
        for quirk in tooling.quirks:
            todo = next((remedy(one) for one in result.findings if one.quirk == quirk and remedy(one)), "")
            page.paragraph(clean(quirk) + (f" → {todo}" if todo else ""), indent="    ", first="  - ")
    _print_differences(differences, against, terminal)
    _print_opinion(result, terminal)
    for path, what in ((arguments.output, "the profile"), (arguments.report, "the report")):
        if path:
            page.line(f"wrote {what} to {clean(path)}")


def _print_differences(
    differences: Sequence[Departure], against: tuple[str, Overrides | None] | None, terminal: Terminal
) -> None:
    page = terminal.out
    if against is None:
        return
    page.line()
    if not differences:
        page.line(page.paint(f"matches the profile {clean(against[0])}", "green"))
        return
    page.line(page.paint(f"differs from the profile {clean(against[0])} in {len(differences)} entries", "bold", "red"))
    rows = [
        (one.key, clean(value_text(one.expected))[:60], clean(f"{value_text(one.found)}{_why(one)}"))
        for one in differences
    ]
    page.table(rows, heading=("ENTRY", "PROFILE", "FOUND"))


def _why(one: Departure) -> str:
    return f" ({one.note})" if one.note else ""


def _print_opinion(result: DiscoveryResult, terminal: Terminal) -> None:
    opinion, page = result.opinion, terminal.out
    if opinion is None:
        return
    page.line()
    page.line(page.paint(f"opinion of {clean(opinion.by)} (informative only)", "bold"))
    if opinion.problem:
        page.paragraph(f"none: {clean(opinion.problem)}", indent="    ", first="  ")
        return
    lines: list[tuple[str, Any]] = [("format", opinion.format), ("example", opinion.example)]
    lines += [("schema", line) for line in opinion.schema_requirements]
    lines += [("quirk", line) for line in opinion.quirks]
    lines += [("contradicts the evidence", line) for line in opinion.disagrees]
    for name, value in lines:
        page.paragraph(f"{name}: {clean(str(value))}", indent="    ", first="  - ")
