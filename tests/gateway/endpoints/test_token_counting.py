"""Token counts: how far an estimate may be off, held against the provider's own tokenizer, and what it survives.

The outside judge is mistral-common: Mistral's Tekken vocabulary and its template for whole requests. What a model
with a public vocabulary reads is counted by that vocabulary (`OWN`); any other by o200k_base, which Tekken is as
foreign to as to the vocabularies that are secret (`FOREIGN`); without the package by character classes (`CLASSES`).
The bounds are those of docs/decisions/0005-token-counting.md.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import json
import math
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import anthropic.types
import mistral_common
import openai.types.responses
import pytest
from google.genai import types as genai_types
from hypothesis import given
from hypothesis import strategies as st
from mistral_common.protocol.instruct.normalize import get_normalizer
from mistral_common.protocol.instruct.request import ChatCompletionRequest
from mistral_common.protocol.instruct.validator import ValidationMode, get_validator
from mistral_common.tokens.tokenizers.base import TokenizerVersion
from mistral_common.tokens.tokenizers.instruct import InstructTokenizerV3, InstructTokenizerV7
from mistral_common.tokens.tokenizers.mistral import MistralTokenizer
from mistral_common.tokens.tokenizers.tekken import Tekkenizer
from msgspec.structs import replace

from support.conversations.strategies import conversations
from support.counted_work import is_linear, no_hang, steps_of
from support.gateway.token_corpus import CORPUS, ROOT
from toolglot import convert, dump
from toolglot.conversation import (
    Block,
    Conversation,
    Media,
    Opaque,
    Options,
    OutputFormat,
    Role,
    ServerTool,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from toolglot.errors import InputError
from toolglot.gateway.endpoints import image_tokens, text_tokens
from toolglot.gateway.endpoints.image_tokens import UNKNOWN_IMAGE, UNKNOWN_MEDIA, formula_of, image_size, media_tokens
from toolglot.gateway.endpoints.text_tokens import CHARACTER_CLASSES, count_texts, counted_by, vocabulary_of
from toolglot.gateway.endpoints.token_counts import (
    ESTIMATE_HEADER,
    PER_CALL,
    PER_REQUEST,
    PER_RESULT,
    PER_TURN,
    decode_count,
    encode_count,
    estimate,
    estimate_async,
)
from toolglot.protocols.openai_chat import request as chat_request

MISTRAL: Final = "mistral-large-latest"

FOREIGN: Final = {
    "english": 0.10, "code": 0.20, "json": 0.15, "german": 0.20, "russian": 0.20,
    "chinese": 0.40, "japanese": 0.20, "korean": 0.20, "arabic": 0.20, "hindi": 0.30, "emoji": 0.50,
}  # fmt: skip
CLASSES: Final = {
    "english": 0.20, "code": 0.35, "json": 0.25, "german": 0.25, "russian": 0.25,
    "chinese": 0.40, "japanese": 0.35, "korean": 0.25, "arabic": 0.25, "hindi": 0.40, "emoji": 0.50,
}  # fmt: skip
"""The largest error of one text. Of all texts of a kind together: `TOGETHER`."""
TOGETHER: Final = {"english": 0.10, "code": 0.10, "json": 0.10}

OWN_REQUEST: Final = (0.03, 30)
FOREIGN_REQUEST: Final = (0.12, 30)
CLASSES_REQUEST: Final = (0.20, 30)
ESCAPED_REQUEST: Final = (0.20, 30)
"""A whole request: a share of its tokens, and what a template has around a small one. `ESCAPED`: the model's own
vocabulary, but a template that writes the results of tools as strings of JSON."""


@functools.cache
def vocabulary_file() -> Path:
    assert mistral_common.__file__
    return Path(mistral_common.__file__).parent / "data" / "tekken_240911.json"


@functools.cache
def tekken() -> Tekkenizer:
    return Tekkenizer.from_file(vocabulary_file())


@functools.cache
def template(version: TokenizerVersion) -> MistralTokenizer[Any, Any, Any, Any, Any]:
    """What Mistral's models read: since 2025 (v7) results are plain, before that (v3) they were strings of JSON."""
    written = {TokenizerVersion.v7: InstructTokenizerV7, TokenizerVersion.v3: InstructTokenizerV3}[version](tekken())
    return MistralTokenizer(written, get_validator(version, ValidationMode.test), get_normalizer(version, None))


