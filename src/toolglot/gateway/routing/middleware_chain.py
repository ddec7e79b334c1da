"""The user's middleware in the gateway: a chain of steps around every request to a model.

A step sees the client's own messages and tools before they are rendered, and the client's reply before it is sent. It
may change both; an `InputError` that it raises goes to the client. A stream has been sent when its end is known: steps
see its reply, and cannot change it any more.

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
    """A step of the user's middleware failed with an error that is not toolglot's."""


def load_steps(names: Iterable[str], file: str = "") -> list[ToolMiddleware]:
    """The steps that a configuration names as `package.module:Name`; a class is called without arguments.

    Modules in the folder of the configuration are found too.
    """
    folder = str(Path(file).absolute().parent) if file else ""
    if names and folder and folder not in sys.path:
        sys.path.append(folder)
    where = f"{file}: " if file else ""
    return [_load(name, f"{where}gateway.middleware[{index}]") for index, name in enumerate(names)]


def _load(name: str, path: str) -> ToolMiddleware:
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
    """Runs the steps."""

    def __init__(self, steps: Sequence[ToolMiddleware]) -> None:
        self._chain = MiddlewareChain(steps) if steps else None

    def before(self, fields: dict[str, Any], *, protocol: str, model: str, provider: str) -> tuple[Request, bool]:
        """Run the steps on a request; the request as they left it, and whether they changed it."""
        turns = get(protocol).turns
        shown = copy.deepcopy({"messages": fields.get(turns), "tools": fields.get("tools")})
        messages = shown["messages"] if isinstance(shown["messages"], list) else [shown["messages"]]
        request = Request(model=model, provider_id=provider, messages=messages, tools=shown["tools"])
        assert self._chain is not None  # noqa: S101 - the caller has checked
        try:
            self._chain.process_request(request)
        except ToolglotError:
            raise
        except Exception as error:
            raise MiddlewareError(f"a middleware failed on the request: {type(error).__name__}") from error
        original = fields.get(turns)
        before = original if isinstance(original, list) else [original]
        is_changed = request.messages != before or request.tools != fields.get("tools") or request.model != model
        return request, is_changed

    @staticmethod
    def change_fields(fields: dict[str, Any], request: Request, protocol: str) -> dict[str, Any]:
        """The fields of the request as the steps left it."""
        turns = get(protocol).turns
        original = fields.get(turns)
        messages: Any = request.messages
        if not isinstance(original, list) and len(messages) == 1 and messages[0] == original:
            messages = original
        new = {**fields, turns: messages}
        if "model" in fields:
            new["model"] = request.model
        if request.tools is None:
            new.pop("tools", None)
        else:
            new["tools"] = request.tools
        return new

    def after_reply(
        self, request: Request, body: dict[str, Any], reply: Reply, *, source: str, provider: str
    ) -> dict[str, Any]:
        """The body of a reply as the steps leave it."""
        return self._after(request, copy.deepcopy(body), reply, source, provider)

    def after_stream(self, request: Request, reply: Reply, *, protocol: str, source: str, provider: str) -> None:
        """Run the steps on a reply that was streamed."""
        self._after(request, codec(protocol).reply.encode(reply), reply, source, provider)

    def _after(self, request: Request, body: Any, reply: Reply, source: str, provider: str) -> dict[str, Any]:
        shown = Response(
            body, provider_id=provider, output_format=source, tool_calls=[*reply.turn.calls], request=request
        )
        assert self._chain is not None  # noqa: S101 - the caller has checked
        try:
            self._chain.process_response(shown)
        except ToolglotError:
            raise
        except Exception as error:
            raise MiddlewareError(f"a middleware failed on the reply: {type(error).__name__}") from error
        if not isinstance(shown.body, dict):
            raise MiddlewareError("a middleware left a reply that is not an object")
        return shown.body

    def __bool__(self) -> bool:
        return self._chain is not None
