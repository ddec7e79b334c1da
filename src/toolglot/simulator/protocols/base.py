"""What the simulator knows of a protocol: its paths, and how providers that speak it answer.

Each file of this folder has a protocol's name, and a `SIMULATED`. The replies are written by hand, after the providers'
own documentation, and not by the codecs: in tests the codecs read them, and a mistake of a codec must show.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final, Literal

from msgspec import Struct

from toolglot.conversation import StopReason
from toolglot.profiles import Profile
from toolglot.protocols.fields.reading import Fields
from toolglot.simulator.accepted_request import AcceptedRequest
from toolglot.simulator.prompt_cache import PromptBlock
from toolglot.simulator.replies.faults import CHAT_ONLY, STREAM_ONLY, Fault
from toolglot.simulator.replies.refusals import Refusal
from toolglot.simulator.replies.signatures import Signer
from toolglot.simulator.replies.streams import StreamJob, encoder_frames
from toolglot.simulator.replies.wordings import Wording
from toolglot.simulator.scripts.plan import ReplyPlan

RouteKind = Literal["generate", "compact", "embed", "count", "models", "model", "version", "show"]


class SimulatedRoute(Struct, frozen=True):
    """A path of a provider and what it is for."""

    pattern: str
    """A regular expression, with the groups `model` and `stream`."""
    protocol: str
    kind: RouteKind = "generate"
    method: str = "POST"
    target: str = ""
    """The target whose rules apply; empty: that of the provider."""


class ReplyContext(Struct, frozen=True):
    """What a reply needs besides its plan."""

    request: AcceptedRequest
    signer: Signer
    now: int
    """Seconds since 1970."""


class SimulatedProtocol:
    """A protocol as the simulator serves it. The methods that a protocol does not override do what most providers
    do."""

    routes: tuple[SimulatedRoute, ...] = ()
    stop_reasons: Mapping[StopReason, str] = {}
    """Why a reply ended, in the protocol's words."""
    wordings: Mapping[tuple[str, str], Wording] = {}
    """Error messages that quote the request, by target and rule."""
    codes: Mapping[tuple[str, str], str] = {}
    """Error codes, by target and rule."""
    body_faults: Mapping[str, Callable[[Fields], None]] = {}
    """What a fault does to the body of a reply with calls, where the plan alone cannot show it."""
    pages: Mapping[str, Fields] = {}
    """Replies that are always the same, by the kind of their route."""
    overflow_message: str = ""
    """The message for a prompt that is too long, where it is not that of the provider."""
    names_param: bool = True
    """Whether an error names the parameter that is wrong."""
    has_chat_faults: bool = False
    """Whether the faults of Chat Completions streams can happen to it."""
    stores_replies: bool = False
    """Whether the provider stores replies, so that requests can refer to them."""

    def check_request(self, body: Fields) -> Refusal | None:
        """Why a request is refused before the referee reads it; None if it is not."""
        return None

    def check_returned(
        self, body: Fields, profile: Profile, signer: Signer, headers: Mapping[str, str]
    ) -> Refusal | None:
        """Why the provider refuses signed thinking that came back; None if it does not.

        The referee sees whether there is a signature. Only the provider that made it knows whether it is valid: its
        own, for this content, at this position. What a provider does not check is not checked here either.
        """
        return None

    def check_plan(self, plan: ReplyPlan, fault: Fault | None) -> Refusal | None:
        """Why the provider fails on what its model wrote; None if it does not."""
        return None

    def prompt_blocks(self, body: Fields) -> list[PromptBlock]:
        """The prompt of a request in the order in which the provider caches it; empty if it has no cache."""
        return []

    def reply_body(self, context: ReplyContext, plan: ReplyPlan) -> Fields:
        """A plan as the body that the provider would send: native ids, fields and words, signed where it signs."""
        raise NotImplementedError

    def compaction_body(self, context: ReplyContext, *, is_path: bool) -> Fields | None:
        """The reply that is a compaction and nothing else, if the request wants that. `is_path`: its path says so."""
        return None

    def embeddings(self, body: Fields, profile: Profile) -> Fields | Refusal:
        """The reply to a request for embeddings, or why it is refused."""
        raise NotImplementedError

    def not_embedding(self, model: str) -> Refusal:
        """Why a model that writes has no embeddings."""
        return Refusal(kind="bad_request", message=f"the model '{model}' does not support embeddings", param="model")

    def stream_frames(self, job: StreamJob) -> list[bytes]:
        """The events of a stream, each in bytes."""
        return [frame.raw for frame in encoder_frames(job)]

    def array_frames(self, frames: list[bytes], query: Mapping[str, str]) -> list[bytes] | None:
        """The stream as one JSON array, if the query requests that; None: as events."""
        return None

    def model_entry(self, name: str, now: int) -> Fields:
        """A model in a list of models."""
        return {"id": name, "object": "model", "created": now, "owned_by": "toolglot"}

    def model_list(self, entries: list[Fields]) -> Fields:
        return {"object": "list", "data": entries}

    def token_count(self, count: int) -> Fields:
        return {"input_tokens": count}


@cache
def simulated_protocol(protocol: str) -> SimulatedProtocol:
    """How the simulator serves a protocol."""
    found: SimulatedProtocol = importlib.import_module(f"{__package__}.{protocol}").SIMULATED
    return found


def fault_mismatch(fault: Fault, protocol: str, *, stream: bool) -> str:
    """Why a fault cannot happen to a reply; empty if it can."""
    if fault.name in CHAT_ONLY and not simulated_protocol(protocol).has_chat_faults:
        return f"the fault {fault.name} exists in Chat Completions only"
    if fault.name in STREAM_ONLY and not stream:
        return f"the fault {fault.name} exists in streams only"
    return ""


# --- for the checks of what came back ---------------------------------------------------------------

BOUND_ELSEWHERE: Final = "The block is bound to a different conversation"


def account_of(headers: Mapping[str, str]) -> str:
    """The account of a request: each key is one."""
    return headers.get("authorization", "")


def returned_refusal(message: str, param: str = "", code: str = "") -> Refusal:
    return Refusal(kind="bad_request", message=message, param=param, code=code, rule="returned-thinking")


def objects(value: Any) -> Iterator[tuple[int, Fields]]:
    """The objects of a list, with their indices."""
    for index, item in enumerate(value if isinstance(value, list) else ()):
        if isinstance(item, dict):
            yield index, item