def by_tekken(text: str) -> int:
    return len(tekken().encode(text, bos=False, eos=False))


def error(counted: int, true: int) -> float:
    return abs(counted / true - 1)


# --- texts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", CORPUS)
def test_a_model_with_a_public_vocabulary_is_counted_as_its_own_tokenizer_counts(kind: str) -> None:
    assert len(CORPUS[kind]) >= (10 if kind in TOGETHER else 1)
    for text in CORPUS[kind]:
        assert count_texts([text[:30_000]], MISTRAL) == by_tekken(text[:30_000])


@pytest.mark.parametrize("kind", CORPUS)
@pytest.mark.parametrize(
    ("by", "bounds"), [("o200k_base", FOREIGN), (CHARACTER_CLASSES, CLASSES)], ids=["foreign", "classes"]
)
def test_a_text_is_within_the_bound_of_its_kind(kind: str, by: str, bounds: dict[str, float]) -> None:
    pairs = [(count_texts([text], by=by), by_tekken(text)) for text in CORPUS[kind]]
    assert max(error(*pair) for pair in pairs) <= bounds[kind]
    together = error(sum(counted for counted, _ in pairs), sum(true for _, true in pairs))
    assert together <= TOGETHER.get(kind, bounds[kind])


@pytest.mark.parametrize(
    ("model", "vocabulary"),
    [
        ("gpt-5.2", "o200k_base"),
        ("claude-opus-4-7", "o200k_base"),
        ("gemini-3-pro", "o200k_base"),
        ("", "o200k_base"),
        ("deepseek-chat", "deepseek_v3"),
        ("accounts/fireworks/models/DeepSeek-V3", "deepseek_v3"),
        ("deepseek-r1-distill-qwen-32b", "qwen3"),
        ("deepseek-r1-distill-llama-70b", "llama3"),
        ("kimi-k2-0905-preview", "kimi_k2"),
        ("glm-4.6", "glm4"),
        ("open-mixtral-8x22b", "mistral_v3"),
        ("devstral-medium", "mistral_v3"),
        ("codestral-latest", "mistral_v3"),
    ],
)
def test_the_vocabulary_is_the_models_own_where_it_is_public(model: str, vocabulary: str) -> None:
    assert vocabulary_of(model) == counted_by(model) == vocabulary
    assert count_texts(["Hello, world!"], model) == count_texts(["Hello, world!"], by=vocabulary)


@pytest.mark.parametrize("vocabulary", sorted({name for _, name in text_tokens.VOCABULARIES} | {"o200k_base"}))
def test_every_vocabulary_is_in_the_package_and_counts(vocabulary: str) -> None:
    text = CORPUS["english"][0][:5_000]
    assert error(count_texts([text], by=vocabulary), by_tekken(text)) < 0.2


@pytest.mark.parametrize("name", ["<|endoftext|>", "<|im_start|>", "<|think|>", "[INST]", "</s>"])
def test_the_name_of_a_special_token_is_plain_text(name: str) -> None:
    for vocabulary in ("o200k_base", "qwen3", "mistral_v3"):
        assert count_texts([name], by=vocabulary) > 1


@pytest.mark.parametrize("by", ["o200k_base", CHARACTER_CLASSES])
def test_a_long_text_is_counted_by_pieces_and_comes_to_the_same(by: str) -> None:
    text = "\n".join(CORPUS["english"])
    assert len(text) > 3 * text_tokens.PIECE_CHARACTERS
    parts = [text[at : at + 10_000] for at in range(0, len(text), 10_000)]
    assert error(count_texts([text], by=by), count_texts(parts, by=by)) < 0.002
    assert count_texts(["a" * 100_000], by=by) > 0  # no blank to cut at


def test_beyond_the_limit_a_part_is_counted_for_the_whole() -> None:
    text = "\n".join(CORPUS["code"])[:400_000]
    once = count_texts([text])
    many = count_texts([text] * 30)
    assert len(text) * 30 > 2 * text_tokens.EXACT_CHARACTERS
    assert error(many, once * 30) < 0.05
    pieces = text_tokens.EXACT_CHARACTERS // text_tokens.PIECE_CHARACTERS
    assert steps_of(lambda: count_texts([text] * 300)) < 200 * (pieces + 300)


