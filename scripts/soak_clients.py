"""The clients of a soak: five protocols, each with its history in its own form and a strict reader of replies.

    talk = TALKS["anthropic"](model, tools, thinks=True)
    talk.add_user("Hello"); path, body = talk.request(stream=True)
    reply = talk.read_stream(data); talk.add_reply(reply); talk.add_results([(reply.calls[0], "done")])

Nothing here is toolglot's own: bodies are written and read as the documentation of each protocol says. `IllegalError`
is a reply that its protocol does not allow, `FailedError` one that ends with the protocol's own error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from soak_plans import SCHEMA

Fields = dict[str, Any]


class IllegalError(Exception):
    """A reply that the protocol does not allow."""


class UnendedError(IllegalError):
    """A stream without its end."""


class FailedError(Exception):
    """The reply is an error, or ends with one, in the protocol's own form."""


class Call(NamedTuple):
    id: str
    name: str
    arguments: Any
    """None: not JSON."""


class ClientReply(NamedTuple):
    """A reply as a client has read it."""

    text: str
    calls: list[Call]
    stop: str
    """calls, stop or length; anything else is the provider's own word."""
    message: Any
    """As the client keeps it in its history."""


def need(condition: object, reason: str) -> None:
    if not condition:
        raise IllegalError(reason)


def parse_json(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise IllegalError(f"not JSON: {text[:200]!r}") from None


def arguments_of(text: str) -> Any:
    try:
        return json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None


def events(data: bytes) -> Iterator[tuple[str, str]]:
    """Server-sent events: name and data."""
    need(data.endswith((b"\n\n", b"\r\n\r\n")), f"the stream does not end with an event: {data[-80:]!r}")
    for block in data.decode().replace("\r\n", "\n").split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]
        need(all(line.startswith(("event:", "data:")) for line in lines), f"not an event: {block[:200]!r}")
        names = [line[6:].strip() for line in lines if line.startswith("event:")]
        values = [line[5:].strip() for line in lines if line.startswith("data:")]
        if values:
            yield (names[0] if names else ""), "\n".join(values)


class Talk:
    """A conversation as a client of one protocol has it."""

    def __init__(self, model: str, tools: Sequence[str], *, thinks: bool, system: str = "") -> None:
        self.model = model
        self.tools = tools
        self.thinks = thinks
        self.system = system
        self.history: list[Fields] = []

    def add_user(self, words: str) -> None:
        self.history.append({"role": "user", "content": words})

    def add_reply(self, reply: ClientReply) -> None:
        self.history.append(reply.message)

    def add_results(self, results: Sequence[tuple[Call, str]]) -> None:
        raise NotImplementedError

    def request(self, *, stream: bool) -> tuple[str, Fields]:
        raise NotImplementedError

    def headers(self, key: str) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"}

    def read_reply(self, data: bytes) -> ClientReply:
        raise NotImplementedError

    def read_stream(self, data: bytes) -> ClientReply:
        raise NotImplementedError

    def read_error(self, data: bytes) -> str:
        """The message of an error, which must have the protocol's form."""
        error = parse_json(data).get("error")
        need(isinstance(error, dict) and isinstance(error.get("message"), str), f"no error: {data[:200]!r}")
        return str(error["message"])

    def functions(self) -> list[Fields]:
        return [{"name": name, "description": f"Runs {name}.", "parameters": SCHEMA} for name in self.tools]


# --- Anthropic --------------------------------------------------------------------------------------


