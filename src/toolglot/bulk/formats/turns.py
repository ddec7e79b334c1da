"""What readers and writers of many formats share: turns made of text, calls and results without ids, and back.

    turns = TurnBuilder(notes)
    turns.say("user", "What is here?")
    turns.model("", calls=[WrittenCall("ls", {"path": "."})])
    turns.results([("ls", "a.txt")])

Calls get the ids `call00001`, `call00002`, … in their order: a form that every provider accepts, so that no finding is
about an id that the data does not have. A result belongs to the first open call of its name, or else to the first open
call.

Law: pure; what is dropped on the way into a poorer form is reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from toolglot.bulk.example import Notes, is_trained, with_training
from toolglot.bulk.formats.call_text import WrittenCall
from toolglot.conversation import Block, Media, Opaque, Role, Text, Thinking, ToolCall, ToolResult, Turn
from toolglot.errors import InputError, quote
from toolglot.jsontext import compact
from toolglot.protocols.fields.argument_text import object_of
from toolglot.protocols.fields.media import data_url, read_data_url

IMAGE: Final = "<image>"
_THINK: Final = re.compile(r"\A\s*<think>\n?")
_THINK_END: Final = "</think>"


class TurnBuilder:
    """Makes turns, and pairs results with the calls before them."""

    def __init__(self, notes: Notes) -> None:
        self.turns: list[Turn] = []
        self._notes = notes
        self._count = 0
        self._open: list[tuple[str, str]] = []

    def say(self, role: Role, text: str, images: ImageColumn | None = None) -> None:
        blocks: list[Block] = images.split(text) if images is not None else [Text(text)]
        self.turns.append(Turn(role, tuple(blocks)))

    def model(
        self,
        text: str,
        *,
        calls: Iterable[WrittenCall] = (),
        thinking: str = "",
        train: bool | None = None,
        is_continued: bool = False,
    ) -> None:
        """A turn of the model. `is_continued`: its calls belong to the turn before, if that is the model's."""
        blocks: list[Block] = [Thinking(thinking)] if thinking else []
        if text:
            blocks.append(Text(text))
        before = self.turns[-1] if self.turns else None
        is_continued = is_continued and before is not None and before.role == "assistant"
        if not is_continued:
            self._open = []
        for call in calls:
            self._count += 1
            id = f"call{self._count:05}"
            self._open.append((id, call.name))
            blocks.append(call.as_call(id))
        if is_continued and before is not None:
            turn = Turn("assistant", (*before.blocks, *blocks), metadata=before.metadata)
            self.turns.pop()
        else:
            turn = Turn("assistant", tuple(blocks))
        self.turns.append(turn if train is None else with_training(turn, train))

    @property
    def open_calls(self) -> int:
        """How many calls have no result yet."""
        return len(self._open)

    def results(self, results: Sequence[tuple[str, str]], *, is_error: bool = False) -> None:
        """Results of the open calls: the name of the tool, where it is known, and the text."""
        blocks: list[Block] = []
        for name, content in results:
            id, called = self._answered(name)
            blocks.append(ToolResult(id, content, is_error, name=name or called, is_complete=True))
        self.turns.append(Turn("tool", tuple(blocks)))

    def _answered(self, name: str) -> tuple[str, str]:
        position = next((n for n, (_, called) in enumerate(self._open) if name and called == name), 0)
        if not self._open:
            self._count += 1
            return f"none{self._count:05}", ""
        if name and self._open[position][1] != name:
            self._notes.add("matched", "a result names a tool that was not called; it was paired by order", "")
        return self._open.pop(position)


class ImageColumn:
    """The images of a row, which `<image>` in its texts stands for, in order."""

    def __init__(self, images: Any, path: str) -> None:
        listed = images if isinstance(images, list) else [] if images is None else [images]
        self._images = [read_image(image, f"{path}[{number}]") for number, image in enumerate(listed)]
        self._next = 0

    def split(self, text: str) -> list[Block]:
        """A text with the images in it."""
        if self._next >= len(self._images) or IMAGE not in text:
            return [Text(text)]
        blocks: list[Block] = []
        pieces = text.split(IMAGE)
        for number, piece in enumerate(pieces):
            if piece:
                blocks.append(Text(piece))
            if number == len(pieces) - 1:
                break
            if self._next < len(self._images):
                blocks.append(self._images[self._next])
                self._next += 1
            else:
                blocks.append(Text(IMAGE))
        return blocks

    def fill(self, turns: Iterable[Turn]) -> list[Turn]:
        """Turns with the images that their texts and their parts of the type `image` stand for."""
        return [turn if turn.role != "user" else self._filled(turn) for turn in turns]

    def _filled(self, turn: Turn) -> Turn:
        blocks: list[Block] = []
        for block in turn.blocks:
            if isinstance(block, Text):
                blocks += self.split(block.text) if IMAGE in block.text else [block]
            elif isinstance(block, Opaque) and block.value == {"type": "image"} and self._next < len(self._images):
                blocks.append(self._images[self._next])
                self._next += 1
            else:
                blocks.append(block)
        return turn if blocks == list(turn.blocks) else replace(turn, blocks=tuple(blocks), form=None)

    def with_rest(self, turns: list[Turn], notes: Notes) -> list[Turn]:
        """Turns with the images that no text refers to before the first text of the user."""
        rest = self._images[self._next :]
        if not rest:
            return turns
        for number, turn in enumerate(turns):
            if turn.role == "user":
                reason = "images that no text refers to were put before the first text of the user"
                notes.add("converted", reason, "$.images")
                filled = replace(turn, blocks=(*rest, *turn.blocks), form=None)
                return [*turns[:number], filled, *turns[number + 1 :]]
        notes.add("dropped", "the row has images, and no turn of the user that they belong to", "$.images")
        return turns


