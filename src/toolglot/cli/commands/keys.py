"""`toolglot keys`: manage the keys of a gateway's clients, and their limits.

Keys of the configuration are listed too. Law: only names of variables and hashes are shown, never a key. A variable
that is not set here may be set where the gateway runs, so its key is listed anyway, without an id.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from toolglot.cli.options import Formatter, Parser, add_quiet, parse_count, parse_dollars, parse_time
from toolglot.cli.screen.terminal import Terminal, clean, plural
from toolglot.cli.store_access import add_store, store_config, store_exists, store_location, with_store
from toolglot.errors import InputError, quote
from toolglot.gateway.accounting.client_keys import (
    BUDGETS,
    ID_LENGTH,
    ClientKey,
    configured_keys,
    keys_named,
    new_key,
    revoke,
    save,
    saved_keys,
)
from toolglot.gateway.accounting.metering import NANO, SPENT, period_of
from toolglot.gateway.config.key_table import STORED_KEYS
from toolglot.gateway.config.settings import Config
from toolglot.gateway.config.variables import ENV
from toolglot.store import Store

_SHOWN: Final = 16
"""Characters of a hash that are shown."""

_DESCRIPTION: Final = """\
Create, list and revoke the keys of the clients of 'toolglot serve'. As soon as there is one, the gateway requires a
key from everybody. A running gateway, with any number of workers, notices a change within seconds."""

_EPILOG: Final = """\
examples:
  toolglot keys add alice
  toolglot keys add ci --models 'gpt-5*,claude-haiku-*' --rpm 60 --spend-per-month 50 --expires 90d
  KEY=$(toolglot keys add build --tokens-per-day 2M --quiet)
  toolglot keys list
  toolglot keys revoke ci

Keys in the configuration (client_keys, [keys.NAME]) are listed too; to revoke one, remove it from the file.

A key is shown once, when it is created; only its SHA-256 is stored. 'toolglot usage' shows what each key used.

exit codes: 0 success; 2 no such key, the name is in use, or the store is unavailable
"""

_ADD_EPILOG: Final = """\
examples:
  toolglot keys add alice
  toolglot keys add ci --models 'gpt-5*,claude-haiku-*' --rpm 60 --tpm 500k
  toolglot keys add trial --tokens 1M --spend 5 --expires 14d