@pytest.mark.parametrize(
    "unit", ["a", " ", "\n", "汉字测试", "😀", "aA", " \n", "!", "\0", "e\u0301", "1", "\ud800", "'s"], ids=ascii
)
@pytest.mark.parametrize("by", ["o200k_base", CHARACTER_CLASSES])
def test_no_text_takes_more_than_linear_work(unit: str, by: str) -> None:
    def counting(length: int) -> Callable[[], object]:
        text = unit * (length // len(unit))
        return lambda: count_texts([text], by=by)

    assert is_linear(counting, 2 * text_tokens.PIECE_CHARACTERS)
    with no_hang():
        assert counting(1_000_000)() != 0


ANY_TEXT: Final = st.text(st.characters(exclude_categories=()), max_size=200)


@pytest.mark.law
@given(ANY_TEXT, ANY_TEXT)
def test_law_any_text_is_counted_and_no_token_is_less_than_a_byte(first: str, second: str) -> None:
    for by in ("o200k_base", CHARACTER_CLASSES):
        one, both = count_texts([first], by=by), count_texts([first, second], by=by)
        assert one <= both
        assert (one == 0) == (first == "")
        assert one <= 4 * len(first)
        assert count_texts([first, second], by=by) == both


# --- whole requests -----------------------------------------------------------------------------------


def true_count(body: dict[str, Any], version: TokenizerVersion = TokenizerVersion.v7) -> int:
    """As Mistral's own template and tokenizer have it."""
    read = {name: body[name] for name in ("model", "messages", "tools") if name in body}
    return len(template(version).encode_chat_completion(ChatCompletionRequest.model_validate(read)).tokens)


def for_mistral(body: dict[str, Any], source: str) -> dict[str, Any]:
    out = convert(body, source=source, target="mistral", model=MISTRAL)
    assert isinstance(out.body, dict)
    out.body.pop("response_format", None)  # a grammar there, no part of the prompt
    return out.body


RECORDED: Final = [
    "anthropic/anthropic_choice_any",
    "anthropic/anthropic_system_and_cache",
    "bedrock/boto3_choice_auto",
    "cohere/cohere_tools",
    "gemini/genai_tools_json_schema",
    "gemini/genai_system",
    "ollama/ollama_tools",
    "openai_chat/mistral_history",
    "openai_chat/openai_history",
    "openai_chat/openai_roles",
    "openai_chat/openai_tools_of_every_kind",
    "openai_responses/responses_instructions",
    "openai_responses/responses_structured",
]


def recorded(name: str) -> dict[str, Any]:
    path = ROOT / "tests" / "recordings" / f"{name}.request.json"
    body = json.loads(path.read_text("utf-8"))
    protocol = name.partition("/")[0]
    return for_mistral(body, {"openai_chat": "openai"}.get(protocol, protocol))


def agent_session(exchanges: int) -> dict[str, Any]:
    """A coding agent's request: long instructions, a dozen tools, files read and commands run."""
    files = CORPUS["code"][:: len(CORPUS["code"]) // exchanges][:exchanges]
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": CORPUS["english"][0][:8_000]},
        {"role": "user", "content": "Find where the ids are made, explain it, then change the prefix."},
    ]
    for number, text in enumerate(files):
        path, limit = f"src/toolglot/part_{number}.py", 200 + number
        arguments = {"path": path, "limit": limit, "reason": "the definition may be here"}
        call = {"name": "read_file_3", "arguments": json.dumps(arguments)}
        calls = [{"id": f"call{number:05d}", "type": "function", "function": call}]
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        messages.append({"role": "tool", "tool_call_id": f"call{number:05d}", "content": text[:3_000]})
    properties = {
        "path": {"type": "string", "description": "The file, relative to the root of the repository."},
        "limit": {"type": "integer", "minimum": 1, "description": "How many lines to read at most."},
        "reason": {"type": "string", "enum": ["the definition may be here", "its tests", "other"]},
    }
    schema = {"type": "object", "properties": properties, "required": ["path"], "additionalProperties": False}
    described = "Reads a file of the repository and returns its lines, numbered from one. Fails where there is none."
    functions = [{"name": f"read_file_{n}", "description": described, "parameters": schema} for n in range(12)]
    tools = [{"type": "function", "function": function} for function in functions]
    return for_mistral({"model": "gpt-4.1", "messages": messages, "tools": tools}, "openai")


WHOLE: Final = [*RECORDED, "agent:4", "agent:40"]


def assert_within(counted: int, true: int, bound: tuple[float, int]) -> None:
    share, tokens = bound
    assert abs(counted - true) <= max(share * true, tokens), f"{counted} for {true}"


def whole_request(name: str) -> dict[str, Any]:
    """A request; the alphabet of a recording's ids becomes such characters as a provider draws."""
    if name.startswith("agent:"):
        return agent_session(int(name[6:]))
    written = json.dumps(recorded(name)).replace("abcdefghi", "bpaIHQGB1").replace("abcdefghj", "jgIjMVkYI")
    body: dict[str, Any] = json.loads(written)
    return body


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_request_is_within_the_bound(name: str) -> None:
    body = whole_request(name)
    conversation, true = chat_request.decode(body), true_count(body)
    assert_within(estimate(conversation), true, OWN_REQUEST)
    assert_within(estimate(conversation, model="some-model"), true, FOREIGN_REQUEST)
    assert_within(estimate(conversation), true_count(body, TokenizerVersion.v3), ESCAPED_REQUEST)


WITHOUT_THE_PACKAGE: Final = """
import json, sys
sys.modules["splintr"] = None
import toolglot
from toolglot.gateway.endpoints.token_counts import estimate
from toolglot.gateway.endpoints.text_tokens import counted_by, prepare
prepare("gpt-5")
counts = [estimate(toolglot.load(text)) for text in json.load(sys.stdin)]
json.dump([counted_by("gpt-5"), counts], sys.stdout)
"""


def test_without_the_package_whole_requests_are_counted_by_classes_within_their_bound() -> None:
    bodies = [whole_request(name) for name in WHOLE]
    written = json.dumps([dump(chat_request.decode(body)).decode() for body in bodies])
    command = [sys.executable, "-W", "error", "-c", WITHOUT_THE_PACKAGE]
    run = subprocess.run(command, input=written, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    name, counts = json.loads(run.stdout)
    assert name == CHARACTER_CLASSES
    for body, counted in zip(bodies, counts, strict=True):
        assert_within(counted, true_count(body), CLASSES_REQUEST)


# --- what counts --------------------------------------------------------------------------------------


def turn_of(*blocks: Block, role: Role = "user") -> Turn:
    return Turn(role, blocks)


def cost(*blocks: Block, model: str = "") -> int:
    """What the blocks add to a turn."""
    return estimate(Conversation((turn_of(*blocks),)), model=model) - PER_REQUEST - PER_TURN


def test_an_empty_conversation_costs_what_begins_a_reply() -> None:
    assert estimate(Conversation()) == PER_REQUEST


def test_texts_results_and_calls_count_with_what_is_around_them() -> None:
    assert cost(Text("Hello, world!")) == 4
    for result in (
        ToolResult("id", "Hello, world!"),
        ToolResult("id", (Text("Hello, world!"),)),
        ToolResult("id", error="Hello, world!"),
    ):
        assert cost(result) == 4 + PER_RESULT
    assert cost(ToolResult("id")) == PER_RESULT
    assert cost(ToolResult("id", result={"answer": 42})) > PER_RESULT
    plain = cost(ToolCall("id", "read", {"path": "a.py"}))
    assert PER_CALL < plain < PER_CALL + 25
    assert cost(ToolCall("id", "read", raw_input='{"path": "a.py"}')) == plain
    assert cost(ToolCall("id", "read", {"path": "a.py"}, namespace="files")) > plain
    assert cost(ToolCall("another id, much longer than the first", "read", {"path": "a.py"})) == plain
    assert cost(ToolCall("id", "stop")) > PER_CALL


def test_tools_and_an_output_schema_count() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string", "description": "where it is"}}}
    one = estimate(Conversation(tools=(ToolSpec("read", "Reads a file.", schema),)))
    two = estimate(Conversation(tools=(ToolSpec("read", "Reads a file.", schema), ToolSpec("write", None, schema))))
    bare = estimate(Conversation(tools=(ToolSpec("read"),)))
    grammar = estimate(Conversation(tools=(ToolSpec("read", format={"type": "grammar", "definition": "a: B+"}),)))
    assert PER_REQUEST < bare < grammar < one < two
    output = Options(output=OutputFormat(kind="json_schema", schema=schema))
    assert estimate(Conversation(options=output)) > PER_REQUEST
    assert estimate(Conversation(options=Options(output=OutputFormat(kind="json")))) == PER_REQUEST


def test_thinking_counts_from_the_last_words_of_the_user_on() -> None:
    thought = Thinking("Let me think about this question for a good long while.", signature="x" * 900)
    call, result = ToolCall("a", "read", {}), ToolResult("a", "done")
    loop = (turn_of(Text("Go.")), turn_of(thought, call, role="assistant"), turn_of(result))
    ended = (*loop, turn_of(Text("Good."), role="assistant"), turn_of(Text("Go on.")))

    def difference(turns: tuple[Turn, ...], **options: bool) -> int:
        without = tuple(
            Turn(turn.role, tuple(block for block in turn.blocks if block is not thought)) for turn in turns
        )
        return estimate(Conversation(turns), **options) - estimate(Conversation(without), **options)  # type: ignore[arg-type]

    assert difference(loop) == cost(thought) > 5
    assert difference(ended) == 0
    assert difference(ended, earlier_thinking=True) == cost(thought)
    assert difference((turn_of(thought, role="assistant"),)) == cost(thought)


def test_sealed_thinking_counts_by_its_length() -> None:
    assert cost(Thinking(redacted="x" * 600)) == cost(Thinking(signature="x" * 600)) == 100
    assert cost(Thinking()) == 0


def test_what_only_one_provider_knows_counts_by_its_words_and_what_is_sealed_by_its_length() -> None:
    value = {"type": "search_result", "title": "Hello, world!", "rank": 1, "score": 0.5, "seen": [True, None, 1 << 999]}
    assert 8 < cost(Opaque("anthropic", value)) < 25
    assert cost(ServerTool("anthropic", "result", value)) == cost(Opaque("anthropic", value))
    sealed = Opaque("anthropic", {"encrypted_content": "QUJD" * 1_500})
    assert 1_000 <= cost(sealed) <= 1_010
    assert cost(Opaque("anthropic", None)) == 0


def test_the_model_of_the_upstream_counts_and_otherwise_that_of_the_conversation() -> None:
    hindi = turn_of(Text(CORPUS["hindi"][0]))
    glm = estimate(Conversation((hindi,), model="glm-4.6"))
    assert glm > 2 * estimate(Conversation((hindi,), model="gpt-5"))
    assert estimate(Conversation((hindi,), model="gpt-5"), model="glm-4.6") == glm


def test_hostile_values_are_counted_without_an_exception() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep, "x"]
    circle: dict[str, Any] = {}
    circle["again"] = circle
    for arguments in ({"deep": deep}, {"a": "\ud800"}, {"\udfff": 1}, {"a": 10**5000}, {"a": object()}, circle):
        assert cost(ToolCall("id", "x", arguments)) > PER_CALL
    while deep:  # taking it apart by recursion would be too deep
        deep = deep[0]


@pytest.mark.law
@given(conversations, ANY_TEXT)
def test_law_any_conversation_is_counted_and_one_more_turn_never_costs_less(made: Conversation, words: str) -> None:
    more = replace(made, turns=(*made.turns, turn_of(Text(words), role="assistant")))
    assert PER_REQUEST <= estimate(made) == estimate(made)
    assert estimate(more) >= estimate(made) + PER_TURN
    assert estimate(made, earlier_thinking=True) >= estimate(made)


def test_an_event_loop_goes_on_while_a_long_text_is_counted() -> None:
    conversation = Conversation((turn_of(Text("汉字测试" * 500_000)),))
    turned = 0

    async def run() -> int:
        nonlocal turned
        counting = asyncio.ensure_future(estimate_async(conversation))
        while not counting.done():
            await asyncio.sleep(0)
            turned += 1
        return counting.result()

    assert asyncio.run(run()) == estimate(conversation)
    assert turned > 10


# --- media --------------------------------------------------------------------------------------------


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height) + bytes(20)


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(20)


