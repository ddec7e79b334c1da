"""The commands of a chat: `/model`, `/undo`, `/save` and others.

A command is a function. The first line of its docstring is its help. It returns the session to continue with, or None
to stay in this one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from toolglot.cli.files.output import open_output
from toolglot.cli.screen.history_view import show_turns
from toolglot.cli.screen.terminal import clean, local_time, plural
from toolglot.cli.screen.transcript_text import markdown_of
from toolglot.cli.screen.transcript_view import TranscriptView, money, safe_line, tokens
from toolglot.cli.session.approval import is_read_only
from toolglot.cli.session.session_host import ForkedSession, NewSession, SessionChoice, StoredSession, full_id
from toolglot.cli.session.session_turn import run_stoppable
from toolglot.conversation import canonical_json
from toolglot.errors import InputError, closest_names, quote
from toolglot.runtime.log.documents import export_session
from toolglot.runtime.log.sessions import fork_session

if TYPE_CHECKING:
    from toolglot.cli.session.chat_session import Chat


class NextSession(Struct, frozen=True):
    """The session to continue with."""

    wanted: SessionChoice | None = None
    """None: leave the chat."""
    model: str = ""
    """The model to use there; empty: that of the session."""
    is_shown: bool = False
    """Whether to show the end of that session."""


LEAVE: Final = NextSession()
Command = Callable[["Chat", str], Awaitable[NextSession | None]]
MAX_LISTED: Final = 60


async def run_command(chat: Chat, line: str) -> NextSession | None:
    """Run the command of a line that begins with a slash."""
    word, _, rest = line[1:].partition(" ")
    command = COMMANDS.get(word.strip().lower())
    if command is None:
        close = closest_names(word, COMMANDS)
        hint = (
            f"did you mean /{close[0]}?"
            if close
            else "/help lists the commands; to send it as a message, begin with a space"
        )
        raise InputError(f"unknown command {quote('/' + word)}", path="", hint=hint)
    return await command(chat, rest.strip())


async def _model(chat: Chat, rest: str) -> NextSession | None:
    """/model [NAME]    switch to a model or a provider; without a name, list them"""
    page = chat.page
    if not rest:
        page.line(f"  current: {page.paint(clean(chat.session.model), 'bold')}")
        names = chat.host.models.names() if chat.host is not None else []
        for name in names[:MAX_LISTED]:
            page.line(f"  {clean(name)}")
        page.line(page.paint("  or PROVIDER/NAME, for any configured provider", "dim"))
        return None
    if chat.host is not None and chat.host.differs(chat.session, rest):
        return _reopen(chat, rest)  # settings of [models] apply when a session is opened
    chat.session.switch(rest)
    simulated = " (simulated)" if chat.is_simulated(chat.session.model) else ""
    chat.view.note(f"switched to {chat.session.model}{simulated}")
    return None


def _reopen(chat: Chat, model: str) -> NextSession:
    """Reopen the session for another model."""
    if not len(chat.session.history):
        return NextSession(NewSession(), model)
    if chat.session.history.turns[0].role == "system":
        chat.view.note("the session keeps its original system prompt")
    if chat.host is None or chat.host.store is None:
        return NextSession(ForkedSession(chat.session.history.fork()), model)
    return NextSession(StoredSession(chat.session.id), model)


async def _tools(chat: Chat, _: str) -> None:
    """/tools           the tools that the model may call"""
    page = chat.page
    rows = [
        (
            clean(tool.name),
            "asks first" if tool.approval and not is_read_only(tool) else "",
            safe_line(tool.spec.description or "", 300),
        )
        for tool in chat.session.tools
    ]
    if rows:
        page.table(rows, heading=("TOOL", "APPROVAL", "DESCRIPTION"))
    else:
        chat.view.note("no tools; add some with --tools FILE.py or --mcp SERVER")


async def _undo(chat: Chat, _: str) -> None:
    """/undo            remove your last message and everything after it"""
    undone = await run_stoppable(chat.session, chat.foreground, chat.session.undo())
    if undone is None:
        chat.view.note("nothing to undo")
        return
    chat.prefill = undone.text if "\n" not in undone.text else ""
    chat.view.note(f"removed: {safe_line(undone.text, 80)} (effects of tools are not undone)")


async def _go(chat: Chat, _: str) -> None:
    """/go              let the model continue without a message"""
    await chat.send(None)


async def _compress(chat: Chat, _: str) -> None:
    """/compress        replace older turns by a summary"""
    with chat.view.busy(f"{chat.session.model} is writing a summary"):
        count = await run_stoppable(chat.session, chat.foreground, chat.session.compress())
    chat.view.note(f"replaced {plural(count, 'turn')} by a summary" if count else "nothing to summarise yet")


async def _fork(chat: Chat, _: str) -> NextSession:
    """/fork            continue in a copy; this session stays as it is"""
    store = chat.host.store if chat.host is not None else None
    if store is None:
        return NextSession(ForkedSession(chat.session.history.fork()), chat.session.model)
    info = await fork_session(store, chat.session.id)
    chat.view.note(f"{chat.session.id} is unchanged; continuing in {info.id}")
    return NextSession(StoredSession(info.id), chat.session.model)


async def _resume(chat: Chat, rest: str) -> NextSession | None:
    """/resume [ID]     continue another session; without an id, list them"""
    if chat.host is None or chat.host.store is None:
        raise InputError("sessions are not stored", path="/resume", hint="start the chat without --no-store")
    if rest:
        return NextSession(StoredSession(await full_id(chat.host.store, rest)), is_shown=True)
    page = chat.page
    rows = [
        (
            info.id + (" *" if info.id == chat.session.id else ""),
            local_time(info.updated),
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
        raise InputError(f"expected a number of turns, got {quote(rest)}", path="/history", hint="/history 10")
    history = chat.session.history.turns
    if not history:
        chat.view.note("no messages yet")
    view = chat.view if chat.foreground.reader.is_interactive else TranscriptView(chat.page)
    show_turns(view, history[-int(rest[:6]) :] if rest else history)
    chat.page.stream.flush()


async def _save(chat: Chat, rest: str) -> None:
    """/save FILE       write the conversation to FILE: .md as text, else JSON"""
    force = rest.endswith(" --force")
    name = rest.removesuffix(" --force").strip()
    if not name or name == "-":
        raise InputError("expected a file", path="/save", hint="/save talk.md, or /save talk.json")
    store = chat.host.store if chat.host is not None else None
    if name.endswith((".md", ".txt")):
        data = markdown_of(chat.session.history.turns).encode("utf-8", "backslashreplace")
    elif store is not None:
        data = await export_session(store, chat.session.id)
    else:
        data = canonical_json.dump(chat.session.history.conversation)
    with open_output(name, chat.terminal, force=force) as output:
        output.write(data)
    chat.view.note(f"wrote {name}")


async def _cost(chat: Chat, _: str) -> None:
    """/cost            tokens and money"""
    session = chat.session
    spent = [*tokens(session.usage), "simulated" if chat.is_simulated(session.model) else money(session.cost)]
    chat.view.note(f"this session: {' · '.join(part for part in spent if part)}")


async def _help(chat: Chat, _: str) -> None:
    """/help            show this help"""
    page = chat.page
    for command in dict.fromkeys(COMMANDS.values()):
        page.line(f"  {(command.__doc__ or '').strip()}")
    page.line(page.paint("  a backslash at the end of a line continues it; Ctrl-C stops a reply, Ctrl-D leaves", "dim"))


async def _quit(_: Chat, __: str) -> NextSession:
    """/quit            leave; the session is stored"""
    return LEAVE


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
