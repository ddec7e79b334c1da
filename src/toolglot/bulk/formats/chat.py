"""Messages of Chat Completions as datasets write them: the reader that most formats share, and their tools.

    conversation = read_chat(row, notes)

Arguments are a string or an object, calls may lack an id, a type or the `function` around them, results may lack an
id, and the old `function_call` and the role `function` are read too. `weight`, `train` and `loss` of a message say
whether it is trained on.

Law: raises only `InputError`, and keeps the order of keys and the form of numbers.
"""

from __future__ import annotations

from typing import Any, Final

from toolglot.bulk.example import Notes, Row, is_trained, with_training
from toolglot.bulk.formats.call_text import call_of, parse_value
from toolglot.bulk.formats.tool_definitions import read_tools
from toolglot.bulk.formats.turns import split_thinking
from toolglot.conversation import Conversation, Opaque, Options, Text, Thinking, ToolCall, ToolChoice, ToolSpec, Turn
from toolglot.errors import InputError, quote
from toolglot.jsontext import compact
from toolglot.protocols.fields.argument_text import object_of
from toolglot.protocols.openai_chat.blocks import read_call
from toolglot.protocols.openai_chat.messages import PLAIN, HostStyle, read_message, write_turn

ROLES: Final = {
    "human": "user",
    "gpt": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "ai": "assistant",
    "observation": "tool",
    "tool_response": "tool",
    "function_response": "tool",
    "ipython": "tool",
}
"""Other names of roles."""
_FLAGS: Final = frozenset({"weight", "train", "loss", "training"})
_KNOWN_ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool"})
_PLAIN_KEYS: Final = frozenset({"role", "content"})
CHAT_COLUMNS: Final = frozenset({"messages", "tools", "functions", "parallel_tool_calls"})


def read_chat(row: Row, notes: Notes, *, field: str = "messages", tags: bool = True) -> Conversation:
    """The conversation of a row with messages.

    tags: whether `<think>` at the start of a text is thinking.
    """
    parallel = row.get("parallel_tool_calls")
    options = Options(tool_choice=ToolChoice(parallel=parallel)) if isinstance(parallel, bool) else Options()
    return Conversation(
        read_messages(row.get(field), notes, f"$.{field}", tags=tags),
        read_tools(row.get("tools") or row.get("functions"), notes),
        options,
    )


def read_messages(value: Any, notes: Notes, path: str, *, tags: bool = True) -> tuple[Turn, ...]:
    """The turns of a list of messages, or of JSON of one."""
    if isinstance(value, str):
        value = parse_value(value, path)
    if not isinstance(value, list) or not value:
        raise InputError(f"expected a list of messages, got {quote(value)}", path=path)
    return tuple(_turn(message, notes, f"{path}[{number}]", tags=tags) for number, message in enumerate(value))


def _turn(message: Any, notes: Notes, path: str, *, tags: bool) -> Turn:
    if not isinstance(message, dict):
        raise InputError(f"expected a message, got {quote(message)}", path=path)
    if (
        message.keys() == _PLAIN_KEYS
        and type(message["content"]) is str
        and not (tags and message["role"] == "assistant")
    ):
        role = message["role"]
        if role in ("user", "system", "developer"):
            return Turn(role, (Text(message["content"]),))
    return _any_turn(message, notes, path, tags=tags)


def _any_turn(message: Row, notes: Notes, path: str, *, tags: bool) -> Turn:
    fields = {key: value for key, value in message.items() if value is not None}
    role = fields.get("role")
    train = None if _FLAGS.isdisjoint(fields) else _training(fields)
    if role == "function":
        fields = {**fields, "role": "tool"}
    elif isinstance(role, str) and role in ROLES:
        fields["role"] = ROLES[role]
    if not isinstance(fields.get("role"), str) or fields["role"] not in _KNOWN_ROLES:
        raise InputError(f"unknown role {quote(role)}", path=f"{path}.role", hint="user, assistant, system or tool")
    try:
        turn = _assistant(fields, notes, path, tags=tags) if fields["role"] == "assistant" else _other(fields)
    except InputError as error:
        if not error.path.startswith("$"):
            error.path = f"{path}{error.path}"
        raise
    return turn if train is None else with_training(turn, train)


def _training(fields: Row) -> bool | None:
    """Whether the message is trained on, as its flags say; the flags are taken out."""
    found: bool | None = None
    for flag in sorted(_FLAGS):
        value = fields.get(flag)
        if isinstance(value, bool) or (isinstance(value, int | float) and value in (0, 1)):
            found = bool(value)
            del fields[flag]
    return found


def _other(fields: Row) -> Turn:
    if fields["role"] == "tool" and "content" not in fields:
        fields["content"] = ""
    if isinstance(fields.get("content"), dict):
        fields["content"] = compact(fields["content"])
    return read_message(fields)