def jpeg(width: int, height: int) -> bytes:
    other = b"\xff\xe1" + struct.pack(">H", 40_002) + bytes(40_000) + b"\xff\xc4\0\x04ab"
    return b"\xff\xd8" + other + b"\xff\xff\xc2\0\x11\x08" + struct.pack(">HH", height, width) + bytes(20)


def webp(form: bytes, rest: bytes) -> bytes:
    return b"RIFF\0\0\0\0WEBP" + form + bytes(4) + rest + bytes(20)


def webp_lossy(width: int, height: int) -> bytes:
    return webp(b"VP8 ", bytes(3) + b"\x9d\x01\x2a" + struct.pack("<HH", width, height))


def webp_lossless(width: int, height: int) -> bytes:
    return webp(b"VP8L", b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14))


def webp_extended(width: int, height: int) -> bytes:
    return webp(b"VP8X", bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little"))


def as_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


FORMATS: Final = [png, gif, jpeg, webp_lossy, webp_lossless, webp_extended]


@pytest.mark.parametrize("made", FORMATS)
def test_the_size_of_an_image_is_read_from_its_head(made: Any) -> None:
    data = made(1234, 567)
    assert image_size(as_base64(data)) == (1234, 567)
    assert image_size(base64.urlsafe_b64encode(data).decode()) == (1234, 567)
    assert image_size(as_base64(data + b"\xff" * 400_000)) == (1234, 567)
    assert image_size("\n".join(as_base64(data)[at : at + 76] for at in range(0, 60_000, 76))) == (1234, 567)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x89PNG\r\n\x1a\n",
        png(0, 5),
        png(70_000, 5),
        b"\xff\xd8\xff",
        b"\xff\xd8" + b"\xff" * 500,
        b"\xff\xd8\xff\xe0\0\x10" + bytes(200),
        b"GIF8",
        webp_extended(5, 5)[:29],
        webp(b"ABCD", bytes(40)),
        b"RIFF\0\0\0\0WAVE" + bytes(40),
        b"BM" + bytes(100),
    ],
)
def test_what_is_no_readable_image_costs_the_constant(data: bytes) -> None:
    assert media_tokens(Media("image", data=as_base64(data))) == UNKNOWN_IMAGE


