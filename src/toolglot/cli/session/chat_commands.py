"""What can be done at the prompt of a chat besides talking: `/model`, `/undo`, `/save` and the others.

A command is a function; its docstring's first line is its help. What it gives is where the talk goes on, or None: here.
"""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from toolglot.cli.files.output import open_output
from toolglot.cli.screen.history_view import show_turns
from toolglot.cli.screen.terminal import clean
from toolglot.cli.screen.transcript_text import markdown_of
from toolglot.cli.screen.transcript_view import TranscriptView, money, safe_line, tokens, turns
from toolglot.cli.session.approval import is_reading
from toolglot.cli.session.session_host import ForkedSession, New, StoredSession, Wanted, full_id
from toolglot.cli.session.session_turn import stoppable
from toolglot.conversation import canonical_json
from toolglot.errors import InputError, quote
from toolglot.runtime.log.documents import export_session
from toolglot.runtime.log.sessions import fork_session

if TYPE_CHECKING:
    from toolglot.cli.session.chat_session import Chat


class Next(Struct, frozen=True):
    """Where the talk goes on."""

    wanted: Wanted | None = None
    """None: nowhere."""
    model: str = ""
    """Who is asked there; empty: whoever was."""
    is_shown: bool = False
    """Whether what was said there last is to be shown."""


Leave: Final = Next()
Command = Callable[["Chat", str], Awaitable[Next | None]]
MOST_LISTED: Final = 60


async def do(chat: Chat, said: str) -> Next | None:
    """Do what a line says that begins with a slash."""
    word, _, rest = said[1:].partition(" ")
    command = COMMANDS.get(word.strip().lower())
    if command is None:
        close = difflib.get_close_matches(word[:40], COMMANDS, n=1)
        hint = f"did you mean /{close[0]}?" if close else "/help tells what there is; to say it, begin with a blank"
        raise InputError(f"there is no command {quote('/' + word)}", path="", hint=hint)
    return await command(chat, rest.strip())


async def _model(chat: Chat, rest: str) -> Next | None:
    """/model [NAME]    switch to a model or a provider; without a name, list them"""
    page = chat.page
    if not rest:
        page.line(f"  now: {page.paint(clean(chat.session.model), 'bold')}")
        names = chat.host.models.names() if chat.host is not None else []
        for name in names[:MOST_LISTED]:
            page.line(f"  {clean(name)}")
        page.line(page.paint("  and PROVIDER/NAME of any provider that is configured", "dim"))
        return None
    if chat.host is not None and chat.host.differs(chat.session, rest):
        return _anew(chat, rest)  # what [models] says of a name holds for a session from its opening on
    chat.session.switch(rest)
    simulated = " (simulated)" if chat.is_simulated(chat.session.model) else ""
    chat.view.note(f"from now on {chat.session.model}{simulated}")
    return None


def _anew(chat: Chat, model: str) -> Next:
    """The same session, opened again for another model."""
    if not len(chat.session.history):
        return Next(New(), model)
    if chat.session.history.turns[0].role == "system":
        chat.view.note("the system prompt that the session began with stays")
    if chat.host is None or chat.host.store is None:
        return Next(ForkedSession(chat.session.history.fork()), model)
    return Next(StoredSession(chat.session.id), model)


async def _tools(chat: Chat, _: str) -> None:
    """/tools           the tools that the model may call"""
    page = chat.page
    rows = [
        (
            clean(tool.name),
            "asks" if tool.approval and not is_reading(tool) else "",
            safe_line(tool.spec.description or "", 300),
        )
        for tool in chat.session.tools
    ]
    if rows:
        page.table(rows, heading=("TOOL", "", "WHAT IT DOES"))
    else:
        chat.view.note("there are none: --tools FILE.py and --mcp SERVER bring some")


async def _undo(chat: Chat, _: str) -> None:
    """/undo            remove your last message and everything after it"""
    taken = await stoppable(chat.session, chat.foreground, chat.session.undo())
    if taken is None:
        chat.view.note("there is nothing to take back")
        return
    chat.prefill = taken.text if "\n" not in taken.text else ""
    chat.view.note(f"taken back: {safe_line(taken.text, 80)} (what tools did is done)")


async def _go(chat: Chat, _: str) -> None:
    """/go              let the model continue without a message"""
    await chat.say(None)


