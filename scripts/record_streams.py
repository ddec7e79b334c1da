"""Record the streams of a real engine: `python scripts/record_streams.py`.

llama.cpp's own server (tests/llama) gets the same requests in its three protocols, once for a complete reply and once
for a stream. A case is three files in tests/recordings/streams/llama_cpp: the request (the stream only adds
`"stream": true`), the reply and the stream, both byte for byte. `index.json` has the versions of the engine.
Text and calls are the same in every recording; ids, times and counts of cached tokens are the engine's.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import re
import socket
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from llama.server import NEEDED, SEED, Answer, LlamaServer, serving

FOLDER: Final = Path(__file__).parents[1] / "tests" / "recordings" / "streams" / "llama_cpp"
MAX_BYTES: Final = 40_000
EVENT_STREAM: Final = "text/event-stream"

Json = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A request, independent of the protocol. The model thinks if the text says so, and calls if there are tools."""

    name: str
    text: str = "What is the weather in Köln?"
    tools: bool = False
    choice: str | None = None
    limit: int = 300
    seed: int | None = None
    """None is temperature 0; with a seed the model is sampled at temperature 1, and may call more than once.
    Messages has no seed: there it is the engine's own, which is the same."""
    parallel: bool | None = None
    answered: bool = False
    """The call has been made, and its result is the last message."""
    structured: bool = False


CASES: Final = (
    Case("text"),
    Case("one_call", tools=True),
    Case("parallel_calls", tools=True, seed=SEED, parallel=True),
    Case("parallel_calls_forbidden", tools=True, seed=SEED, parallel=False),
    Case("length_in_text", limit=3),
    Case("length_in_character", limit=5),
    Case("length_in_name", tools=True, limit=20),
    Case("length_in_call", tools=True, limit=50),
    Case("length_in_second_call", tools=True, seed=SEED, parallel=True, limit=110),
    Case("length_in_thinking", "Do think first.", limit=4),
    Case("required", tools=True, choice="required"),
    Case("choice_none", tools=True, choice="none"),
    Case("reasoning", "Do think first."),
    Case("reasoning_then_call", "Do think first.", tools=True, choice="required"),
    Case("after_result", tools=True, answered=True),
    Case("structured", structured=True),
)

WEATHER: Final[Json] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
}
MAIL: Final[Json] = {
    "type": "object",
    "properties": {"to": {"type": "array", "items": {"type": "string"}}, "urgent": {"type": "boolean"}},
    "required": ["to", "urgent"],
}
TOOLS: Final = (("get_weather", "The weather of some days", WEATHER), ("send_mail", "Send a mail", MAIL))
CALLED: Final = ("call_1", "get_weather", {"city": "Köln", "days": 7})
RESULT: Final = "7 °C, rain"


# --- one case in three protocols --------------------------------------------------------------------


def chat(case: Case) -> Json:
    id, name, arguments = CALLED
    call = {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    later = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id, "content": RESULT},
    ]
    tools = [
        {"type": "function", "function": {"name": name, "description": about, "parameters": schema}}
        for name, about, schema in TOOLS
    ]
    form = {"type": "json_schema", "json_schema": {"name": "weather", "schema": WEATHER}}
    return _body(
        messages=[{"role": "user", "content": case.text}, *(later if case.answered else ())],
        max_tokens=case.limit,
        tools=tools if case.tools else None,
        tool_choice=case.choice,
        parallel_tool_calls=case.parallel,
        response_format=form if case.structured else None,
        **_sampling(case),
    )


def responses(case: Case) -> Json:
    id, name, arguments = CALLED
    later = [
        {"type": "function_call", "call_id": id, "name": name, "arguments": json.dumps(arguments)},
        {"type": "function_call_output", "call_id": id, "output": RESULT},
    ]
    tools = [
        {"type": "function", "name": name, "description": about, "parameters": schema, "strict": False}
        for name, about, schema in TOOLS
    ]
    form = {"format": {"type": "json_schema", "name": "weather", "schema": WEATHER}}
    return _body(
        input=[{"role": "user", "content": case.text}, *(later if case.answered else ())],
        max_output_tokens=case.limit,
        tools=tools if case.tools else None,
        tool_choice=case.choice,
        parallel_tool_calls=case.parallel,
        text=form if case.structured else None,
        **_sampling(case),
    )


def messages(case: Case) -> Json:
    id, name, arguments = CALLED
    later = [
        {"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": name, "input": arguments}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": RESULT}]},
    ]
    tools = [{"name": name, "description": about, "input_schema": schema} for name, about, schema in TOOLS]
    choice = {"required": "any"}.get(case.choice or "", case.choice)
    form = {"format": {"type": "json_schema", "schema": WEATHER}}
    return _body(
        messages=[{"role": "user", "content": case.text}, *(later if case.answered else ())],
        max_tokens=case.limit,
        tools=tools if case.tools else None,
        tool_choice=_anthropic_choice(choice, case.parallel),
        thinking={"type": "enabled", "budget_tokens": 1024} if "think" in case.text else None,
        output_config=form if case.structured else None,
        temperature=_sampling(case)["temperature"],
    )