@pytest.mark.parametrize("data", ["!", "iVBOR", "\ud800" * 99, "ÄÖÜ", "A" * 1_000_001, "====", "iVBORw0KGgo="])
def test_damaged_base64_costs_the_constant(data: str) -> None:
    assert media_tokens(Media("image", data=data)) == UNKNOWN_IMAGE


def test_an_image_elsewhere_costs_the_constant_and_one_in_a_data_address_its_size() -> None:
    assert media_tokens(Media("image", url="https://example.org/a.png")) == UNKNOWN_IMAGE
    assert media_tokens(Media("image", file_id="file-1")) == UNKNOWN_IMAGE
    inline = Media("image", url="data:image/png;base64," + as_base64(png(280, 280)))
    assert media_tokens(inline) == media_tokens(Media("image", data=as_base64(png(280, 280)))) == 100
    assert cost(inline) == 100
    assert cost(ToolResult("id", (Text("Hello, world!"), inline))) == 104 + PER_RESULT


@pytest.mark.parametrize(
    ("model", "size", "tokens"),
    [
        # by platform.claude.com/docs/en/build-with-claude/vision, 28 pixels a patch
        ("claude-sonnet-4-6", (1000, 1000), 1296),
        ("claude-sonnet-4-6", (3000, 2000), 1568),
        ("claude-opus-4-7", (1920, 1080), 2691),
        ("claude-opus-4-7", (9000, 9000), 4784),
        ("qwen3-vl", (280, 280), 100),
        # by platform.openai.com/docs/guides/images-vision, tiles and patches
        ("gpt-4o", (1024, 1024), 765),
        ("gpt-4o", (2048, 4096), 1105),
        ("gpt-5", (1024, 1024), 630),
        ("gpt-5.4", (1024, 1024), 1229),
        # by ai.google.dev/gemini-api/docs/tokens, tiles or a fixed budget
        ("gemini-2.5-flash", (300, 384), 258),
        ("gemini-2.5-flash", (960, 540), 516),
        ("gemini-3-pro", (4000, 3000), 1120),
    ],
)
def test_an_image_costs_what_its_provider_says(model: str, size: tuple[int, int], tokens: int) -> None:
    assert formula_of(model)(*size) == tokens
    assert media_tokens(Media("image", data=as_base64(png(*size))), model) == tokens


