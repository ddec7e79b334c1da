"""Bodies that the real SDKs sent, and replies as the providers write them: they come back as they were."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sdk import census
from sdk.recording import FOLDER, INDEX, MODULES, load, pretty, record
from support.protocols.body_laws import same_json
from toolglot import Conversation, dump
from toolglot import load as load_conversation
from toolglot.conversation import Reply

ROOT = Path(__file__).parents[2]
PROTOCOLS = sorted(census.VERBATIM)
REQUESTS = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.glob("*/*.request.json"))
REPLIES = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.glob("*/*.reply.json"))


def body_of(recording: str) -> dict[str, Any]:
    body = json.loads((FOLDER / recording).read_text("utf-8"))
    assert isinstance(body, dict)
    return body


def codec(recording: str, part: str) -> Any:
    return importlib.import_module(f"toolglot.protocols.{Path(recording).parent}.{part}")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_protocol_has_enough_recordings(protocol: str) -> None:
    assert sum(name.startswith(f"{protocol}/") for name in REQUESTS) >= 12
    assert sum(name.startswith(f"{protocol}/") for name in REPLIES) >= 6


@pytest.mark.parametrize("recording", REQUESTS)
def test_law_3_a_recorded_request_comes_back_as_it_was(recording: str) -> None:
    request, body = codec(recording, "request"), body_of(recording)
    conversation = request.decode(body)
    assert same_json(body, body_of(recording)), "decoding changed the body"
    assert same_json(request.encode(conversation), body)


@pytest.mark.parametrize("recording", REQUESTS)
def test_law_3_a_recorded_request_comes_back_through_the_stored_form(recording: str) -> None:
    request, body = codec(recording, "request"), body_of(recording)
    assert same_json(request.encode(load_conversation(dump(request.decode(body)))), body)


@pytest.mark.parametrize("recording", REPLIES)
def test_law_3_a_recorded_reply_comes_back_as_it_was(recording: str) -> None:
    reply, body = codec(recording, "reply"), body_of(recording)
    decoded = reply.decode(body)
    assert same_json(body, body_of(recording)), "decoding changed the body"
    assert same_json(reply.encode(decoded), body)


@pytest.mark.parametrize("recording", REPLIES)
def test_law_3_a_recorded_reply_comes_back_through_the_stored_form(recording: str) -> None:
    """What is stored of a reply is its turn."""
    reply, body = codec(recording, "reply"), body_of(recording)
    decoded: Reply = reply.decode(body)
    (turn,) = load_conversation(dump(Conversation((decoded.turn,)))).turns
    stored = replace(decoded, turn=turn)
    assert same_json(reply.encode(stored), body)


@pytest.mark.parametrize("recording", REQUESTS)
def test_a_recorded_request_is_understood_and_not_just_carried(recording: str) -> None:
    protocol, body = str(Path(recording).parent), body_of(recording)
    conversation: Conversation = codec(recording, "request").decode(body)
    assert census.of_turns(conversation.turns) == census.of_body(protocol, body)
    assert Counter(tool.name for tool in conversation.tools if tool.issuer is None) == tools_in(protocol, body)


@pytest.mark.parametrize("recording", REPLIES)
def test_a_recorded_reply_is_understood_and_not_just_carried(recording: str) -> None:
    protocol, body = str(Path(recording).parent), body_of(recording)
    reply: Reply = codec(recording, "reply").decode(body)
    assert census.of_turns((reply.turn,)) == census.of_body(protocol, body)


def tools_in(protocol: str, body: dict[str, Any]) -> Counter[str]:
    """The tools that the client runs, by name."""
    if protocol == "bedrock":
        tools = body.get("toolConfig", {}).get("tools", ())
        return Counter(tool["toolSpec"]["name"] for tool in tools if "toolSpec" in tool)
    if protocol == "gemini":
        entries = body.get("tools", ())
        return Counter(made["name"] for entry in entries for made in entry.get("functionDeclarations", ()))
    tools = body.get("tools", ())
    if protocol == "anthropic":
        return Counter(tool["name"] for tool in tools if tool.get("type", "custom") == "custom")
    if protocol == "openai_responses":
        inner = [tool for holder in tools for tool in (holder["tools"] if holder["type"] == "namespace" else [holder])]
        return Counter(tool["name"] for tool in inner if tool["type"] in ("function", "custom"))
    return Counter((tool.get("function") or tool["custom"])["name"] for tool in tools)


@pytest.mark.parametrize("name", MODULES)
def test_the_recordings_are_what_the_sdk_sends_today(name: str) -> None:
    sdk = load(name)
    recorded_with = json.loads(INDEX.read_text("utf-8"))[name]["version"]
    if sdk.version != recorded_with:
        pytest.skip(f"recorded with {sdk.distribution} {recorded_with}, installed is {sdk.version}")
    kept = {path: (FOLDER / path).read_text("utf-8") for path in REQUESTS if Path(path).name.startswith(f"{name}_")}
    assert record(sdk) == kept


def test_the_script_writes_the_recordings_and_forgets_old_ones(tmp_path: Path) -> None:
    (tmp_path / "ollama").mkdir()
    (tmp_path / "ollama" / "ollama_of_old.request.json").write_text("{}", "utf-8")
    code = (
        "import pathlib, sys; sys.path.insert(0, 'scripts'); import record_bodies\n"
        f"record_bodies.main(['ollama'], pathlib.Path({str(tmp_path)!r}))"
    )
    ran = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    made = {path.relative_to(tmp_path).as_posix(): path.read_text("utf-8") for path in tmp_path.glob("*/*.json")}
    assert made == {path: (FOLDER / path).read_text("utf-8") for path in REQUESTS if path.startswith("ollama/")}
    assert json.loads((tmp_path / "index.json").read_text("utf-8")).keys() == {"ollama"}


@pytest.mark.parametrize("text", ['{"a":[1,1.0,1e-7,{}],"b":[],"c":"x\\u00e9\\"{[,:"}', "[]", '"a"', "-0.0"])
def test_pretty_changes_whitespace_only(text: str) -> None:
    assert "".join(pretty(text).split()) == text
