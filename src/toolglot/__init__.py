"""One conversation, any client, any model: tool calls that never break.

This module is the public surface; everything else is reached through it.
"""

from toolglot import arguments, ids, profiles
from toolglot.canonical_json import dump, load
from toolglot.conversation import (
    Block,
    Conversation,
    Extra,
    Interaction,
    Issuer,
    Media,
    Opaque,
    Options,
    OutputFormat,
    Reasoning,
    Role,
    Sampling,
    ServerTool,
    SetAside,
    Status,
    Text,
    Thinking,
    ToolCall,
    ToolChoice,
    ToolMetadata,
    ToolResult,
    ToolSpec,
    Turn,
    TurnMetadata,
)
from toolglot.errors import (
    ArgumentsError,
    HistoryError,
    InputError,
    JSONError,
    LimitError,
    ProfileError,
    ToolglotError,
    TruncatedArgumentsError,
    TruncatedJSONError,
    VersionError,
)
from toolglot.history import History, TurnInFlight
from toolglot.ledger import Ledger
from toolglot.limits import Limits
from toolglot.profiles import get_capabilities
from toolglot.report import Entry, Report

__all__ = [
    "ArgumentsError",
    "Block",
    "Conversation",
    "Entry",
    "Extra",
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
    "Opaque",
    "Options",
    "OutputFormat",
    "ProfileError",
    "Reasoning",
    "Report",
    "Role",
    "Sampling",
    "ServerTool",
    "SetAside",
    "Status",
    "Text",
    "Thinking",
    "ToolCall",
    "ToolChoice",
    "ToolMetadata",
    "ToolResult",
    "ToolSpec",
    "ToolglotError",
    "TruncatedArgumentsError",
    "TruncatedJSONError",
    "Turn",
    "TurnInFlight",
    "TurnMetadata",
    "VersionError",
    "arguments",
    "dump",
    "get_capabilities",
    "ids",
    "load",
    "profiles",
]
__version__ = "0.1.0"
