"""The recorded streams of the engine: each case is whole, tells nothing of a machine, and streams what it answers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pytest

from llama.server import missing

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "tests" / "recordings" / "streams" / "llama_cpp"
KEPT: Final = json.loads((FOLDER / "index.json").read_text("utf-8"))
INDEX: Final = KEPT["recordings"]
STREAMED: Final = sorted(path.stem for path in FOLDER.glob("*.sse"))
CUT_INPUT: Final = ("messages_length_in_call", "messages_length_in_second_call")
"""Where a call is cut, the whole answer of Messages has an empty input and the stream has what was written."""


@dataclass
class RecordedReply:
    """What a reply says, whichever way it came. The key is a choice, or the only one."""

    text: dict[int, str] = field(default_factory=lambda: defaultdict(str))
    thinking: str = ""
    calls: dict[object, list[str]] = field(default_factory=dict)
    stop: object = None

    def seen(self) -> tuple[dict[int, str], str, list[list[str]], object]:
        return dict(self.text), self.thinking, list(self.calls.values()), self.stop


# --- a reader a protocol ----------------------------------------------------------------------------


def chat_part(reply: RecordedReply, choice: dict[str, Any], part: dict[str, Any]) -> None:
    if part.get("content"):
        reply.text[choice["index"]] += part["content"]
    reply.thinking += part.get("reasoning_content", "")
    for at, call in enumerate(part.get("tool_calls", ())):
        kept = reply.calls.setdefault(call.get("index", at), [call["function"].get("name", ""), ""])
        kept[1] += call["function"]["arguments"]
    reply.stop = choice["finish_reason"] or reply.stop


def chat_whole(body: dict[str, Any]) -> RecordedReply:
    reply = RecordedReply()
    for choice in body["choices"]:
        chat_part(reply, choice, choice["message"])
    return reply


def chat_stream(events: Iterable[dict[str, Any]]) -> RecordedReply:
    reply = RecordedReply()
    for event in events:
        for choice in event["choices"]:
            chat_part(reply, choice, choice["delta"])
    return reply


def responses_whole(body: dict[str, Any]) -> RecordedReply:
    reply = RecordedReply(stop=body["status"])
    for item in body["output"]:
        if item["type"] == "function_call":
            reply.calls[item["id"]] = [item["name"], item["arguments"]]
        elif item["type"] == "reasoning":
            reply.thinking += item["content"][0]["text"]
        else:
            reply.text[0] += item["content"][0]["text"]
    return reply


def responses_stream(events: Iterable[dict[str, Any]]) -> RecordedReply:
    reply = RecordedReply()
    for event in events:
        match event["type"]:
            case "response.output_text.delta":
                reply.text[0] += event["delta"]
            case "response.reasoning_text.delta":
                reply.thinking += event["delta"]
            case "response.output_item.added" if event["item"]["type"] == "function_call":
                reply.calls[event["item"]["id"]] = [event["item"]["name"], ""]
            case "response.function_call_arguments.delta":
                reply.calls[event["item_id"]][1] += event["delta"]
            case "response.completed":
                reply.stop = event["response"]["status"]
    return reply


def messages_whole(body: dict[str, Any]) -> RecordedReply:
    reply = RecordedReply(stop=body["stop_reason"])
    for at, block in enumerate(body["content"]):
        if block["type"] == "tool_use":
            reply.calls[at] = [block["name"], json.dumps(block["input"], ensure_ascii=False, separators=(",", ":"))]
        elif block["type"] == "thinking":
            reply.thinking += block["thinking"]
        else:
            reply.text[0] += block["text"]
    return reply


def messages_stream(events: Iterable[dict[str, Any]]) -> RecordedReply:
    reply = RecordedReply()
    for event in events:
        match event:
            case {"content_block": {"type": "tool_use", "name": called}, "index": at}:
                reply.calls[at] = [called, ""]
            case {"delta": {"text": text}}:
                reply.text[0] += text
            case {"delta": {"thinking": text}}:
                reply.thinking += text
            case {"delta": {"partial_json": text}, "index": at}:
                reply.calls[at][1] += text
            case {"delta": {"stop_reason": stop}}:
                reply.stop = stop
    return reply


READERS: Final[
    dict[str, tuple[Callable[[dict[str, Any]], RecordedReply], Callable[[Iterable[dict[str, Any]]], RecordedReply]]]
] = {
    "chat": (chat_whole, chat_stream),
    "responses": (responses_whole, responses_stream),
    "messages": (messages_whole, messages_stream),
}


def whole_of(name: str, folder: Path = FOLDER) -> RecordedReply:
    return READERS[name.partition("_")[0]][0](json.loads((folder / f"{name}.json").read_text("utf-8")))


def stream_of(name: str, folder: Path = FOLDER) -> RecordedReply:
    lines = (folder / f"{name}.sse").read_text("utf-8").split("\n")
    events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    return READERS[name.partition("_")[0]][1](events)


# --- the recordings ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STREAMED)
def test_the_stream_says_what_the_whole_answer_says(name: str) -> None:
    whole, stream = whole_of(name), stream_of(name)
    if name in CUT_INPUT:
        *_, cut = whole.calls.values()
        *_, written = stream.calls.values()
        assert cut[1] == "{}"
        assert written[1].startswith('{"')
        cut[1] = written[1]
    assert stream.seen() == whole.seen()
    assert stream.text or stream.thinking


@pytest.mark.parametrize("name", sorted(INDEX))
def test_a_recording_is_whole(name: str) -> None:
    request = json.loads((FOLDER / f"{name}.request.json").read_text("utf-8"))
    assert "stream" not in request
    refused = name.endswith("_error")
    assert (INDEX[name]["status"] >= 400, INDEX[name]["stream_status"] >= 400) == (refused, refused)
    assert (name in STREAMED) is not refused
    assert ("error" in json.loads((FOLDER / f"{name}.json").read_text("utf-8"))) is refused


def test_the_three_protocols_have_the_same_cases_and_nothing_else_is_there() -> None:
    cases = {of: {name.removeprefix(f"{of}_") for name in INDEX if name.startswith(f"{of}_")} for of in READERS}
    assert cases["responses"] == cases["messages"]
    assert cases["chat"] - cases["messages"] == {"usage", "two_choices", "log_probabilities"}
    names = {re.sub(r"\.(request\.json|json|sse)$", "", path.name) for path in FOLDER.iterdir()}
    assert names == {*INDEX, "index"}


def test_no_recording_is_long_or_names_a_machine() -> None:
    telling = re.compile(rb"127\.0\.0\.1|localhost|\.gguf|/(tmp|home|root|work|Users)/|:\d{5}/")
    for path in FOLDER.iterdir():
        body = path.read_bytes()
        assert len(body) < 40_000, path.name
        assert not telling.search(body), path.name


def test_the_script_records_today_what_is_kept(tmp_path: Path) -> None:
    if absent := missing():
        pytest.skip(f"the engine needs {', '.join(absent)}")
    installed = version("xllamacpp")
    if installed != KEPT["engine"]["xllamacpp"]:
        pytest.skip(f"recorded with xllamacpp {KEPT['engine']['xllamacpp']}, installed is {installed}")
    (tmp_path / "of_old.sse").write_text("", "utf-8")
    code = (
        "import pathlib, sys; sys.path.insert(0, 'scripts'); import record_streams\n"
        f"record_streams.main(pathlib.Path({str(tmp_path)!r}))"
    )
    ran = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in FOLDER.iterdir()}
    for path in FOLDER.glob("*.request.json"):
        assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path.name
    for name in STREAMED:
        assert stream_of(name, tmp_path).seen() == stream_of(name).seen(), name
        assert whole_of(name, tmp_path).seen() == whole_of(name).seen(), name