class AnthropicTalk(Talk):
    def headers(self, key: str) -> dict[str, str]:
        return {"x-api-key": key, "anthropic-version": "2023-06-01"}

    def request(self, *, stream: bool) -> tuple[str, Fields]:
        tools = [{"name": name, "description": f"Runs {name}.", "input_schema": SCHEMA} for name in self.tools]
        body: Fields = {"model": self.model, "max_tokens": 8000, "messages": self.history, "tools": tools}
        if self.system:
            body["system"] = self.system
        if self.thinks:
            is_adaptive = "claude-opus-5-5" in self.model
            body["thinking"] = {"type": "adaptive"} if is_adaptive else {"type": "enabled", "budget_tokens": 2000}
        return "/v1/messages", {**body, "stream": True} if stream else body

    def add_results(self, results: Sequence[tuple[Call, str]]) -> None:
        blocks = [{"type": "tool_result", "tool_use_id": call.id, "content": text} for call, text in results]
        self.history.append({"role": "user", "content": blocks})

    def read_error(self, data: bytes) -> str:
        need(parse_json(data).get("type") == "error", f"no error: {data[:200]!r}")
        return super().read_error(data)

    def read_reply(self, data: bytes) -> ClientReply:
        body = parse_json(data)
        need(body.get("type") == "message" and body.get("role") == "assistant", f"no message: {data[:200]!r}")
        need(isinstance(body.get("usage"), dict) and body.get("id"), "no usage, or no id")
        return self._reply(body["content"], body.get("stop_reason"))

    def _reply(self, content: list[Fields], stop: str | None) -> ClientReply:
        known = {"end_turn": "stop", "tool_use": "calls", "max_tokens": "length"}
        calls = [Call(b["id"], b["name"], b["input"]) for b in content if b["type"] == "tool_use"]
        text = "".join(b["text"] for b in content if b["type"] == "text")
        # A client does not send back what it could not read.
        readable = [b for b in content if b["type"] != "tool_use" or isinstance(b["input"], dict)]
        return ClientReply(text, calls, known.get(stop or "", str(stop)), {"role": "assistant", "content": readable})

    def read_stream(self, data: bytes) -> ClientReply:
        blocks: list[Fields] = []
        seen: list[str] = []
        stop: str | None = None
        is_open = False
        for name, text in events(data):
            event = parse_json(text)
            kind = event["type"]
            need(kind == name, f"event {name} has the type {kind}")
            if kind == "ping":
                continue
            need(seen[:1] == ["message_start"] or not seen, "does not begin with message_start")
            need("message_stop" not in seen, f"{kind} after message_stop")
            if kind == "error":
                raise FailedError(event["error"]["message"])
            seen.append(kind)
            if kind == "content_block_start":
                need(not is_open and event["index"] == len(blocks), f"block {event['index']} after {len(blocks)}")
                blocks.append(event["content_block"] | {"json": ""})
                is_open = True
            elif kind == "content_block_delta":
                need(is_open and event["index"] == len(blocks) - 1, "a delta of a block that is not open")
                _add(blocks[-1], event["delta"])
            elif kind == "content_block_stop":
                need(is_open and event["index"] == len(blocks) - 1, "the end of a block that is not open")
                is_open = False
            elif kind == "message_delta":
                stop = event["delta"].get("stop_reason") or stop
        if seen[-1:] != ["message_stop"]:
            raise UnendedError(f"ends with {seen[-2:]}")
        need(not is_open and stop, f"a block is open, or there is no stop_reason: {stop}")
        for block in blocks:
            text = block.pop("json")
            if block["type"] == "tool_use":
                block["input"] = arguments_of(text)
        return self._reply(blocks, stop)


def _add(block: Fields, delta: Fields) -> None:
    """A delta to its block."""
    kind = delta["type"]
    fields = {
        "text_delta": "text",
        "thinking_delta": "thinking",
        "signature_delta": "signature",
        "input_json_delta": "partial_json",
    }
    need(kind in fields, f"unknown delta: {kind}")
    field = fields[kind]
    into = "json" if field == "partial_json" else field
    block[into] = block.get(into, "") + delta[field]


# --- OpenAI Chat ------------------------------------------------------------------------------------


