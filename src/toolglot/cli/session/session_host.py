"""Opens sessions, and what they share: models, tools, MCP servers, the store.

    async with SessionHost(settings, approve=…) as host:
        async with host.open(host.wanted) as session: …

Law: everything that was opened is closed, in reverse order, whatever happens.
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

MIN_ID_CHARACTERS: Final = 4
"""Characters of an id that are enough to find the session."""
_MAX_SEARCHED: Final = 1000


class NewSession(Struct, frozen=True):
    """A new session."""


class StoredSession(Struct, frozen=True):
    """A session in the store."""

    id: str


class ForkedSession(Struct, frozen=True):
    """A session that continues a history, and is not stored."""

    history: History


class LatestSession(Struct, frozen=True):
    """The session in the store that was used last."""


SessionChoice = NewSession | StoredSession | ForkedSession | LatestSession


class SessionHost:
    """Opens sessions."""

    def __init__(
        self, settings: SessionSettings, *, approve: Approve | None = None, only_by_name: bool = False
    ) -> None:
        """`only_by_name`: simulate a model only if its name says so."""
        self.settings = settings
        self.approve = approve
        self.config: Config = read_config(settings.config, os.environ)
        self.models: ConfiguredModels = ConfiguredModels(self.config, only_by_name=only_by_name)
        self._loaded: list[Tool] = [each for argument in settings.tools for each in load_tools(argument)]
        self._servers = mcp_servers(settings.mcp) if settings.mcp else None
        self.tools: ToolBox = ToolBox()
        self.store: Store | None = None
        self._stack = AsyncExitStack()
        self._recovered: tuple[RecoveredCall, ...] = ()

    @property
    def wanted(self) -> SessionChoice:
        """The session that the options name."""
        if self.settings.session:
            return StoredSession(self.settings.session)
        return LatestSession() if self.settings.continue_last else NewSession()

    def notes(self, session: Session) -> tuple[str, ...]:
        """Notes for the user."""
        problems = [problem for server in self._servers or () for problem in server.problems]
        return (*self.config.notes, *problems, *self._unused_allow_patterns(), *self.unapplied_settings(session))

    def recovery_notes(self) -> tuple[str, ...]:
        """Notes about calls that had no result when the last process ended."""
        return tuple(map(recovery_note, self._recovered))

    def unapplied_settings(self, session: Session) -> list[str]:
        """Settings of `[models]` that do not apply to this session."""
        route = self.models.route(session.model)
        reasons = [*self._run_settings(session.model).left_out]
        system = self._run_settings(session.model).system
        if system and len(session.history) and not session.history.turns[0].text.startswith(system):
            reasons.append("system: this session started without it")
        notes = [f"[models] {route.alias_of}: not applied here: {'; '.join(reasons)}"] if reasons else []
        others = (name for name in self.settings.fallback if not is_same(self.models.settings(name), route.settings))
        return [
            *notes,
            *(f"--fallback {name} uses the settings of {session.model}, not its own in [models]" for name in others),
        ]

    def differs(self, session: Session, model: str) -> bool:
        """Whether another model has other settings, so that the session must be reopened for it."""
        self.models.find(model)
        return not is_same(self.models.settings(session.model), self.models.settings(model))

    def _unused_allow_patterns(self) -> Iterator[str]:
        """Patterns of `--allow` that match no tool."""
        names = [tool.name for tool in self.tools]
        for pattern in self.settings.allow:
            if pattern != "*" and not any(fnmatchcase(name, pattern) for name in names):
                close = closest_names(pattern, names)
                guess = f"did you mean {close[0]}?" if close else f"tools: {', '.join(names[:10]) or 'none'}"
                yield f"--allow {pattern}: matches no tool; {guess}"

    def _run_settings(self, model: str) -> RunSettings:
        return settings_for(self.models.route(model), base=self.config.policy, tools=self.tools.specs)

    # --- opening and closing ------------------------------------------------------------------------

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
    async def open(self, wanted: SessionChoice, *, model: str = "") -> AsyncIterator[Session]:
        """Open a session. `model` overrides the model of the options and of the session."""
        chosen = model or self.settings.model
        log = await self._log(wanted, chosen)
        self._recovered = log.recovered if isinstance(log, SessionLog) else ()
        try:
            kept = log.model if isinstance(log, SessionLog) else ""
            session = self._session(log, self._initial_model(kept, chosen), chosen)
            opened = await session.__aenter__()
            if chosen:
                opened.switch(chosen)  # the session records the switch
        except BaseException:
            await log.close()
            raise
        try:
            yield opened
        finally:
            await session.__aexit__(None, None, None)
            if isinstance(wanted, NewSession) and self.store is not None and not len(session.history):
                with suppress(ToolglotError):
                    await remove_session(self.store, session.id)  # it is empty

    def _session(self, log: Log, model: str, chosen: str) -> Session:
        settings = self.settings
        called = chosen or model
        run_settings = self._run_settings(self.models.find(called).name)
        return Session(
            model=model,
            tools=self.tools,
            system="\n\n".join(filter(None, (run_settings.system, settings.system))) or None,
            models=self.models,
            fallback=settings.fallback or self._fallbacks(called),
            options=run_settings.options,
            policy=run_settings.policy,
            overrides=self.config.overrides,
            limits=_limits(settings),
            approve=self.approve,
            log=log,
        )

    def _fallbacks(self, name: str) -> tuple[str, ...]:
        """The fallbacks of the model; if it has none, those of the model in the options."""
        return self.models.fallback(name) or self.models.fallback(self.settings.model or name)

    def _initial_model(self, kept: str, chosen: str) -> str:
        """The model to start with: that of the session, if it is still available."""
        if kept:
            try:
                return self.models.find(kept).name
            except InputError as error:
                if not chosen:
                    hint = f"choose another with --model. {error.hint}"
                    raise InputError(
                        f"the session's model is not available: {error.message}", path="model", hint=hint
                    ) from None
        return chosen or self.models.first(os.environ)

    async def _log(self, wanted: SessionChoice, model: str) -> Log:
        if isinstance(wanted, ForkedSession):
            return MemoryLog(wanted.history)
        if self.store is None:
            return MemoryLog()
        if isinstance(wanted, NewSession):
            choice = self.models.find(model or self.models.first(os.environ))
            return await SessionLog.create(self.store, model=choice.name)
        id = wanted.id if isinstance(wanted, StoredSession) else (await self._latest()).id
        return await SessionLog.open(self.store, await full_id(self.store, id))

    async def _latest(self) -> SessionInfo:
        assert self.store is not None  # noqa: S101 - checked in `_log`
        page = await list_sessions(self.store, limit=1)
        if not page.sessions:
            raise InputError("no sessions yet", path="--continue", hint="start one without --continue")
        return page.sessions[0]

    async def sessions(self, limit: int = 20) -> Sequence[SessionInfo]:
        """The sessions that were used last."""
        return (await list_sessions(self.store, limit=limit)).sessions if self.store is not None else ()


def _limits(settings: SessionSettings) -> SessionLimits:
    limits = SessionLimits(max_cost=settings.max_cost)
    return limits if settings.max_turns is None else replace(limits, max_turns=settings.max_turns)


async def full_id(store: Store, id: str) -> str:
    """The full id of a session, from its first or last characters."""
    page = await list_sessions(store, limit=_MAX_SEARCHED)
    known = [info.id for info in page.sessions] + [*page.damaged]
    if id in known or len(id) < MIN_ID_CHARACTERS:
        return id
    fitting = [found for found in known if found.startswith(id) or found.endswith(id)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        some = ", ".join(fitting[:4])
        raise InputError(f"{len(fitting)} sessions begin or end with {quote(id)}", path="session", hint=some)
    raise SessionMissingError(
        f"no session {quote(id)}", path="session", hint="`toolglot sessions list` shows all sessions"
    )


def as_input_error(error: ToolglotError) -> InputError:
    """An error of the library as an error of the command line."""
    if isinstance(error, InputError):
        return _in_command_terms(error)
    if isinstance(error, SessionTakenError):
        message, _, advice = str(error).partition(": ")
        advice = advice.replace("a fork of it can", "a copy (`toolglot sessions fork`) can")
        return InputError(message, path="", hint=advice)
    return InputError(str(error), path="store" if isinstance(error, StoreError) else "")


_COMMANDS: Final = {
    "list_sessions(store)": "`toolglot sessions list`",
    "take it from turn.key": "`toolglot sessions show ID --keys` shows the keys",
    "import_session() reads what export_session() wrote": "use a file that `toolglot sessions export` wrote",
    "open it, or choose another id": "`toolglot chat --session ID` continues it",
    "fork it": "`toolglot sessions fork ID` makes a copy",
    "pass larger LogLimits": "`toolglot sessions fork ID --at KEY` makes a shorter copy",
}
"""Hints of the library, and the same in terms of the command line."""


_OPTION_NAMES: Final = {"$.id": "session", "$.text": "TEXT", "at": "--at", "to": "--to"}


def _in_command_terms(error: InputError) -> InputError:
    """Rewrite the hint and the path for the command line."""
    hint = error.hint
    for call, command in _COMMANDS.items():
        hint = hint.replace(call, command)
    if "recover_session(" in hint:
        hint = "restore the store from a backup, or recover what is readable with toolglot.runtime.recover_session"
    path = _OPTION_NAMES.get(error.path, error.path)
    if (hint, path) == (error.hint, error.path):
        return error
    return InputError(error.message, path=path, hint=hint)