def _anthropic_choice(kind: str | None, parallel: bool | None) -> Json | None:
    if parallel is None:
        return None if kind is None else {"type": kind}
    return {"type": kind or "auto", "disable_parallel_tool_use": not parallel}


def _sampling(case: Case) -> Json:
    return {"temperature": 0} if case.seed is None else {"temperature": 1, "seed": case.seed}


def _body(**fields: Any) -> Json:
    return {"model": "tiny"} | {name: value for name, value in fields.items() if value is not None}


PROTOCOLS: Final[dict[str, tuple[str, Callable[[Case], Json]]]] = {
    "chat": ("/v1/chat/completions", chat),
    "responses": ("/v1/responses", responses),
    "messages": ("/v1/messages", messages),
}


def bodies() -> dict[str, tuple[str, Json]]:
    """Every request by the name of its recording, with the path that it is sent to."""
    requests = {
        f"{protocol}_{case.name}": (path, of(case)) for protocol, (path, of) in PROTOCOLS.items() for case in CASES
    }
    path, _ = PROTOCOLS["chat"]
    requests["chat_usage"] = (path, chat(Case("usage")) | {"stream_options": {"include_usage": True}})
    requests["chat_two_choices"] = (path, chat(Case("two_choices", limit=6)) | {"n": 2})
    requests["chat_log_probabilities"] = (path, chat(Case("log", limit=6)) | {"logprobs": True, "top_logprobs": 1})
    requests |= {f"{protocol}_error": (path, body) for protocol, (path, body) in _errors().items()}
    return requests


def _errors() -> dict[str, tuple[str, Json]]:
    """Requests that are errors. In Messages, `messages` may be a string, so there the field is left out."""
    nothing: dict[str, Json] = {"chat": {"messages": "none"}, "responses": {}, "messages": {"max_tokens": 5}}
    return {protocol: (PROTOCOLS[protocol][0], {"model": "tiny"} | body) for protocol, body in nothing.items()}


# --- recording --------------------------------------------------------------------------------------


def record(server: LlamaServer, path: str, body: Json) -> tuple[Answer, Answer]:
    """The whole reply and the stream."""
    return server.post(path, body), server.post(path, body | {"stream": True})


def checked_body(answer: Answer) -> bytes:
    """The bytes of a reply, which must be few and contain nothing of this machine."""
    private = ("127.0.0.1", "localhost", ".gguf", str(Path.home()), tempfile.gettempdir())
    host = re.compile(rb'"%b(?![A-Za-z0-9])' % re.escape(socket.gethostname()).encode())  # an id may begin like it
    is_private = host.search(answer.body) is not None or any(word.encode() in answer.body for word in private)
    if len(answer.body) > MAX_BYTES or is_private:
        raise SystemExit(f"a reply is too long, or contains names of this machine: {answer.body[:500]!r}")
    return answer.body


def files(server: LlamaServer) -> dict[str, bytes]:
    """Every recording, by the name of its file."""
    made: dict[str, bytes] = {}
    index: Json = {"engine": {name: importlib.metadata.version(name) for name in NEEDED}, "recordings": {}}
    for name, (path, body) in bodies().items():
        whole, stream = record(server, path, body)
        made[f"{name}.request.json"] = _pretty(body)
        made[f"{name}.json"] = checked_body(whole)
        if stream.content_type == EVENT_STREAM:
            made[f"{name}.sse"] = checked_body(stream)
        index["recordings"][name] = {"path": path, "status": whole.status, "stream_status": stream.status}
    return made | {"index.json": _pretty(index)}


def _pretty(body: Json) -> bytes:
    return (json.dumps(body, ensure_ascii=False, indent=2) + "\n").encode()


def main(folder: Path = FOLDER) -> None:
    with serving() as server:
        made = files(server)
    folder.mkdir(parents=True, exist_ok=True)
    for old in (*folder.glob("*.json"), *folder.glob("*.sse")):
        old.unlink()
    for name, body in made.items():
        (folder / name).write_bytes(body)
    print(f"{len(made)} files, {sum(map(len, made.values()))} bytes")


def _folder() -> Path:
    parser = argparse.ArgumentParser(description="Record the streams of llama.cpp's server, in all its protocols.")
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER, help="where to write (default: %(default)s)")
    folder: Path = parser.parse_args().folder
    return folder


if __name__ == "__main__":
    main(_folder())