class ChatTalk(Talk):
    def request(self, *, stream: bool) -> tuple[str, Fields]:
        system = [{"role": "system", "content": self.system}] if self.system else []
        tools = [{"type": "function", "function": function} for function in self.functions()]
        body: Fields = {"model": self.model, "messages": [*system, *self.history], "tools": tools}
        if self.thinks:
            body["reasoning_effort"] = "high"
        return "/v1/chat/completions", {**body, "stream": True} if stream else body

    def add_results(self, results: Sequence[tuple[Call, str]]) -> None:
        self.history += [{"role": "tool", "tool_call_id": call.id, "content": text} for call, text in results]

    def read_reply(self, data: bytes) -> ClientReply:
        body = parse_json(data)
        need(body.get("object") == "chat.completion" and len(body.get("choices", ())) == 1, f"{data[:200]!r}")
        choice = body["choices"][0]
        return self._reply(choice["message"].get("content"), choice["message"].get("tool_calls") or [], choice)

    def _reply(self, text: str | None, calls: list[Fields], choice: Fields) -> ClientReply:
        known = {"stop": "stop", "tool_calls": "calls", "length": "length"}
        made = [Call(c["id"], c["function"]["name"], arguments_of(c["function"]["arguments"])) for c in calls]
        message: Fields = {"role": "assistant", "content": text or None}
        if calls:
            message["tool_calls"] = calls
        stop = str(choice.get("finish_reason"))
        return ClientReply(text or "", made, known.get(stop, stop), message)

    def read_stream(self, data: bytes) -> ClientReply:
        text, finish, is_done = "", None, False
        calls: dict[int, Fields] = {}
        for _, line in events(data):
            need(not is_done, f"after [DONE]: {line[:100]}")
            if line == "[DONE]":
                is_done = True
                continue
            chunk = parse_json(line)
            if "error" in chunk:
                raise FailedError(str(chunk["error"].get("message")))
            need(chunk.get("object") == "chat.completion.chunk", f"no chunk: {line[:200]}")
            for choice in chunk["choices"]:
                need(finish is None or not choice["delta"].get("content"), "text after the finish_reason")
                text += choice["delta"].get("content") or ""
                for call in choice["delta"].get("tool_calls") or ():
                    _add_call(calls, call)
                finish = choice.get("finish_reason") or finish
        if not (is_done and finish):
            raise UnendedError(f"no end: finish_reason {finish}, [DONE] {is_done}")
        return self._reply(text, [*calls.values()], {"finish_reason": finish})


def _add_call(calls: dict[int, Fields], delta: Fields) -> None:
    index, function = delta["index"], delta.get("function", {})
    if index not in calls:
        need(index == len(calls) and delta.get("id") and function.get("name"), f"a call begins without: {delta}")
        calls[index] = {"id": delta["id"], "type": "function", "function": {"name": function["name"], "arguments": ""}}
    calls[index]["function"]["arguments"] += function.get("arguments") or ""


# --- OpenAI Responses -------------------------------------------------------------------------------


