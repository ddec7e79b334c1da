"""The user's middleware in the gateway: the chain of seed 003 around every request to a model.

A step sees the client's own messages and tools before they are rendered, and the client's reply before it is sent. It
may change both; what it raises as `InputError` is told to the client. A stream has been sent when its end is known:
steps see its reply, and cannot change it any more.

Law: without steps nothing is copied and nothing is called.
"""

from __future__ import annotations

import copy
import importlib
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from toolglot.conversation import Reply
from toolglot.errors import InputError, ToolglotError, quote
from toolglot.middleware import MiddlewareChain, Request, Response, ToolMiddleware
from toolglot.protocols.base import codec, get


class MiddlewareError(ToolglotError):
    """A step of the user's middleware failed in a way of its own."""


def load_steps(names: Iterable[str], file: str = "") -> list[ToolMiddleware]:
    """The steps that a config names as `package.module:Name`; a class is called without arguments.

    Modules beside the config's file are found too.
    """
    folder = str(Path(file).absolute().parent) if file else ""
    if names and folder and folder not in sys.path:
        sys.path.append(folder)
    where = f"{file}: " if file else ""
    return [_loaded(name, f"{where}gateway.middleware[{place}]") for place, name in enumerate(names)]


def _loaded(name: str, path: str) -> ToolMiddleware:
    module, _, attribute = name.partition(":")
    hint = "write package.module:Name, of a module beside the configuration or one that Python finds"
    if not module or not attribute:
        raise InputError(f"expected package.module:Name, got {quote(name)}", path=path, hint=hint)
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
        step = found() if isinstance(found, type) else found
    except Exception as error:
        raise InputError(f"cannot load {quote(name)}: {type(error).__name__}: {error}", path=path, hint=hint) from error
    return step  # type: ignore[no-any-return]


class GatewayMiddleware:
    """The steps, and what they are shown."""

    def __init__(self, steps: Sequence[ToolMiddleware]) -> None:
        self._chain = MiddlewareChain(steps) if steps else None

    def before(self, fields: dict[str, Any], *, protocol: str, model: str, provider: str) -> tuple[Request, bool]:
        """Show a request to the steps; what they made of it, and whether they changed it."""
        turns = get(protocol).turns
        shown = copy.deepcopy({"messages": fields.get(turns), "tools": fields.get("tools")})
        messages = shown["messages"] if isinstance(shown["messages"], list) else [shown["messages"]]
        asked = Request(model=model, provider_id=provider, messages=messages, tools=shown["tools"])
        assert self._chain is not None  # noqa: S101 - whoever asks has looked
        try:
            self._chain.process_request(asked)
        except ToolglotError:
            raise
        except Exception as error:
            raise MiddlewareError(f"a middleware failed on the request: {type(error).__name__}") from error
        given = fields.get(turns)
        was = given if isinstance(given, list) else [given]
        is_changed = asked.messages != was or asked.tools != fields.get("tools") or asked.model != model
        return asked, is_changed

    @staticmethod
    def changed(fields: dict[str, Any], asked: Request, protocol: str) -> dict[str, Any]:
        """The request as the steps left it."""
        turns = get(protocol).turns
        given = fields.get(turns)
        messages: Any = asked.messages
        if not isinstance(given, list) and len(messages) == 1 and messages[0] == given:
            messages = given
        new = {**fields, turns: messages}
        if "model" in fields:
            new["model"] = asked.model
        if asked.tools is None:
            new.pop("tools", None)
        else:
            new["tools"] = asked.tools
        return new

    def after_reply(
        self, asked: Request, body: dict[str, Any], reply: Reply, *, source: str, provider: str
    ) -> dict[str, Any]:
        """The body of a reply as the steps leave it."""
        return self._after(asked, copy.deepcopy(body), reply, source, provider)

    def after_stream(self, asked: Request, reply: Reply, *, protocol: str, source: str, provider: str) -> None:
        """Show the steps what was streamed."""
        self._after(asked, codec(protocol).reply.encode(reply), reply, source, provider)

    def _after(self, asked: Request, body: Any, reply: Reply, source: str, provider: str) -> dict[str, Any]:
        shown = Response(
            body, provider_id=provider, output_format=source, tool_calls=[*reply.turn.calls], request=asked
        )
        assert self._chain is not None  # noqa: S101 - whoever asks has looked
        try:
            self._chain.process_response(shown)
        except ToolglotError:
            raise
        except Exception as error:
            raise MiddlewareError(f"a middleware failed on the reply: {type(error).__name__}") from error
        if not isinstance(shown.body, dict):
            raise MiddlewareError("a middleware left a reply that is no object")
        return shown.body

    def __bool__(self) -> bool:
        return self._chain is not None
