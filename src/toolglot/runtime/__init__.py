"""Sessions, the scheduler and tools: what runs a conversation.

    async with toolglot.Session(model="anthropic/claude-opus-5", tools=[read_file]) as session:
        answer = await session.run("What is in a.txt?")

Needs the extra `runtime`, and `mcp` for tools of MCP servers. It is loaded when it is asked for.
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

from toolglot.runtime.approvals import Allow, AllowAlways, Approve, Deny, Edit
from toolglot.runtime.call_states import CallChange
from toolglot.runtime.compacting import compact
from toolglot.runtime.definitions import define
from toolglot.runtime.log_entries import SessionDamagedError, SessionMissingError, SessionTakenError
from toolglot.runtime.mcp_config import servers_from
from toolglot.runtime.mcp_servers import McpLimits, McpServer, McpServerError, McpServers
from toolglot.runtime.memory_log import Log, MemoryLog
from toolglot.runtime.models import ModelChoice, Models, ProviderModels, UpstreamModels
from toolglot.runtime.scheduler import Journal, RunLimits, Scheduler
from toolglot.runtime.session import Session
from toolglot.runtime.session_documents import export_session, import_session
from toolglot.runtime.session_events import (
    Answer,
    Asking,
    CallChanged,
    CallSeen,
    Compressed,
    Dropped,
    Ended,
    Event,
    Said,
    Switched,
    Thought,
    Told,
    TurnKept,
)
from toolglot.runtime.session_info import SessionInfo
from toolglot.runtime.session_limits import SessionLimits
from toolglot.runtime.session_list import (
    fork_session,
    list_sessions,
    read_session,
    recover_session,
    remove_session,
    rewind_session,
    shrink_session,
)
from toolglot.runtime.session_log import SessionLog
from toolglot.runtime.session_search import search_sessions
from toolglot.runtime.tools import FunctionTool, Output, Tool, ToolBox, ToolContext, ToolError, tool

__all__ = [
    "Allow",
    "AllowAlways",
    "Answer",
    "Approve",
    "Asking",
    "CallChange",
    "CallChanged",
    "CallSeen",
    "Compressed",
    "Deny",
    "Dropped",
    "Edit",
    "Ended",
    "Event",
    "FunctionTool",
    "Journal",
    "Log",
    "McpLimits",
    "McpServer",
    "McpServerError",
    "McpServers",
    "MemoryLog",
    "ModelChoice",
    "Models",
    "Output",
    "ProviderModels",
    "RunLimits",
    "Said",
    "Scheduler",
    "Session",
    "SessionDamagedError",
    "SessionInfo",
    "SessionLimits",
    "SessionLog",
    "SessionMissingError",
    "SessionTakenError",
    "Switched",
    "Thought",
    "Told",
    "Tool",
    "ToolBox",
    "ToolContext",
    "ToolError",
    "TurnKept",
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