class ResponsesTalk(Talk):
    """Continues by `previous_response_id`, or sends all items each time if `is_stored` is false."""

    is_stored = True

    def __init__(self, model: str, tools: Sequence[str], *, thinks: bool, system: str = "") -> None:
        super().__init__(model, tools, thinks=thinks, system=system)
        self.previous = ""

    def request(self, *, stream: bool) -> tuple[str, Fields]:
        tools = [{"type": "function", "strict": False, **function} for function in self.functions()]
        body: Fields = {"model": self.model, "input": self.history, "tools": tools}
        if self.system:
            body["instructions"] = self.system
        if self.thinks:
            body["reasoning"] = {"effort": "high"}
        if not self.is_stored:
            body["store"] = False
            body |= {"include": ["reasoning.encrypted_content"]} if self.thinks else {}
        elif self.previous:
            body["previous_response_id"] = self.previous
        return "/v1/responses", {**body, "stream": True} if stream else body

    def add_reply(self, reply: ClientReply) -> None:
        if self.is_stored:
            self.previous, self.history = reply.message["id"], []
        else:
            self.history += reply.message["output"]

    def add_results(self, results: Sequence[tuple[Call, str]]) -> None:
        self.history += [{"type": "function_call_output", "call_id": call.id, "output": text} for call, text in results]

    def read_reply(self, data: bytes) -> ClientReply:
        body = parse_json(data)
        need(body.get("object") == "response" and body.get("id"), f"no response: {data[:200]!r}")
        return self._reply(body)

    def _reply(self, body: Fields) -> ClientReply:
        if body["status"] == "failed":
            raise FailedError(str((body.get("error") or {}).get("message")))
        output = body["output"]
        calls = [
            Call(item["call_id"], item["name"], arguments_of(item["arguments"]))
            for item in output
            if item["type"] == "function_call"
        ]
        need(len({item["id"] for item in output}) == len(output), "items with the same id")
        text = "".join(
            part["text"] for item in output if item["type"] == "message" for part in item["content"] if "text" in part
        )
        reason = (body.get("incomplete_details") or {}).get("reason")
        stop = "length" if reason == "max_output_tokens" else "calls" if calls else "stop"
        need(body["status"] in ("completed", "incomplete"), f"status {body['status']}")
        return ClientReply(text, calls, stop if body["status"] == "completed" or reason else str(reason), body)

    def read_stream(self, data: bytes) -> ClientReply:
        number, text = -1, ""
        arguments: dict[str, str] = {}
        final: Fields | None = None
        for name, line in events(data):
            event = parse_json(line)
            kind = event["type"]
            need(kind == name, f"event {name} has the type {kind}")
            need(final is None, f"{kind} after the end")
            need(event["sequence_number"] > number, "sequence_number does not grow")
            number = event["sequence_number"]
            if kind == "error":
                raise FailedError(str(event.get("message")))
            if kind == "response.output_text.delta":
                text += event["delta"]
            elif kind == "response.function_call_arguments.delta":
                arguments[event["item_id"]] = arguments.get(event["item_id"], "") + event["delta"]
            elif kind in ("response.completed", "response.incomplete", "response.failed"):
                final = event["response"]
        if final is None:
            raise UnendedError("no last event")
        reply = self._reply(final)
        need(reply.text == text, f"the deltas have {text[:100]!r}, the end {reply.text[:100]!r}")
        for item in final["output"]:
            if item["type"] == "function_call":
                need(arguments.get(item["id"]) == item["arguments"], f"deltas and end differ: {item}, {arguments}")
        return reply


class BareResponsesTalk(ResponsesTalk):
    is_stored = False


# --- Gemini -----------------------------------------------------------------------------------------


class GeminiTalk(Talk):
    is_array = False

    def headers(self, key: str) -> dict[str, str]:
        return {"x-goog-api-key": key}

    def add_user(self, words: str) -> None:
        self.history.append({"role": "user", "parts": [{"text": words}]})

    def request(self, *, stream: bool) -> tuple[str, Fields]:
        body: Fields = {"contents": self.history, "tools": [{"functionDeclarations": self.functions()}]}
        if self.system:
            body["systemInstruction"] = {"parts": [{"text": self.system}]}
        if self.thinks:
            body["generationConfig"] = {"thinkingConfig": {"includeThoughts": True, "thinkingBudget": 4000}}
        whole = "generateContent" if not stream else "streamGenerateContent" + ("" if self.is_array else "?alt=sse")
        return f"/v1beta/models/{self.model}:{whole}", body

    def add_results(self, results: Sequence[tuple[Call, str]]) -> None:
        parts = []
        for call, text in results:
            named = {"id": call.id} if call.id else {}
            parts.append({"functionResponse": {**named, "name": call.name, "response": {"result": text}}})
        self.history.append({"role": "user", "parts": parts})

    def read_error(self, data: bytes) -> str:
        body = parse_json(data)
        return super().read_error(json.dumps(body[0]).encode() if isinstance(body, list) else data)

    def read_reply(self, data: bytes) -> ClientReply:
        return self._reply([parse_json(data)])

    def read_stream(self, data: bytes) -> ClientReply:
        chunks = parse_json(data) if self.is_array else [parse_json(line) for _, line in events(data)]
        return self._reply(chunks)

    def _reply(self, chunks: list[Fields]) -> ClientReply:
        parts: list[Fields] = []
        finish = ""
        for chunk in chunks:
            if "error" in chunk:
                raise FailedError(str(chunk["error"].get("message")))
            for candidate in chunk.get("candidates", ()):
                parts += candidate.get("content", {}).get("parts", ())
                need(not finish or not candidate.get("content", {}).get("parts"), "parts after the finishReason")
                finish = candidate.get("finishReason") or finish
        if not finish:
            raise UnendedError("no finishReason")
        calls = [
            Call(p["functionCall"].get("id", ""), p["functionCall"]["name"], p["functionCall"].get("args", {}))
            for p in parts
            if "functionCall" in p
        ]
        text = "".join(p["text"] for p in parts if "text" in p and not p.get("thought"))
        stop = {"STOP": "calls" if calls else "stop", "MAX_TOKENS": "length"}.get(finish, finish)
        return ClientReply(text, calls, stop, {"role": "model", "parts": _join_text(parts)})


