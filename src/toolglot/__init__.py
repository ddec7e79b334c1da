"""One conversation, any client, any model: tool calls that never break.

This module is the public surface; everything else is reached through it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from toolglot import arguments, dialects, profiles
from toolglot.conversation import (
    Block,
    Compaction,
    Conversation,
    Extra,
    Failure,
    FailureKind,
    Interaction,
    Issuer,
    Media,
    Opaque,
    Options,
    OutputFormat,
    Reasoning,
    Reply,
    Role,
    Sampling,
    ServerTool,
    SetAside,
    Status,
    Text,
    Thinking,
    ToolCall,
    ToolChange,
    ToolChoice,
    ToolMetadata,
    ToolReference,
    ToolResult,
    ToolSpec,
    Turn,
    TurnMetadata,
    Usage,
    ids,
)
from toolglot.conversation.canonical_json import dump, load
from toolglot.conversation.report import Entry, Report
from toolglot.errors import (
    ArgumentsError,
    EmptyConversationError,
    HistoryError,
    InputError,
    JSONError,
    LimitError,
    ModelProtocolError,
    ProfileError,
    RefusedError,
    RenderError,
    ServerToolError,
    StoredHistoryError,
    ToolglotError,
    ToolProtocolError,
    TruncatedArgumentsError,
    TruncatedJSONError,
    UnknownNameError,
    VersionError,
)
from toolglot.history.attempts import Attempt, Shown
from toolglot.history.history import History, TurnInFlight
from toolglot.history.ledger import Ledger
from toolglot.limits import Limits
from toolglot.middleware import MiddlewareChain, Request, Response, SchemaTranslator, ToolingMiddleware, ToolMiddleware
from toolglot.policy import Policy
from toolglot.profiles import Capabilities, get_capabilities, register_capabilities
from toolglot.protocols.errors.failures import ProviderError
from toolglot.referee import Violation, lint
from toolglot.translate.call_accumulator import ToolCallAccumulator
from toolglot.translate.converted import Converted
from toolglot.translate.parsers import ReplyParser, ToolParser, get_parser, register_parser, validate_tool_call
from toolglot.translate.replies import ConvertedReply, convert_reply
from toolglot.translate.requests import (
    ConvertedError,
    ConvertedRequest,
    ReceivedRequest,
    convert,
    convert_error,
    error_for,
    read_request,
    repair,
    request_for,
)
from toolglot.translate.stream_reader import StreamReader
from toolglot.translate.streams import StreamTranslator

if TYPE_CHECKING:
    from toolglot import agent_files, runtime
    from toolglot.clients import async_client, client
    from toolglot.dialects import (
        Detection,
        Dialect,
        ParsedText,
        TextToolStream,
        detect,
        detect_format,
        parse_text,
        register_dialect,
        to_prompt,
        write_calls,
    )
    from toolglot.runtime import Scheduler, Session, Tool, ToolBox, ToolContext, ToolError, tool

__all__ = [
    "ArgumentsError",
    "Attempt",
    "Block",
    "Capabilities",
    "Compaction",
    "Conversation",
    "Converted",
    "ConvertedError",
    "ConvertedReply",
    "ConvertedRequest",
    "Detection",
    "Dialect",
    "EmptyConversationError",
    "Entry",
    "Extra",
    "Failure",
    "FailureKind",
    "History",
    "HistoryError",
    "InputError",
    "Interaction",
    "Issuer",
    "JSONError",
    "Ledger",
    "LimitError",
    "Limits",
    "Media",
    "MiddlewareChain",
    "ModelProtocolError",
    "Opaque",
    "Options",
    "OutputFormat",
    "ParsedText",
    "Policy",
    "ProfileError",
    "ProviderError",
    "Reasoning",
    "ReceivedRequest",
    "RefusedError",
    "RenderError",
    "Reply",
    "ReplyParser",
    "Report",
    "Request",
    "Response",
    "Role",
    "Sampling",
    "Scheduler",
    "SchemaTranslator",
    "ServerTool",
    "ServerToolError",
    "Session",
    "SetAside",
    "Shown",
    "Status",
    "StoredHistoryError",
    "StreamReader",
    "StreamTranslator",
    "Text",
    "TextToolStream",
    "Thinking",
    "Tool",
    "ToolBox",
    "ToolCall",
    "ToolCallAccumulator",
    "ToolChange",
    "ToolChoice",
    "ToolContext",
    "ToolError",
    "ToolMetadata",
    "ToolMiddleware",
    "ToolParser",
    "ToolProtocolError",
    "ToolReference",
    "ToolResult",
    "ToolSpec",
    "ToolglotError",
    "ToolingMiddleware",
    "TruncatedArgumentsError",
    "TruncatedJSONError",
    "Turn",
    "TurnInFlight",
    "TurnMetadata",
    "UnknownNameError",
    "Usage",
    "VersionError",
    "Violation",
    "agent_files",
    "arguments",
    "async_client",
    "client",
    "convert",
    "convert_error",
    "convert_reply",
    "detect",
    "detect_format",
    "dialects",
    "dump",
    "error_for",
    "get_capabilities",
    "get_parser",
    "ids",
    "lint",
    "load",
    "parse_text",
    "profiles",
    "read_request",
    "register_capabilities",
    "register_dialect",
    "register_parser",
    "repair",
    "request_for",
    "runtime",
    "to_prompt",
    "tool",
    "validate_tool_call",
    "write_calls",
]
__version__ = "0.1.0"

_DIALECTS: Final = frozenset(dialects.__all__) & frozenset(__all__)
"""What reads calls in text is loaded when it is first asked for."""
_CLIENTS: Final = frozenset({"async_client", "client"})
"""So is the gateway in this process."""
_RUNTIME: Final = frozenset({"Scheduler", "Session", "Tool", "ToolBox", "ToolContext", "ToolError", "tool"})
"""And what runs tools."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _DIALECTS:
            home = dialects
        elif name in _CLIENTS:
            home = importlib.import_module("toolglot.clients")
        elif name in _RUNTIME:
            home = importlib.import_module("toolglot.runtime")
        elif name in ("agent_files", "runtime"):
            return importlib.import_module(f"toolglot.{name}")
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(home, name)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
