"""`toolglot usage`: show what the clients of a gateway used, and what it cost."""

from __future__ import annotations

import argparse
import csv
import io
from datetime import UTC, datetime
from typing import Any, Final

from toolglot.cli.options import add_quiet, parse_time
from toolglot.cli.screen.terminal import Terminal, clean
from toolglot.cli.store_access import add_store, store_config, store_exists, store_location, with_store
from toolglot.errors import InputError, quote
from toolglot.gateway.accounting.client_keys import ID_LENGTH, ClientKey, configured_keys, keys_named, saved_keys
from toolglot.gateway.accounting.metering import ANYONE
from toolglot.gateway.accounting.usage import Amounts, By, UsageRow, group_usage, read_usage
from toolglot.store import Store

_DESCRIPTION: Final = """\
Show what was used through the gateway, by key, model, day or upstream: requests, tokens, and their cost according to
the providers' price lists. A running gateway updates this once a second."""

_EPILOG: Final = """\
examples:
  toolglot usage
  toolglot usage --since 7d --by model
  toolglot usage --since 2026-11 --by day --format csv > november.csv
  toolglot usage --key ci --by model --format json

Days are in UTC. Requests without a known price are counted separately and not included in the cost. Set your own
prices in [prices] of toolglot.toml; they apply from then on.

exit codes: 0 success; 2 the store is unavailable, or an argument is invalid
"""

_COLUMNS: Final = ("requests", "failed", "input", "output", "cache_read", "cache_write")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    parser.add_argument(
        "--since", metavar="WHEN", default="30d", help="a day, a month, 'today', or a duration (default: 30d)"
    )
    parser.add_argument("--until", metavar="DAY", help="the last day (default: today)")
    parser.add_argument("--by", choices=("key", "model", "day", "upstream"), default="key", help="default: %(default)s")
    parser.add_argument("--key", metavar="NAME|ID", help="only this key")
    parser.add_argument("--format", choices=("table", "json", "csv"), default="table", help="default: %(default)s")
    add_store(parser)
    add_quiet(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    now = datetime.now(UTC)
    since = f"{parse_time(arguments.since, now=now, option='--since'):%Y-%m-%d}"
    until = f"{parse_time(arguments.until or 'today', now=now, option='--until'):%Y-%m-%d}"
    config = store_config(arguments)
    location = store_location(arguments, config)
    rows: list[UsageRow] = []
    keys: list[ClientKey] = []
    if store_exists(location):
        rows, keys = with_store(location, lambda store: _read(store, since, until))
    keys += configured_keys(config.keys) if config is not None else []
    if arguments.key:
        clients = _clients(arguments.key, keys, rows)
        rows = [row for row in rows if row.client in clients]
    found = group_usage(rows, arguments.by)
    if arguments.by == "key":
        found = {_name(client, keys): amounts for client, amounts in found.items()}
    total = sum(found.values(), Amounts())
    {"table": _table, "json": _json, "csv": _csv}[arguments.format](terminal, arguments.by, found, total, since, until)
    if not arguments.quiet:
        _print_notes(terminal, total, since, until)
    return 0


async def _read(store: Store, since: str, until: str) -> tuple[list[UsageRow], list[ClientKey]]:
    return await read_usage(store, since=since, until=until), await saved_keys(store)


def _clients(name: str, keys: list[ClientKey], rows: list[UsageRow]) -> set[str]:
    """The clients that have this name or id."""
    found = {key.hashed for key in keys if name in (key.name, key.id)}
    found |= {row.client for row in rows if name in (row.client[:ID_LENGTH], row.client)}
    if not found and not keys_named(keys, name):
        raise InputError(f"no usage by a key {quote(name)}", path="--key", hint="see `toolglot keys list --all`")
    return found


def _name(client: str, keys: list[ClientKey]) -> str:
    """The display name of a client. Keys with the same name are shown with their ids."""
    if client == ANYONE:
        return "(no key)"
    key = next((key for key in keys if key.hashed == client), None)
    if key is None:
        return client[:ID_LENGTH]
    is_alone = sum(other.name == key.name for other in keys) == 1
    return key.name if is_alone else f"{key.name} ({key.id})"


# --- forms ------------------------------------------------------------------------------------------


def _table(terminal: Terminal, by: By, found: dict[str, Amounts], total: Amounts, _since: str, _until: str) -> None:
    if not found:
        return
    shown = {**found, "total": total} if len(found) > 1 else found
    heading = (by.upper(), "REQUESTS", "FAILED", "INPUT", "OUTPUT", "CACHED", "COST")
    rows = [(clean(name), *_cells(amounts)) for name, amounts in shown.items()]
    widths = [max(len(row[column]) for row in (heading, *rows)) for column in range(len(heading))]
    page = terminal.out
    for number, row in enumerate((heading, *rows)):
        numbers = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        line = "  ".join((row[0].ljust(widths[0]), *numbers))
        is_strong = number == 0 or (len(found) > 1 and number == len(rows))
        page.line(page.paint(line, "bold") if is_strong else line)


def _cells(amounts: Amounts) -> tuple[str, ...]:
    cost = f"${amounts.dollars:,.4f}" if amounts.dollars < 100 else f"${amounts.dollars:,.2f}"
    counts = (amounts.requests, amounts.failed, amounts.input, amounts.output, amounts.cache_read)
    return (*(f"{count:,}" for count in counts), f"≥ {cost}" if amounts.unpriced else cost)


def _amounts_json(amounts: Amounts) -> dict[str, Any]:
    fields: dict[str, Any] = {name: getattr(amounts, name) for name in (*_COLUMNS, "unpriced", "uncounted")}
    lost = {"cache_lost": amounts.cache_lost, "cache_lost_usd": float(amounts.lost_dollars)}
    return {**fields, "cost_usd": float(amounts.dollars), **lost}


def _json(terminal: Terminal, by: By, found: dict[str, Amounts], total: Amounts, since: str, until: str) -> None:
    body = {
        "since": since,
        "until": until,
        "by": by,
        "rows": [{by: name, **_amounts_json(amounts)} for name, amounts in found.items()],
        "total": _amounts_json(total),
    }
    terminal.write_json(body)


def _csv(terminal: Terminal, by: By, found: dict[str, Amounts], _total: Amounts, _since: str, _until: str) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((by, *_amounts_json(Amounts())))
    for name, amounts in found.items():
        # Clients choose model names, and a spreadsheet runs a cell that starts with one of these as a formula.
        safe = f"'{name}" if name.startswith(("=", "+", "-", "@", "\t")) else name
        writer.writerow((clean(safe), *_amounts_json(amounts).values()))
    terminal.out.stream.write(text.getvalue())


def _print_notes(terminal: Terminal, total: Amounts, since: str, until: str) -> None:
    if not total.requests:
        terminal.note(f"no usage from {since} to {until}")
    if total.cache_lost:
        terminal.note(
            f"{total.cache_lost:,} tokens were cached and had to be read again, which cost about "
            f"${total.lost_dollars:,.4f} more; the reports of the requests say why (toolglot_cache_lost_tokens_total)"
        )
    if total.unpriced:
        terminal.note(
            f"{total.unpriced:,} {_requests(total.unpriced)} without a known price, not included in the cost; "
            "set prices in [prices] of toolglot.toml"
        )
    if total.uncounted:
        terminal.note(
            f"{total.uncounted:,} {_requests(total.uncounted)} without token counts from the provider; "
            "estimated for keys with limits, otherwise not counted"
        )


def _requests(count: int) -> str:
    return "request" if count == 1 else "requests"