def _join_text(parts: list[Fields]) -> list[Fields]:
    """Join pieces of the same text into one part, as clients do."""
    joined: list[Fields] = []
    for part in parts:
        last = joined[-1] if joined else {}
        if last.keys() == part.keys() and "text" in part and part.keys() <= {"text", "thought"}:
            joined[-1] = {**last, "text": last["text"] + part["text"]}
        else:
            joined.append(part)
    return joined


class GeminiArrayTalk(GeminiTalk):
    is_array = True


# --- Ollama -----------------------------------------------------------------------------------------


class OllamaTalk(ChatTalk):
    def request(self, *, stream: bool) -> tuple[str, Fields]:
        _, body = super().request(stream=False)
        body.pop("reasoning_effort", None)
        if self.thinks:
            body["think"] = True
        return "/api/chat", {**body, "stream": stream}

    def add_results(self, results: Sequence[tuple[Call, str]]) -> None:
        for call, text in results:
            named = {"tool_call_id": call.id} if call.id else {}
            self.history.append({"role": "tool", "tool_name": call.name, "content": text, **named})

    def read_error(self, data: bytes) -> str:
        error = parse_json(data).get("error")
        need(isinstance(error, str), f"no error: {data[:200]!r}")
        return str(error)

    def read_reply(self, data: bytes) -> ClientReply:
        return self._from_chunks([parse_json(data)])

    def read_stream(self, data: bytes) -> ClientReply:
        need(data.endswith(b"\n"), "the last line has no end")
        return self._from_chunks([parse_json(line) for line in data.splitlines()])

    def _from_chunks(self, chunks: list[Fields]) -> ClientReply:
        content, thinking = "", ""
        calls: list[Fields] = []
        for chunk in chunks:
            if "error" in chunk:
                raise FailedError(str(chunk["error"]))
            content += chunk["message"].get("content") or ""
            thinking += chunk["message"].get("thinking") or ""
            calls += chunk["message"].get("tool_calls") or ()
        need(not any(chunk["done"] for chunk in chunks[:-1]), "a line follows the one that is done")
        if not chunks[-1:] or not chunks[-1]["done"]:
            raise UnendedError("it is not done")
        made = [Call(c.get("id", ""), c["function"]["name"], c["function"]["arguments"]) for c in calls]
        message: Fields = {"role": "assistant", "content": content}
        message |= {"thinking": thinking} if thinking else {}
        message |= {"tool_calls": calls} if calls else {}
        reason = str(chunks[-1].get("done_reason"))
        stop = "calls" if reason == "stop" and made else reason
        return ClientReply(content, made, stop, message)


TALKS: Final[dict[str, type[Talk]]] = {
    "anthropic": AnthropicTalk,
    "openai": ChatTalk,
    "responses": ResponsesTalk,
    "responses bare": BareResponsesTalk,
    "gemini": GeminiTalk,
    "gemini array": GeminiArrayTalk,
    "ollama": OllamaTalk,
}
