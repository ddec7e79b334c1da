"""The one table of other spellings of a target's name.

Law: a name resolves to itself or to a target, never to another alias. Canonical ids hash the resolved
name, so an entry, once published, stays.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

ALIASES: Final[dict[str, str]] = {
    "amazon": "bedrock",
    "anthropic_messages": "anthropic",
    "aws": "bedrock",
    "aws_bedrock": "bedrock",
    "azure_openai": "azure",
    "bedrock_converse": "bedrock",
    "chat_completions": "openai",
    "claude": "anthropic",
    "co_here": "cohere",
    "converse": "bedrock",
    "dashscope": "qwen",
    "deep_seek": "deepseek",
    "gemini_api": "gemini",
    "google": "gemini",
    "google_ai": "gemini",
    "google_genai": "gemini",
    "google_vertex": "vertex",
    "grok": "xai",
    "llama_cpp": "llamacpp",
    "messages": "anthropic",
    "mistralai": "mistral",
    "moonshot": "kimi",
    "moonshotai": "kimi",
    "ollama_chat": "ollama",
    "open_router": "openrouter",
    "openai_chat": "openai",
    "openai_completions": "openai",
    "openai_response": "openai_responses",
    "responses": "openai_responses",
    "vertex_ai": "vertex",
    "vertexai": "vertex",
    "x_ai": "xai",
    "z_ai": "glm",
    "zai": "glm",
    "zhipu": "glm",
    "zhipuai": "glm",
}


TARGETS: Final = frozenset(
    {
        "anthropic",
        "azure",
        "bedrock",
        "cerebras",
        "cohere",
        "deepseek",
        "gemini",
        "glm",
        "groq",
        "kimi",
        "llamacpp",
        "minimax",
        "mistral",
        "ollama",
        "openai",
        "openai_responses",
        "openrouter",
        "qwen",
        "vertex",
        "vllm",
        "xai",
    }
)
"""The targets that come with toolglot."""


LONGEST: Final = 64
"""No target has a longer name, with any spelling."""


def resolve(name: str) -> str:
    """The target that a name means; a name that means none is returned as it is.

    Case does not count, and `-`, `.` and spaces are read as `_`.
    """
    return name if len(name) > LONGEST else _resolved(name)


@lru_cache(maxsize=1024)
def _resolved(name: str) -> str:
    plain = name.strip().lower().replace("-", "_").replace(".", "_").replace(" ", "_")
    if plain in TARGETS:
        return plain
    return ALIASES.get(plain, name)