async def _compress(chat: Chat, _: str) -> None:
    """/compress        replace older turns by a summary"""
    with chat.view.busy(f"{chat.session.model} writes a summary"):
        count = await stoppable(chat.session, chat.foreground, chat.session.compress())
    chat.view.note(f"a summary took the place of {turns(count)}" if count else "there is too little to summarise")


async def _fork(chat: Chat, _: str) -> Next:
    """/fork            continue in a copy; this session stays as it is"""
    store = chat.host.store if chat.host is not None else None
    if store is None:
        return Next(ForkedSession(chat.session.history.fork()), chat.session.model)
    info = await fork_session(store, chat.session.id)
    chat.view.note(f"{chat.session.id} stays as it is; the talk goes on in {info.id}")
    return Next(StoredSession(info.id), chat.session.model)


async def _resume(chat: Chat, rest: str) -> Next | None:
    """/resume [ID]     continue another session; without an id, list them"""
    if chat.host is None or chat.host.store is None:
        raise InputError("nothing is kept, so there is nothing to go on with", path="/resume", hint="see --store")
    if rest:
        return Next(StoredSession(await full_id(chat.host.store, rest)), is_shown=True)
    page = chat.page
    rows = [
        (
            info.id + (" *" if info.id == chat.session.id else ""),
            when(info.updated),
            str(info.turns),
            safe_line(info.title, 80),
        )
        for info in await chat.host.sessions()
    ]
    page.table(rows, heading=("ID", "LAST USED", "TURNS", "TITLE"))
    return None


async def _history(chat: Chat, rest: str) -> None:
    """/history [N]     show the conversation; with N, the last N turns"""
    if rest and not (rest.isascii() and rest.isdigit() and int(rest[:6]) > 0):
        raise InputError(f"expected a number of turns, not {quote(rest)}", path="/history", hint="/history 10")
    said = chat.session.history.turns
    if not said:
        chat.view.note("nothing was said yet")
    view = chat.view if chat.foreground.reader.is_person else TranscriptView(chat.page)
    show_turns(view, said[-int(rest[:6]) :] if rest else said)
    chat.page.stream.flush()


async def _save(chat: Chat, rest: str) -> None:
    """/save FILE       write the conversation to FILE: .md as text, else JSON"""
    force = rest.endswith(" --force")
    name = rest.removesuffix(" --force").strip()
    if not name or name == "-":
        raise InputError("no file is named", path="/save", hint="/save talk.md, or /save talk.json")
    store = chat.host.store if chat.host is not None else None
    if name.endswith((".md", ".txt")):
        data = markdown_of(chat.session.history.turns).encode("utf-8", "backslashreplace")
    elif store is not None:
        data = await export_session(store, chat.session.id)
    else:
        data = canonical_json.dump(chat.session.history.conversation)
    with open_output(name, chat.terminal, force=force) as output:
        output.write(data)
    chat.view.note(f"written to {name}")


async def _cost(chat: Chat, _: str) -> None:
    """/cost            tokens and money"""
    session = chat.session
    spent = [*tokens(session.usage), "simulated" if chat.is_simulated(session.model) else money(session.cost)]
    chat.view.note(f"this session: {' · '.join(part for part in spent if part)}")


async def _help(chat: Chat, _: str) -> None:
    """/help            this"""
    page = chat.page
    for command in dict.fromkeys(COMMANDS.values()):
        page.line(f"  {(command.__doc__ or '').strip()}")
    page.line(
        page.paint("  a backslash at the end of a line continues it; Ctrl-C stops an answer, Ctrl-D leaves", "dim")
    )


async def _quit(_: Chat, __: str) -> Next:
    """/quit            leave; the session is kept"""
    return Leave


COMMANDS: Final[dict[str, Command]] = {
    "model": _model,
    "tools": _tools,
    "undo": _undo,
    "go": _go,
    "compress": _compress,
    "fork": _fork,
    "resume": _resume,
    "history": _history,
    "save": _save,
    "cost": _cost,
    "help": _help,
    "quit": _quit,
    "exit": _quit,
}


def when(seconds: float) -> str:
    """A time, as a list shows it."""
    return f"{datetime.fromtimestamp(seconds, UTC).astimezone():%Y-%m-%d %H:%M}"
