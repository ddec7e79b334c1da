"""What the sessions of one command share: models, tools, MCP servers, the store. And the sessions themselves.

    async with SessionHost(settings, approve=…) as host:
        async with await host.open(host.wanted) as session: …

Law: everything that was opened is closed, in the reverse order, whatever happened.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from fnmatch import fnmatchcase
from types import TracebackType
from typing import Final, Self

from msgspec import Struct
from msgspec.structs import replace

from toolglot.cli.route_settings import RunSettings, is_same, settings_for
from toolglot.cli.screen.history_view import recovery_note
from toolglot.cli.session.session_models import ConfiguredModels
from toolglot.cli.session.session_options import SessionSettings
from toolglot.cli.session.session_tools import load_tools, mcp_servers
from toolglot.errors import InputError, ToolglotError, closest_names, quote
from toolglot.gateway.config.settings import Config, read_config
from toolglot.history.history import History
from toolglot.runtime.log.info import SessionInfo
from toolglot.runtime.log.memory_log import Log, MemoryLog
from toolglot.runtime.log.session_log import RecoveredCall, SessionLog, SessionMissingError, SessionTakenError
from toolglot.runtime.log.sessions import list_sessions, remove_session
from toolglot.runtime.scheduler.approvals import Approve
from toolglot.runtime.session.limits import SessionLimits
from toolglot.runtime.session.session import Session
from toolglot.runtime.tools.toolbox import Tool, ToolBox
from toolglot.store import Store, StoreError, open_store

SHORTEST_ID: Final = 4
"""Letters of an id from which on it can be guessed."""
_MOST_GUESSED: Final = 1000


class New(Struct, frozen=True):
    """A session that is not there yet."""


class StoredSession(Struct, frozen=True):
    """A session of the store."""

    id: str


class ForkedSession(Struct, frozen=True):
    """A session that goes on from a history, and is kept nowhere."""

    history: History


class Latest(Struct, frozen=True):
    """The session of the store that was used last."""


Wanted = New | StoredSession | ForkedSession | Latest


class SessionHost:
    """Opens sessions."""

    def __init__(
        self, settings: SessionSettings, *, approve: Approve | None = None, only_by_name: bool = False
    ) -> None:
        """`only_by_name`: no model is simulated that was not named so."""
        self.settings = settings
        self.approve = approve
        self.config: Config = read_config(settings.config, os.environ)
        self.models: ConfiguredModels = ConfiguredModels(self.config, only_by_name=only_by_name)
        self._loaded: list[Tool] = [each for given in settings.tools for each in load_tools(given)]
        self._servers = mcp_servers(settings.mcp) if settings.mcp else None
        self.tools: ToolBox = ToolBox()
        self.store: Store | None = None
        self._stack = AsyncExitStack()
        self._recovered: tuple[RecoveredCall, ...] = ()

    @property
    def wanted(self) -> Wanted:
        """The session that the options name."""
        if self.settings.session:
            return StoredSession(self.settings.session)
        return Latest() if self.settings.go_on else New()

    def notes(self, session: Session) -> tuple[str, ...]:
        """What is worth telling whoever runs the command."""
        problems = [problem for server in self._servers or () for problem in server.problems]
        return (*self.config.notes, *problems, *self._idle_leaves(), *self.left_out(session))

    def recovery_notes(self) -> tuple[str, ...]:
        """What became of the calls that had no result when the process ended that ran the session before."""
        return tuple(map(recovery_note, self._recovered))

    def left_out(self, session: Session) -> list[str]:
        """What `[models]` says of a session's models and does not hold in it."""
        route = self.models.route(session.model)
        told = [*self._as_set(session.model).left_out]
        system = self._as_set(session.model).system
        if system and len(session.history) and not session.history.turns[0].text.startswith(system):
            told.append("system: this session began without it")
        notes = [f"[models] {route.alias_of}: not applied here: {'; '.join(told)}"] if told else []
        others = (name for name in self.settings.fallback if not is_same(self.models.settings(name), route.settings))
        return [
            *notes,
            *(f"--fallback {name} gets what is set for {session.model}, not its own of [models]" for name in others),
        ]

    def differs(self, session: Session, model: str) -> bool:
        """Whether another model is asked in another way, so that a session has to be opened anew for it."""
        self.models.find(model)
        return not is_same(self.models.settings(session.model), self.models.settings(model))

    def _idle_leaves(self) -> Iterator[str]:
        """Tools that are allowed and that nobody has."""
        names = [tool.name for tool in self.tools]
        for pattern in self.settings.allow:
            if pattern != "*" and not any(fnmatchcase(name, pattern) for name in names):
                close = closest_names(pattern, names)
                guess = f"did you mean {close[0]}?" if close else f"there are {', '.join(names[:10]) or 'none'}"
                yield f"--allow {pattern}: no tool is called so; {guess}"

    def _as_set(self, model: str) -> RunSettings:
        return settings_for(self.models.route(model), base=self.config.policy, tools=self.tools.specs)

    # --- its life -----------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        try:
            self._stack.push_async_callback(self.models.close)
            if self.settings.store:
                self.store = open_store(self.settings.store, durable=True)
                self._stack.push_async_callback(self.store.close)
            if self._servers is not None:
                self.tools = await self._stack.enter_async_context(self._servers)
            self.tools.add(*self._loaded)
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    # --- sessions -----------------------------------------------------------------------------------

    @asynccontextmanager
    async def open(self, wanted: Wanted, *, model: str = "") -> AsyncIterator[Session]:
        """A session. `model`: who is asked, in the place of what the options and the session say."""
        chosen = model or self.settings.model
        log = await self._log(wanted, chosen)
        self._recovered = log.recovered if isinstance(log, SessionLog) else ()
        try:
            kept = log.model if isinstance(log, SessionLog) else ""
            session = self._session(log, self._asked_first(kept, chosen), chosen)
            opened = await session.__aenter__()
            if chosen:
                opened.switch(chosen)  # the session knows, and keeps, that it is another one
        except BaseException:
            await log.close()
            raise
        try:
            yield opened
        finally:
            await session.__aexit__(None, None, None)
            if isinstance(wanted, New) and self.store is not None and not len(session.history):
                with suppress(ToolglotError):
                    await remove_session(self.store, session.id)  # nothing was said in it

    def _session(self, log: Log, model: str, chosen: str) -> Session:
        settings = self.settings
        asked = chosen or model
        as_set = self._as_set(self.models.find(asked).name)
        return Session(
            model=model,
            tools=self.tools,
            system="\n\n".join(filter(None, (as_set.system, settings.system))) or None,
            models=self.models,
            fallback=settings.fallback or self._stand_ins(asked),
            options=as_set.options,
            policy=as_set.policy,
            overrides=self.config.overrides,
            limits=_limits(settings),
            approve=self.approve,
            log=log,
        )

    def _stand_ins(self, asked: str) -> tuple[str, ...]:
        """Those of the name that is asked; a name in full has none, and then those of the options' model hold."""
        return self.models.fallback(asked) or self.models.fallback(self.settings.model or asked)

    def _asked_first(self, kept: str, chosen: str) -> str:
        """The model that a session has before another one is chosen: its own, where it can still be asked."""
        if kept:
            try:
                return self.models.find(kept).name
            except InputError as error:
                if not chosen:
                    hint = f"name another one with --model. {error.hint}"
                    raise InputError(
                        f"the session's model cannot be asked: {error.message}", path="model", hint=hint
                    ) from None
        return chosen or self.models.first(os.environ)

    async def _log(self, wanted: Wanted, model: str) -> Log:
        if isinstance(wanted, ForkedSession):
            return MemoryLog(wanted.history)
        if self.store is None:
            return MemoryLog()
        if isinstance(wanted, New):
            asked = self.models.find(model or self.models.first(os.environ))
            return await SessionLog.create(self.store, model=asked.name)
        id = wanted.id if isinstance(wanted, StoredSession) else (await self._latest()).id
        return await SessionLog.open(self.store, await full_id(self.store, id))

    async def _latest(self) -> SessionInfo:
        assert self.store is not None  # noqa: S101 - for the type checker: `_log` has looked
        page = await list_sessions(self.store, limit=1)
        if not page.sessions:
            raise InputError("there is no session yet", path="--continue", hint="leave it out to begin one")
        return page.sessions[0]

    async def sessions(self, limit: int = 20) -> Sequence[SessionInfo]:
        """Those that were used last."""
        return (await list_sessions(self.store, limit=limit)).sessions if self.store is not None else ()