def note_training(turns: Iterable[Turn], notes: Notes) -> None:
    """Report that a format without a mark for it does not say which turns are trained on."""
    if any(is_trained(turn) is not None for turn in turns):
        notes.add("dropped", "the format cannot say which turns are trained on")


def read_image(image: Any, path: str) -> Media:
    """An image as a row holds it: an address, a path, a data URL, or an object with one of these."""
    if isinstance(image, dict):
        held = image.get("bytes")  # of the content, the path is only a name
        is_content = isinstance(held, str) and held.startswith("data:")
        keys = ("bytes",) if is_content else ("url", "path", "image", "bytes")
        image = next((image[key] for key in keys if isinstance(image.get(key), str)), None)
    if not isinstance(image, str):
        raise InputError(f"expected an image, got {quote(image)}", path=path, hint="an address, a path or a data URL")
    found = read_data_url(image)
    if found is not None:
        return Media("image", found[0], data=found[1])
    return Media("image", url=image)


def write_image(image: Media) -> str:
    """An image as a row holds it."""
    return data_url(image.media_type, image.data) if image.data is not None else image.url or image.file_id or ""


def split_thinking(text: str) -> tuple[str, str]:
    """The thinking that a text of the model begins with, and the text after it."""
    found = _THINK.match(text)
    if found is None:
        return "", text
    end = text.find(_THINK_END, found.end())
    if end < 0:
        return "", text
    return text[found.end() : end].removesuffix("\n"), text[end + len(_THINK_END) :].removeprefix("\n").removeprefix(
        "\n"
    )


def with_thinking(thinking: str, text: str) -> str:
    """A text of the model with thinking before it, as `split_thinking` reads it."""
    return f"<think>\n{thinking}\n</think>\n\n{text}" if thinking else text


# --- writing ----------------------------------------------------------------------------------------


class Part(NamedTuple):
    """What one speaker says, without ids."""

    role: str
    text: str = ""
    thinking: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[tuple[str, str], ...] = ()
    train: bool | None = None


def parts_of(turns: Iterable[Turn], notes: Notes, images: list[str] | None = None) -> list[Part]:
    """Turns as parts. Images go into the list, with `<image>` for each in the text; without a list they are dropped."""
    names: dict[str, str] = {}
    parts: list[Part] = []
    for turn in turns:
        names.update({call.id: call.name for call in turn.calls})
        if turn.results:
            results = tuple(
                (result.name or names.get(result.call_id, ""), result_text(result, notes)) for result in turn.results
            )
            if parts and parts[-1].role == "tool":  # forms with a message for each result have a turn for each
                results = (*parts.pop().results, *results)
            parts.append(Part("tool", results=results))
            if len(turn.results) == len(turn.blocks):
                continue
        said = [block for block in turn.blocks if not isinstance(block, ToolResult)]
        texts = [text for block in said if (text := _text(block, notes, images)) is not None]
        thinking = "".join(block.text for block in said if isinstance(block, Thinking))
        role = "system" if turn.role == "developer" else "user" if turn.role == "tool" else turn.role
        parts.append(Part(role, "".join(texts), thinking, turn.calls, train=is_trained(turn)))
    return parts


def _text(block: Block, notes: Notes, images: list[str] | None) -> str | None:
    if isinstance(block, Text):
        return block.text
    if isinstance(block, Media):
        if images is not None and block.kind == "image":
            images.append(write_image(block))
            return IMAGE
        notes.add("dropped", f"the format has no place for {block.kind}s")
    elif not isinstance(block, Thinking | ToolCall):
        notes.add("dropped", f"the format has no place for a block of the kind {type(block).__name__}")
    return None


def result_text(result: ToolResult, notes: Notes) -> str:
    """A result as text; a failed one says so."""
    if isinstance(result.content, tuple) and any(not isinstance(part, Text) for part in result.content):
        notes.add("dropped", "a result held more than text; what it held is named in brackets")
    content = result.to_openai()["content"]
    if isinstance(result.content, tuple) and all(isinstance(part, Text) for part in result.content):
        content = result.text
    return str(content)


def call_json(call: ToolCall) -> dict[str, Any]:
    """A call as name and arguments."""
    if call.arguments is None and call.type != "custom" and call.raw_input:
        return {"name": call.name, "arguments": call.raw_input}
    return {"name": call.name, "arguments": object_of(call)}


def call_text(call: ToolCall) -> str:
    """The same as JSON, spaced as the datasets write it."""
    return compact(call_json(call))
