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
    "fireworks": "openai_compatible",
    "fireworks_ai": "openai_compatible",
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
    "nvidia": "openai_compatible",
    "nvidia_nim": "openai_compatible",
    "ollama_chat": "ollama",
    "open_router": "openrouter",
    "open_ai": "openai",
    "openai_chat": "openai",
    "openai_compat": "openai_compatible",
    "openai_completions": "openai",
    "openai_response": "openai_responses",
    "responses": "openai_responses",
    "together": "openai_compatible",
    "together_ai": "openai_compatible",
    "togetherai": "openai_compatible",
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
        "openai_compatible",
        "openai_responses",
        "openrouter",
        "qwen",
        "vertex",
        "vllm",
        "xai",
    }
)
"""The targets that come with toolglot."""


ANY_HOST: Final = "openai_compatible"
"""The target of a host that no profile describes."""

LONGEST: Final = 64
"""No target has a longer name, with any spelling."""


def resolve(name: str) -> str:
    """The target that a name means; a name that means none is returned as it is.

    This is for names that were stored: they are read back whatever became of them. A name that a caller gives goes
    through `profiles.find`. Case does not count, and `-`, `.` and spaces are read as `_`.
    """
    return name if len(name) > LONGEST else _resolved(name)


def plain(name: str) -> str:
    """A name without what does not count in it."""
    return name.strip().lower().replace("-", "_").replace(".", "_").replace(" ", "_")


@lru_cache(maxsize=1024)
def _resolved(name: str) -> str:
    spelled = plain(name)
    if spelled in TARGETS:
        return spelled
    return ALIASES.get(spelled, name)
