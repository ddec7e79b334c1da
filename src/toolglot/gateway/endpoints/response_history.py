"""What a request of the Responses protocol refers to, and where its response is kept: earlier responses, items, and
conversations.

Law: if several clients share an upstream's account, what is not known here may be another client's, and is not found.
"""

from __future__ import annotations

from typing import Any

from toolglot.gateway.endpoints import response_errors
from toolglot.gateway.http.offloading import WorkOffloader
from toolglot.gateway.services import Services
from toolglot.gateway.state.conversations import ConversationTurn, conversation_of
from toolglot.gateway.state.response_items import input_of
from toolglot.gateway.state.stored_responses import Link

Fields = dict[str, Any]


class ResponseHistory:
    """The history of one request."""

    def __init__(self, services: Services, client: str) -> None:
        self._services = services
        self._client = client
        self._conversation = ""
        """The conversation of this gateway that it belongs to; empty: none."""
        self._last_turn = ""
        """The key of the last turn of it."""
        self._seen: dict[str, Link] = {}
        """The exchange that it continues."""

    async def expand(self, fields: Fields, stored_by: str, *, is_native: bool, offload: WorkOffloader) -> Fields | None:
        """The request with everything that it refers to; None: it refers to nothing, or its upstream has it.

        stored_by: the upstream, if it stores responses itself.
        """
        may_be_elsewhere = is_native and not self._services.ring.is_shared
        turns = await self._turns(fields, may_be_elsewhere=may_be_elsewhere)
        return await self._services.responses.expand(
            self._client,
            fields,
            may_be_elsewhere=may_be_elsewhere,
            stored_by=stored_by,
            offload=offload,
            earlier=[(turn.stored_by, turn.items) for turn in turns] if turns is not None else None,
            seen=self._seen,
        )

    async def _turns(self, fields: Fields, *, may_be_elsewhere: bool) -> list[ConversationTurn] | None:
        """The items of the conversation that it names; None: it names none, or one that its upstream has."""
        id = conversation_of(fields)
        if not id:
            return None
        if fields.get("previous_response_id") is not None:
            raise response_errors.two_histories()
        turns = await self._services.conversations.turns(self._client, id)
        if turns is None and not may_be_elsewhere:
            raise response_errors.missing_conversation(id)
        if turns is not None:
            self._conversation, self._last_turn = id, turns[-1].key if turns else ""
        return turns

    async def keep(self, fields: Fields, body: Fields, stored_by: str) -> bool:
        """Keep a request and its response. Returns whether it can be continued by its id, here or at its provider."""
        responses, conversation = self._services.responses, self._conversation
        if conversation:
            items = [*(input_of(fields) or []), *(body.get("output") or [])]
            await self._services.conversations.append(
                self._client, conversation, items, stored_by=stored_by, last=self._last_turn
            )
        is_kept = await responses.keep(
            self._client, fields, body, stored_by=stored_by, conversation=conversation, seen=self._seen
        )
        return is_kept or bool(stored_by and not responses.is_on)