The key is written to stdout, everything else to stderr. Days and months are those of UTC.
"""

_LIMITS: Final = (
    ("--rpm", "requests_per_minute", parse_count, "N", "requests per minute"),
    ("--tpm", "tokens_per_minute", parse_count, "N", "tokens per minute, input and output"),
    ("--tokens-per-day", "tokens_per_day", parse_count, "N", "tokens per day"),
    ("--tokens-per-month", "tokens_per_month", parse_count, "N", "tokens per month"),
    ("--tokens", "tokens_total", parse_count, "N", "tokens in total"),
    ("--spend-per-day", "spend_per_day", parse_dollars, "USD", "spending per day, in US dollars"),
    ("--spend-per-month", "spend_per_month", parse_dollars, "USD", "spending per month, in US dollars"),
    ("--spend", "spend_total", parse_dollars, "USD", "spending in total, in US dollars"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    actions = parser.add_subparsers(
        title="actions", dest="action", metavar="ACTION", required=True, parser_class=Parser
    )
    adding = actions.add_parser("add", help="create a key, and show it once", formatter_class=Formatter)
    adding.description, adding.epilog = "Create a key for a client. Limits are optional.", _ADD_EPILOG
    adding.add_argument("name", metavar="NAME", help="the owner: a person, a team, a program")
    adding.add_argument(
        "--models",
        metavar="PATTERNS",
        action="append",
        default=[],
        help="patterns of allowed models, separated by commas; may be repeated (default: all)",
    )
    adding.add_argument(
        "--admin", action="store_true", help="let it see the requests of all clients, in the inspector and elsewhere"
    )
    for option, name, kind, metavar, help_text in _LIMITS:
        adding.add_argument(option, dest=name, type=kind, metavar=metavar, help=help_text)
    adding.add_argument(
        "--expires", metavar="WHEN", help="when it expires: a day such as 2027-01-31, or a duration such as 90d or 12h"
    )
    adding.add_argument("--format", choices=("text", "json"), default="text", help="output format (default: text)")
    add_quiet(adding)
    listing = actions.add_parser("list", help="list the keys, their limits and usage", formatter_class=Formatter)
    listing.description = "List the keys, without their secrets."
    listing.add_argument("--all", action="store_true", help="include revoked and expired keys")
    listing.add_argument("--format", choices=("table", "json"), default="table", help="default: table")
    revoking = actions.add_parser("revoke", help="revoke a key permanently", formatter_class=Formatter)
    revoking.description = "Revoke a key. Running gateways refuse it within five seconds; open responses are finished."
    revoking.add_argument("name", metavar="NAME|ID", help="the name or the id of the key")
    add_quiet(revoking)
    for each in (adding, listing, revoking):
        add_store(each)


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    return {"add": _add, "list": _list, "revoke": _revoke}[arguments.action](arguments, terminal)


# --- add --------------------------------------------------------------------------------------------


def _add(arguments: argparse.Namespace, terminal: Terminal) -> int:
    now = datetime.now(UTC)
    limits: dict[str, Any] = {name: getattr(arguments, name) for _, name, *_ in _LIMITS}
    limits |= {"models": _patterns(arguments.models), "admin": arguments.admin}
    if arguments.expires:
        expires = parse_time(arguments.expires, now=now, option="--expires", ahead=True)
        if expires <= now:
            raise InputError(
                f"{quote(arguments.expires)} is in the past", path="--expires", hint="use a time in the future"
            )
        limits["expires"] = expires.timestamp()
    key, secret = new_key(arguments.name, now=now.timestamp(), **limits)

    config = store_config(arguments)
    if config is not None and key.name in config.keys:
        hint = "choose another name, or remove that key from the configuration"
        raise InputError(f"a key {quote(key.name)} already exists in {clean(config.origin)}", path="keys", hint=hint)

    async def act(store: Store) -> None:
        taken = [known for known in keys_named(await saved_keys(store), key.name) if known.revoked is None]
        if taken:
            hint = f"choose another name, or `toolglot keys revoke {taken[0].id}` first"
            raise InputError(f"a key {quote(key.name)} already exists", path="keys", hint=hint)
        await save(store, key)

    location = store_location(arguments, config)
    with_store(location, act)
    if arguments.format == "json":
        terminal.write_json({"key": secret, **_key_json(key, now, {})})
    else:
        terminal.out.line(secret)
    if not arguments.quiet:
        page = terminal.err
        page.line(f"created key {clean(key.name)} ({key.id}) in {clean(location)}")
        page.paragraph(f"limits: {clean(_limits(key, {})) or 'none'}{_until(key)}")
        page.paragraph("the key is shown only once: store it where the client can read it")
        page.paragraph(
            "the gateway now requires a key from every client; a running gateway notices within five seconds"
        )
    return 0


def _patterns(options: list[str]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(part.strip() for text in options for part in text.split(",") if part.strip()))
    if options and not found:
        raise InputError("expected patterns of models", path="--models", hint="omit the option to allow all models")
    if any(len(part) > 200 or not part.isprintable() for part in found):
        raise InputError("invalid model pattern", path="--models", hint="use patterns such as 'gpt-5*'")
    return found


# --- list -------------------------------------------------------------------------------------------


def _list(arguments: argparse.Namespace, terminal: Terminal) -> int:
    now = datetime.now(UTC)
    config = store_config(arguments)
    location = store_location(arguments, config)
    own = [each.key for each in keys_of(config, os.environ)]
    keys: list[tuple[ClientKey, dict[str, float]]] = [(key, {}) for key in own]
    if store_exists(location):
        keys = with_store(location, lambda store: _with_use(store, own, now))
    shown = [(key, used) for key, used in keys if arguments.all or key.state(now.timestamp()) == "active"]
    if arguments.format == "json":
        terminal.write_json([_key_json(key, now, used) for key, used in shown])
        return 0
    if shown:
        rows = [_row(key, used, now) for key, used in shown]
        terminal.out.table(rows, heading=("NAME", "ID", "KEY", "STATE", "CREATED", "LIMITS"))
    hidden = len(keys) - len(shown)
    if not keys:
        where = f"{location} and {config.origin}" if config is not None and config.origin else location
        terminal.note(f"no keys in {where}; create one with `toolglot keys add NAME`")
    elif hidden:
        terminal.note(f"{plural(hidden, 'key')} revoked or expired; use --all to show them")
    return 0


async def _with_use(store: Store, own: list[ClientKey], now: datetime) -> list[tuple[ClientKey, dict[str, float]]]:
    """The keys of the configuration and of the store, with the usage of each budget."""
    current = period_of(now.timestamp())
    found = []
    for key in (*own, *await saved_keys(store)):
        spent = {}
        if key.budgets:
            spent = {row.key: row.amounts for row in await store.scan(SPENT, client=key.hashed, limit=1000)}
        used = {}
        for name in key.budgets:
            unit, period = BUDGETS[name]
            used[name] = spent.get(current[period], {}).get(unit, 0.0) / (1 if unit == "tokens" else NANO)
        found.append((key, used))
    return found


def _row(key: ClientKey, used: dict[str, float], now: datetime) -> tuple[str, ...]:
    state = key.state(now.timestamp())
    lasts = f"until {_day(key.expires)}" if state == "active" and key.expires is not None else state
    limits = clean(_limits(key, used)) or "none"
    created = _day(key.created) if key.created else "configured"
    return clean(key.name) or "-", key.id or "-", clean(key.shown), lasts, created, limits


def _limits(key: ClientKey, used: dict[str, float]) -> str:
    """The limits of a key, as text."""
    parts = ["admin: sees the requests of all clients"] if key.admin else []
    parts += [f"models {', '.join(key.models)}"] if key.models else []
    if key.requests_per_minute is not None:
        parts.append(f"{key.requests_per_minute:,} requests per minute")
    if key.tokens_per_minute is not None:
        parts.append(f"{key.tokens_per_minute:,} tokens per minute")
    for name, limit in key.budgets.items():
        unit, period = BUDGETS[name]
        each = "in total" if period == "total" else f"per {period}"
        before = ""
        if name in used:
            before = f"{used[name]:,.0f} of " if unit == "tokens" else f"${used[name]:,.2f} of "
        parts.append(f"{before}{limit:,} tokens {each}" if unit == "tokens" else f"{before}${limit:,f} {each}")
    return "; ".join(parts)


def _until(key: ClientKey) -> str:
    return f", until {_day(key.expires)}" if key.expires is not None else ""


def _day(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}"


def _key_json(key: ClientKey, now: datetime, used: dict[str, float]) -> dict[str, Any]:
    """A key as JSON."""
    fields = {name: value for name, value in asdict(key).items() if name != "hashed"}
    fields["source"] = "store" if key.created else "configuration"
    for name in ("created", "expires", "revoked"):
        if not fields[name] and name == "created":
            fields[name] = None
        if fields[name] is not None:
            fields[name] = f"{datetime.fromtimestamp(fields[name], UTC):%Y-%m-%dT%H:%M:%SZ}"
    limits = {name: float(value) if isinstance(value, Decimal) else value for name, value in fields.items()}
    return {**limits, "state": key.state(now.timestamp()), "used": used}


# --- revoke -----------------------------------------------------------------------------------------


def _revoke(arguments: argparse.Namespace, terminal: Terminal) -> int:
    config = store_config(arguments)
    location = store_location(arguments, config)
    own = [each for each in keys_of(config, os.environ) if each.is_called(arguments.name)]
    known = with_store(location, saved_keys) if store_exists(location) else []
    if own and not any(key.revoked is None for key in keys_named(known, arguments.name)):
        hint = f"remove it from {own[0].origin}; running gateways notice within seconds"
        raise InputError(f"the key {quote(arguments.name)} is defined in the configuration", path="keys", hint=hint)
    if not store_exists(location):
        raise InputError(f"no store at {location}", path="keys", hint="see --config and --store")
    key = with_store(location, lambda store: revoke(store, arguments.name, datetime.now(UTC).timestamp()))
    if not arguments.quiet:
        terminal.err.line(f"revoked {clean(key.name)} ({key.id}); running gateways notice within five seconds")
        for each in own:
            terminal.note(f"{each.origin} also defines a key of this name, which stays valid")
    return 0


# --- keys of the configuration -----------------------------------------------------------------------


class ConfiguredKey(Struct, frozen=True):
    """A client key of a configuration."""

    key: ClientKey
    origin: str
    """Where it is defined: the file and the setting, or the variable."""

    def is_called(self, name: str) -> bool:
        """Whether `name` is its name, its id, or the variable that holds it."""
        return bool(name) and name in (self.key.name, self.key.id, self.key.shown, self.key.shown.removeprefix("$"))


def keys_of(config: Config | None, environ: Mapping[str, str]) -> list[ConfiguredKey]:
    """The keys in `[keys.NAME]` and `client_keys`; none without a configuration."""
    if config is None:
        return []
    named = configured_keys(config.keys)
    hashes = [*dict.fromkeys([key.hashed for key in named]), *config.gateway.client_keys]
    by_hash = {key.hashed: key for key in named}
    found = []
    for hashed in dict.fromkeys(hashes):
        if hashed == STORED_KEYS:
            continue
        key = by_hash.get(hashed) or ClientKey(id=hashed[:ID_LENGTH], name="", hashed=hashed, shown="", created=0.0)
        written = config.key_origins.get(hashed, "")
        setting = f"[keys.{key.name}]" if key.name else "client_keys"
        if written.startswith(ENV):
            name = written.removeprefix(ENV)
            is_set = bool(environ.get(name, "").strip())
            key = replace(key, shown=f"${name}", id=key.id if is_set else "")
        else:
            key = replace(key, shown=f"{written[:_SHOWN]}…")
        found.append(ConfiguredKey(key, f"{config.origin}, {setting}" if config.origin else key.shown))
    return found