def test_the_constant_lies_among_what_the_formulas_say_of_a_middling_image() -> None:
    costs = [formula(1000, 1000) for _, formula in image_tokens.FORMULAS] + [image_tokens.claude_image(1000, 1000)]
    assert min(costs) == 630
    assert max(costs) == 1296
    assert min(costs) < UNKNOWN_IMAGE < max(costs)


def test_documents_and_sounds_cost_by_their_size_or_a_constant() -> None:
    page = Media("document", "application/pdf", data=as_base64(bytes(50_000)))
    assert 1_900 < media_tokens(page) < 2_100
    second = Media("audio", "audio/mpeg", data=as_base64(bytes(16_000)))
    assert math.isclose(media_tokens(second), 32, abs_tol=1)
    assert media_tokens(Media("video", url="https://example.org/a.mp4")) == UNKNOWN_MEDIA


# --- replies ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["anthropic", "gemini", "openai_responses", "bedrock"])
def test_a_count_is_in_the_clients_shape_and_an_estimate_is_marked(protocol: str) -> None:
    exact, rough = encode_count(protocol, 1234, estimated=False), encode_count(protocol, 1234, estimated=True)
    assert exact.body == rough.body
    assert exact.headers == {}
    assert rough.headers == {ESTIMATE_HEADER: "true"} == {"x-toolglot-estimate": "true"}
    assert decode_count(protocol, exact.body) == 1234


