"""Sessions, the scheduler and tools: what runs a conversation.

    async with toolglot.Session(model="anthropic/claude-opus-5", tools=[read_file]) as session:
        result = await session.run("What is in a.txt?")

Needs the extra `runtime`, and `mcp` for tools of MCP servers. `toolglot` imports it on first use.
"""

from __future__ import annotations

from toolglot.errors import InputError, how_to_install

try:
    import anyio  # noqa: F401 - to say at once what is missing
    import docstring_parser  # noqa: F401
except ImportError:
    raise InputError(
        "sessions and tools need packages that are not installed", path="", hint=how_to_install("runtime")
    ) from None

from toolglot.runtime.log.documents import export_session, import_session
from toolglot.runtime.log.entries import SessionDamagedError, SessionMissingError, SessionTakenError
from toolglot.runtime.log.info import SessionInfo
from toolglot.runtime.log.memory_log import Log, MemoryLog
from toolglot.runtime.log.search import search_sessions
from toolglot.runtime.log.session_log import SessionLog
from toolglot.runtime.log.sessions import (
    fork_session,
    list_sessions,
    read_session,
    recover_session,
    remove_session,
    rewind_session,
    shrink_session,
)
from toolglot.runtime.mcp.config import servers_from
from toolglot.runtime.mcp.servers import McpLimits, McpServer, McpServerError, McpServers
from toolglot.runtime.scheduler.approvals import Allow, AllowAlways, Approve, Deny, Edit
from toolglot.runtime.scheduler.call_states import CallChange
from toolglot.runtime.scheduler.scheduler import Journal, RunLimits, Scheduler
from toolglot.runtime.session.compacting import compact
from toolglot.runtime.session.events import (
    AttemptDiscarded,
    CallChanged,
    CallReceived,
    ChangeReported,
    HistoryCompressed,
    ModelSwitched,
    RequestStarted,
    RunFinished,
    RunResult,
    SessionEvent,
    TextReceived,
    ThinkingReceived,
    TurnCommitted,
)
from toolglot.runtime.session.limits import SessionLimits
from toolglot.runtime.session.models import ModelChoice, Models, ProviderModels, UpstreamModels
from toolglot.runtime.session.session import Session
from toolglot.runtime.tools.definitions import define
from toolglot.runtime.tools.toolbox import FunctionTool, Output, Tool, ToolBox, ToolContext, ToolError, tool

__all__ = [
    "Allow",
    "AllowAlways",
    "Approve",
    "AttemptDiscarded",
    "CallChange",
    "CallChanged",
    "CallReceived",
    "ChangeReported",
    "Deny",
    "Edit",
    "FunctionTool",
    "HistoryCompressed",
    "Journal",
    "Log",
    "McpLimits",
    "McpServer",
    "McpServerError",
    "McpServers",
    "MemoryLog",
    "ModelChoice",
    "ModelSwitched",
    "Models",
    "Output",
    "ProviderModels",
    "RequestStarted",
    "RunFinished",
    "RunLimits",
    "RunResult",
    "Scheduler",
    "Session",
    "SessionDamagedError",
    "SessionEvent",
    "SessionInfo",
    "SessionLimits",
    "SessionLog",
    "SessionMissingError",
    "SessionTakenError",
    "TextReceived",
    "ThinkingReceived",
    "Tool",
    "ToolBox",
    "ToolContext",
    "ToolError",
    "TurnCommitted",
    "UpstreamModels",
    "compact",
    "define",
    "export_session",
    "fork_session",
    "import_session",
    "list_sessions",
    "read_session",
    "recover_session",
    "remove_session",
    "rewind_session",
    "search_sessions",
    "servers_from",
    "shrink_session",
    "tool",
]