def _limits(settings: SessionSettings) -> SessionLimits:
    given = SessionLimits(max_cost=settings.max_cost)
    return given if settings.max_turns is None else replace(given, max_turns=settings.max_turns)


async def full_id(store: Store, id: str) -> str:
    """The id of the session that is meant: it may be given by its first or last letters."""
    page = await list_sessions(store, limit=_MOST_GUESSED)
    known = [info.id for info in page.sessions] + [*page.damaged]
    if id in known or len(id) < SHORTEST_ID:
        return id
    fitting = [found for found in known if found.startswith(id) or found.endswith(id)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        some = ", ".join(fitting[:4])
        raise InputError(f"{len(fitting)} sessions begin or end with {quote(id)}", path="session", hint=some)
    raise SessionMissingError(
        f"there is no session {quote(id)}", path="session", hint="`toolglot sessions list` shows those that there are"
    )


def as_input_error(error: ToolglotError) -> InputError:
    """What cannot go on, for the command line: what, where, and which command helps."""
    if isinstance(error, InputError):
        return _in_commands(error)
    if isinstance(error, SessionTakenError):
        message, _, advice = str(error).partition(": ")
        advice = advice.replace("a fork of it can", "a copy (`toolglot sessions fork`) can")
        return InputError(message, path="", hint=advice)
    return InputError(str(error), path="store" if isinstance(error, StoreError) else "")


_COMMANDS: Final = {
    "list_sessions(store)": "`toolglot sessions list`",
    "take it from turn.key": "`toolglot sessions show ID --keys` tells the keys",
    "import_session() reads what export_session() wrote": "it reads what `toolglot sessions export` wrote",
    "open it, or give another id": "`toolglot chat --session ID` goes on with it",
    "fork it": "`toolglot sessions fork ID` makes a copy",
    "give larger LogLimits": "`toolglot sessions fork ID --at KEY` makes a shorter copy",
}
"""What the library advises its callers, and how the same is done at a prompt."""


_PLACES: Final = {"$.id": "session", "at": "--at", "to": "--to"}


def _in_commands(error: InputError) -> InputError:
    """An error of the library in the words of the command line."""
    hint = error.hint
    for call, command in _COMMANDS.items():
        hint = hint.replace(call, command)
    if "recover_session(" in hint:
        hint = "restore the store from a backup; toolglot.runtime.recover_session keeps what can be read"
    path = _PLACES.get(error.path, error.path)
    if (hint, path) == (error.hint, error.path):
        return error
    return InputError(error.message, path=path, hint=hint)