def test_the_providers_own_sdks_read_the_counts() -> None:
    claude = anthropic.types.MessageTokensCount.model_validate_json(
        encode_count("anthropic", 7, True).body, strict=True
    )
    assert claude.input_tokens == 7
    body = json.loads(encode_count("openai_responses", 7, True).body)
    counted = openai.types.responses.InputTokenCountResponse.model_validate(body, strict=True)
    assert (counted.input_tokens, counted.object) == (7, "response.input_tokens")
    assert set(body) == {"input_tokens", "object"}
    gemini = genai_types.CountTokensResponse.model_validate_json(encode_count("gemini", 7, True).body)
    assert gemini.total_tokens == 7
    assert json.loads(encode_count("bedrock", 7, True).body) == {"inputTokens": 7}


@pytest.mark.parametrize(
    ("protocol", "body", "count"),
    [
        ("anthropic", b'{"input_tokens": 14, "context_management": {"original_input_tokens": 20}}', 14),
        ("gemini", b'{"totalTokens": 31, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 31}]}', 31),
        ("openai_chat", b'{"data": {"total_tokens": 80}}', 80),
        ("openai_chat", b'{"count": 9, "max_model_len": 4096, "tokens": []}', 9),
        ("anthropic", b'{"input_tokens": 0}', 0),
        ("anthropic", b'{"input_tokens": "14"}', None),
        ("anthropic", b'{"input_tokens": true}', None),
        ("anthropic", b'{"input_tokens": -1}', None),
        ("anthropic", b'{"error": "no"}', None),
        ("openai_chat", b'{"data": [80]}', None),
        ("anthropic", b"[14]", None),
        ("anthropic", b"", None),
        ("anthropic", b"\xff{", None),
        ("anthropic", b"[" * 100_000, None),
        ("cohere", b'{"tokens": [1, 2]}', None),
    ],
)
def test_an_upstreams_count_is_read_or_there_is_none(protocol: str, body: bytes, count: int | None) -> None:
    assert decode_count(protocol, body) == count


def test_a_protocol_without_a_count_reply_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="no reply that counts"):
        encode_count("ollama", 1, estimated=True)
