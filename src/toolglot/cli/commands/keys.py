"""`toolglot keys`: the keys of a gateway's clients, with what each of them may use."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from toolglot.cli.options import Formatter, Parser, add_quiet, dollars, moment, whole
from toolglot.cli.screen.terminal import Terminal, clean
from toolglot.cli.store_access import add_store, configured, is_there, place_of, with_store
from toolglot.errors import InputError, quote
from toolglot.gateway.accounting.client_keys import (
    BUDGETS,
    ID_LENGTH,
    ClientKey,
    configured_keys,
    named,
    new_key,
    revoke,
    save,
    saved_keys,
)
from toolglot.gateway.accounting.metering import NANO, SPENT, period_of
from toolglot.gateway.config.key_table import STORED_KEYS
from toolglot.gateway.config.secret import ENV
from toolglot.gateway.config.settings import Config
from toolglot.store import Store

_SHOWN: Final = 16
"""Characters of a hash as a configuration writes it."""

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

Keys of the configuration (client_keys, [keys.NAME]) are listed too; to revoke one, take it out of the file.

A key is shown once, when it is created; only its SHA-256 is stored. 'toolglot usage' shows what each key used.

exit codes: 0 done; 2 there is no such key, the name is taken, or the store cannot be used
"""

_ADD_EPILOG: Final = """\
examples:
  toolglot keys add alice
  toolglot keys add ci --models 'gpt-5*,claude-haiku-*' --rpm 60 --tpm 500k
  toolglot keys add trial --tokens 1M --spend 5 --expires 14d

The key is written to stdout, everything else to stderr. Days and months are those of UTC.
"""

_LIMITS: Final = (
    ("--rpm", "requests_per_minute", whole, "N", "requests in a minute"),
    ("--tpm", "tokens_per_minute", whole, "N", "tokens in a minute, of prompts and answers"),
    ("--tokens-per-day", "tokens_per_day", whole, "N", "tokens in a day"),
    ("--tokens-per-month", "tokens_per_month", whole, "N", "tokens in a month"),
    ("--tokens", "tokens_total", whole, "N", "tokens in total"),
    ("--spend-per-day", "spend_per_day", dollars, "USD", "spending per day, in US dollars"),
    ("--spend-per-month", "spend_per_month", dollars, "USD", "spending per month, in US dollars"),
    ("--spend", "spend_total", dollars, "USD", "spending in total, in US dollars"),
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
        help="patterns of the model names that it may use",
    )
    for option, name, kind, metavar, told in _LIMITS:
        adding.add_argument(option, dest=name, type=kind, metavar=metavar, help=told)
    adding.add_argument("--expires", metavar="WHEN", help="a day such as 2027-01-31, or a length such as 90d or 12h")
    adding.add_argument("--format", choices=("text", "json"), default="text", help="output format (default: text)")
    add_quiet(adding)
    listing = actions.add_parser(
        "list", help="all keys, their limits and what they used of them", formatter_class=Formatter
    )
    listing.description = "List the keys, without their secrets."
    listing.add_argument("--all", action="store_true", help="also those that were revoked or have expired")
    listing.add_argument("--format", choices=("table", "json"), default="table", help="default: table")
    revoking = actions.add_parser("revoke", help="revoke a key permanently", formatter_class=Formatter)
    revoking.description = (
        "Revokes a key. Running gateways refuse it within five seconds; answers under way are finished."
    )
    revoking.add_argument("name", metavar="NAME|ID", help="the owner: a person, a team, a program")
    add_quiet(revoking)
    for each in (adding, listing, revoking):
        add_store(each)


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    return {"add": _add, "list": _list, "revoke": _revoke}[arguments.action](arguments, terminal)


# --- add --------------------------------------------------------------------------------------------


def _add(arguments: argparse.Namespace, terminal: Terminal) -> int:
    now = datetime.now(UTC)
    limits: dict[str, Any] = {name: getattr(arguments, name) for _, name, *_ in _LIMITS}
    limits["models"] = _patterns(arguments.models)
    if arguments.expires:
        expires = moment(arguments.expires, now=now, option="--expires", ahead=True)
        if expires <= now:
            raise InputError(f"{quote(arguments.expires)} is past", path="--expires", hint="name a time to come")
        limits["expires"] = expires.timestamp()
    key, secret = new_key(arguments.name, now=now.timestamp(), **limits)

    config = configured(arguments)
    if config is not None and key.name in config.keys:
        hint = "choose another name, or take that one out of the configuration"
        raise InputError(f"{clean(config.origin)} has a key {quote(key.name)} already", path="keys", hint=hint)

    async def act(store: Store) -> None:
        taken = [known for known in named(await saved_keys(store), key.name) if known.revoked is None]
        if taken:
            hint = f"choose another name, or `toolglot keys revoke {taken[0].id}` first"
            raise InputError(f"there is a key {quote(key.name)} already", path="keys", hint=hint)
        await save(store, key)

    place = place_of(arguments, config)
    with_store(place, act)
    if arguments.format == "json":
        terminal.out.line(_json({"key": secret, **_told(key, now, {})}))
    else:
        terminal.out.line(secret)
    if not arguments.quiet:
        page = terminal.err
        page.line(f"made the key {clean(key.name)} ({key.id}) in {clean(place)}")
        page.wrapped(f"it may use {clean(_limits(key, {})) or 'everything'}{_until(key)}")
        page.wrapped("this is the only time that it is shown: keep it where the client finds it")
        page.wrapped("from now on every client of this gateway must have a key, in a running one within five seconds")
    return 0


