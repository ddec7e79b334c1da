"""litellm's translation of a Messages request into a Chat request, with orjson at both ends. Runs in its environment.

Calls the translation itself, without the handler, the logging and the routing around it: the best that a user of
litellm can get. The body is read anew for each call because the translation may write into it.
"""

from __future__ import annotations

import sys
from importlib.metadata import version

import orjson
from litellm.llms.anthropic.pass_through.adapters.transformation import LiteLLMAnthropicMessagesAdapter

from peers import run_peer

ADAPTER = LiteLLMAnthropicMessagesAdapter()


def translate(body: bytes) -> bytes:
    request, _names = ADAPTER.translate_anthropic_to_openai(orjson.loads(body), custom_llm_provider="openai")
    written: bytes = orjson.dumps(request)
    return written


if __name__ == "__main__":
    run_peer(f"litellm {version('litellm')}", translate, sys.argv[1])