def _assistant(fields: Row, notes: Notes, path: str, *, tags: bool) -> Turn:
    calls = fields.pop("tool_calls", None)
    old = fields.pop("function_call", None)
    thinking = fields.pop("thinking", None)
    if calls is None and old is None and thinking is None and not tags:
        return read_message(fields)
    if isinstance(calls, str):
        calls = parse_value(calls, f"{path}.tool_calls") if calls.strip() else None
    if old is not None:
        calls = [*(calls or ()), {"function": old}]
        notes.add("converted", "an old function_call became a tool call", path, gravity="housekeeping")
    turn = read_message(fields)
    blocks = list(turn.blocks)
    if tags and blocks and isinstance(blocks[0], Text) and not any(isinstance(block, Thinking) for block in blocks):
        said, rest = split_thinking(blocks[0].text)
        if said:
            blocks[:1] = [Thinking(said), Text(rest)] if rest else [Thinking(said)]
    if isinstance(thinking, str) and thinking:
        blocks.insert(0, Thinking(thinking))
    if calls:
        if not isinstance(calls, list):
            raise InputError(f"expected a list of calls, got {quote(calls)}", path=f"{path}.tool_calls")
        blocks += [_call(call, f"{path}.tool_calls[{n}]") for n, call in enumerate(calls) if call is not None]
    return Turn("assistant", tuple(blocks), extra=turn.extra)


def _call(call: Any, path: str) -> ToolCall | Opaque:
    if not isinstance(call, dict):
        raise InputError(f"expected a call, got {quote(call)}", path=path)
    inner = call.get("function")
    if isinstance(inner, dict) and type(inner.get("arguments")) is str and len(call) == 3 and len(inner) == 2:
        return read_call(call)
    if call.get("type") == "custom" and isinstance(call.get("custom"), dict):
        return read_call(call)
    written = call_of(call, path)
    id = call.get("id")
    return written.as_call(id if isinstance(id, str) else str(id) if isinstance(id, int) else "")


# --- writing ----------------------------------------------------------------------------------------


def write_messages(
    turns: tuple[Turn, ...],
    *,
    style: HostStyle = PLAIN,
    objects: bool = False,
    names: bool = False,
    flag: str = "",
    flags: tuple[Any, Any] = (0, 1),
) -> list[Row]:
    """Turns as messages.

    style: what the host wants written.
    objects: whether arguments are objects.
    names: whether results say the name of their tool.
    flag: the field that says whether a turn is trained on, and what it is for no and for yes.
    """
    messages: list[Row] = []
    called: dict[str, str] = {}
    for turn in turns:
        start = len(messages)
        write_turn(turn, messages, style)
        calls = turn.calls
        if names:
            called.update({call.id: call.name for call in calls})
            _name_results(messages[start:], called)
        if objects and calls:
            _write_objects(messages[start], calls)
        train = is_trained(turn)
        if flag and train is not None and turn.role == "assistant" and start < len(messages):
            messages[start][flag] = flags[train]
    return messages


def _name_results(messages: list[Row], called: dict[str, str]) -> None:
    for number, message in enumerate(messages):
        if message["role"] == "tool" and "name" not in message:
            name = called.get(message.get("tool_call_id", ""), "")
            if name:
                content = message.pop("content", "")
                messages[number] = message
                message["name"] = name
                message["content"] = content


def _write_objects(message: Row, calls: tuple[ToolCall, ...]) -> None:
    written = [entry for entry in message.get("tool_calls", ()) if "function" in entry]
    plain = [call for call in calls if call.type != "custom"]
    for entry, call in zip(written, plain, strict=False):
        if call.arguments is not None or not call.raw_input:
            entry["function"] = {"name": call.name, "arguments": object_of(call)}


def write_tools(tools: tuple[ToolSpec, ...]) -> list[Row]:
    """Tools as Chat Completions defines them."""
    return [write_tool(tool) for tool in tools]


def write_tool(tool: ToolSpec) -> Row:
    function: Row = {"name": tool.name}
    if tool.description is not None:
        function["description"] = tool.description
    function["parameters"] = tool.parameters if tool.parameters is not None else {"type": "object", "properties": {}}
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def has_messages(row: Row, field: str = "messages") -> bool:
    """Whether a column holds messages with roles."""
    value = row.get(field)
    first = value[0] if isinstance(value, list) and value else None
    return isinstance(first, dict) and isinstance(first.get("role"), str)


def first_call(row: Row, field: str = "messages") -> Row | None:
    """The first call of a row's messages."""
    for message in row.get(field) or ():
        calls = message.get("tool_calls") if isinstance(message, dict) else None
        if isinstance(calls, list) and calls and isinstance(calls[0], dict):
            return calls[0]
    return None


def call_arguments(call: Row | None) -> Any:
    """The arguments of a call, as they are written."""
    inner = call.get("function") if call is not None else None
    return inner.get("arguments") if isinstance(inner, dict) else None
