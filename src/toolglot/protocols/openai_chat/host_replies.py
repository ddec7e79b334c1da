"""Replies of one host as the clients of another read them.

Hosts of this protocol write some things in ways of their own: Mistral sends thinking as parts of the content, and calls
without a type. A client of OpenAI expects content that is a string and thinking in a field beside it; one of Mistral
reads parts, and does not see the field. Law: what every client reads stays as it is.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from toolglot.conversation import Block, Form, Reply, Text, Thinking, ToolCall, Turn
from toolglot.errors import InputError
from toolglot.profiles import Profile
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.openai_chat import reply as codec
from toolglot.protocols.openai_chat.form import MESSAGES, ChatCall, ChatMessage, ChatReply, ChatThinking
from toolglot.protocols.openai_chat.messages import THINKING_FIELDS, position_of

_FIELD: Final = THINKING_FIELDS["reasoning_content"]
_CHUNK: Final = ChatThinking(chunk=[])


def fit_reply(reply: Reply, client: Profile) -> Reply:
    """A reply of another host, or of another protocol, in the ways of writing that the client knows."""
    reads_parts = client.stream.thinking == "parts"
    turn = _with_chunks(reply.turn) if reads_parts else _with_plain_content(reply.turn)
    blocks = tuple([_fit_call(block) if type(block) is ToolCall else block for block in turn.blocks])
    if any(one is not other for one, other in zip(blocks, turn.blocks, strict=True)):
        turn = replace(turn, blocks=blocks)
    form = _fit_choices(reply.form, client)
    if turn is reply.turn and form is reply.form:
        return reply
    return replace(reply, turn=turn, form=form)


def _with_chunks(turn: Turn) -> Turn:
    """The turn with its thinking in chunks."""
    blocks = [_in_chunk(block) if type(block) is Thinking else block for block in turn.blocks]
    if all(one is other for one, other in zip(blocks, turn.blocks, strict=True)):
        return turn
    blocks = [block for block in blocks if type(block) is not Text or block.text]  # a chunk of text is never empty
    form = turn.form if type(turn.form) is ChatMessage else ChatMessage()
    return replace(turn, blocks=tuple(blocks), form=replace(form, content="parts"))


def _in_chunk(block: Thinking) -> Thinking:
    is_chunk = type(block.form) is ChatThinking and block.form.chunk is not None
    return block if is_chunk or not block.text else Thinking(block.text, form=_CHUNK)


def _with_plain_content(turn: Turn) -> Turn:
    """The turn with a string as its content, and its thinking in a field."""
    if type(turn.form) is not ChatMessage or turn.form.content != "parts":
        return turn
    form = MESSAGES["text"] if not turn.form.has_empty_calls else replace(turn.form, content="text")
    blocks = [plain for block in turn.blocks if (plain := _plain_block(block)) is not None]
    if not any(type(block) is Text for block in blocks) and any(type(block) is ToolCall for block in blocks):
        form = replace(form, content="none")
    return replace(turn, blocks=tuple(blocks), form=form)


def _plain_block(block: Block) -> Block | None:
    """A part without what only its host knows; None if nothing of it can be a string."""
    if type(block) is Thinking:
        return Thinking(block.text, form=_FIELD) if block.text else None
    if type(block) is Text:
        return block if block.extra is None else replace(block, extra=None)
    if type(block) is ToolCall or position_of(block) is not None:
        return block
    return None


def _fit_call(call: ToolCall) -> ToolCall:
    """A call with its type, and with arguments that are a string."""
    form = call.form
    if type(form) is not ChatCall or form.is_only_call or not (form.is_untyped or form.arguments in ("object", "none")):
        return call
    arguments = form.arguments if form.arguments == "raw" else None
    return replace(call, form=replace(form, is_untyped=False, arguments=arguments))


def _fit_choices(form: Form | None, client: Profile) -> Form | None:
    """The form with other choices that the client can read."""
    if type(form) is not ChatReply:
        return form
    choices = [_fit_choice(choice, client) for choice in form.choices]
    return form if choices == form.choices else replace(form, choices=choices)


def _fit_choice(choice: Any, client: Profile) -> Any:
    """One of the other choices. One that cannot be read stays as it is."""
    try:
        read = codec.decode({"choices": [choice]})
    except InputError:
        return choice
    fitted = fit_reply(read, client)
    if fitted is read:
        return choice
    written: list[Fields] = codec.encode(fitted)["choices"]
    return written[0]