def _patterns(given: list[str]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(part.strip() for text in given for part in text.split(",") if part.strip()))
    if given and not found:
        raise InputError("no model is named", path="--models", hint="leave the option out to allow all")
    if any(len(part) > 200 or not part.isprintable() for part in found):
        raise InputError("one of these is no pattern of models", path="--models", hint="such as 'gpt-5*'")
    return found


# --- list -------------------------------------------------------------------------------------------


def _list(arguments: argparse.Namespace, terminal: Terminal) -> int:
    now = datetime.now(UTC)
    config = configured(arguments)
    place = place_of(arguments, config)
    own = [each.key for each in keys_of(config, os.environ)]
    keys: list[tuple[ClientKey, dict[str, float]]] = [(key, {}) for key in own]
    if is_there(place):
        keys = with_store(place, lambda store: _with_use(store, own, now))
    shown = [(key, used) for key, used in keys if arguments.all or key.state(now.timestamp()) == "active"]
    if arguments.format == "json":
        terminal.out.line(_json([_told(key, now, used) for key, used in shown]))
        return 0
    if shown:
        rows = [_row(key, used, now) for key, used in shown]
        terminal.out.table(rows, heading=("NAME", "ID", "KEY", "STATE", "CREATED", "MAY USE"))
    hidden = len(keys) - len(shown)
    if not keys:
        where = f"{place} and {config.origin}" if config is not None and config.origin else place
        terminal.note(f"there are no keys in {where}; `toolglot keys add NAME` makes one")
    elif hidden:
        terminal.note(f"{hidden} more {'is' if hidden == 1 else 'are'} revoked or expired: --all shows them")
    return 0


async def _with_use(store: Store, own: list[ClientKey], now: datetime) -> list[tuple[ClientKey, dict[str, float]]]:
    """The keys of the configuration and of the store, and what is used of each budget."""
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
    told = clean(_limits(key, used)) or "everything"
    created = _day(key.created) if key.created else "configured"
    return clean(key.name) or "-", key.id or "-", clean(key.shown), lasts, created, told


def _limits(key: ClientKey, used: dict[str, float]) -> str:
    """What a key may use, in words."""
    parts = [f"models {', '.join(key.models)}"] if key.models else []
    if key.requests_per_minute is not None:
        parts.append(f"{key.requests_per_minute:,} requests a minute")
    if key.tokens_per_minute is not None:
        parts.append(f"{key.tokens_per_minute:,} tokens a minute")
    for name, limit in key.budgets.items():
        unit, period = BUDGETS[name]
        each = "in total" if period == "total" else f"a {period}"
        before = ""
        if name in used:
            before = f"{used[name]:,.0f} of " if unit == "tokens" else f"${used[name]:,.2f} of "
        parts.append(f"{before}{limit:,} tokens {each}" if unit == "tokens" else f"{before}${limit:,f} {each}")
    return "; ".join(parts)


def _until(key: ClientKey) -> str:
    return f", until {_day(key.expires)}" if key.expires is not None else ""


def _day(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}"


def _told(key: ClientKey, now: datetime, used: dict[str, float]) -> dict[str, Any]:
    """A key for other programs."""
    said = {name: value for name, value in asdict(key).items() if name != "hashed"}
    said["source"] = "store" if key.created else "configuration"
    for name in ("created", "expires", "revoked"):
        if not said[name] and name == "created":
            said[name] = None
        if said[name] is not None:
            said[name] = f"{datetime.fromtimestamp(said[name], UTC):%Y-%m-%dT%H:%M:%SZ}"
    limits = {name: float(value) if isinstance(value, Decimal) else value for name, value in said.items()}
    return {**limits, "state": key.state(now.timestamp()), "used": used}


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


# --- revoke -----------------------------------------------------------------------------------------


def _revoke(arguments: argparse.Namespace, terminal: Terminal) -> int:
    config = configured(arguments)
    place = place_of(arguments, config)
    own = [each for each in keys_of(config, os.environ) if each.is_called(arguments.name)]
    known = with_store(place, saved_keys) if is_there(place) else []
    if own and not any(key.revoked is None for key in named(known, arguments.name)):
        hint = f"take it out of {own[0].origin}: running gateways refuse it within seconds"
        raise InputError(f"the key {quote(arguments.name)} is one of the configuration", path="keys", hint=hint)
    if not is_there(place):
        raise InputError(f"there is no store at {place}, and so no key", path="keys", hint="see --config and --store")
    key = with_store(place, lambda store: revoke(store, arguments.name, datetime.now(UTC).timestamp()))
    if not arguments.quiet:
        terminal.err.line(f"revoked {clean(key.name)} ({key.id}); running gateways know it within five seconds")
        for each in own:
            terminal.note(f"{each.origin} has a key of this name too, which stays")
    return 0


# --- keys of the configuration -----------------------------------------------------------------------


class ConfiguredKey(Struct, frozen=True):
    """A client key of a configuration."""

    key: ClientKey
    origin: str
    """Where it stands: the file, or the variable where there is none, and the setting."""

    def is_called(self, name: str) -> bool:
        """Whether somebody means this key: by its name, its id, or the variable that holds it."""
        return bool(name) and name in (self.key.name, self.key.id, self.key.shown, self.key.shown.removeprefix("$"))


def keys_of(config: Config | None, environ: Mapping[str, str]) -> list[ConfiguredKey]:
    """Those of `[keys.NAME]` and of `client_keys`; none, where there is no configuration."""
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
