"""Faults to plant into a good body of Anthropic's Messages, one for each profile key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from support.referee.good_bodies import (
    ONE,
    PIXEL,
    THREE,
    Body,
    claude_call,
    claude_result,
    claude_text,
)
from support.referee.planted_faults import (
    AS_IT_IS,
    EITHER,
    Plant,
    edit,
    inside,
    where,
)

CLAUDE_IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
MARK = {"cache_control": {"type": "ephemeral"}}
LONG_MARK = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"}


def blocks(turn: int, change: Callable[[list[Body]], Any]) -> Plant:
    return edit(lambda body: change(body["messages"][turn]["content"]))


def claude_ids(id_: str) -> Plant:
    return edit(
        lambda body: (
            body["messages"][1]["content"][1].update(id=id_),
            body["messages"][2]["content"][0].update(tool_use_id=id_),
        )
    )


CLAUDE_PLANTS: dict[str, Plant] = {
    **EITHER,
    "ids.pattern": claude_ids("functions.x:0"),
    "ids.max_length": claude_ids("a" * 65),
    "ids.fixed_length": where(lambda p: p.ids.style == "fixed", claude_ids("abc")),
    "ids.required": blocks(1, lambda b: b[1].pop("id")),
    "ids.written": where(lambda p: not p.ids.written, edit(lambda _: None)),
    "ids.unique_in": blocks(1, lambda b: b.append(claude_call(ONE))),
    "names.pattern": edit(lambda body: body["tools"][0].update(name="get weather")),
    "names.max_length": blocks(1, lambda b: b[1].update(name="a" * 129)),
    "tools.parameters_required": edit(lambda body: body["tools"][0].pop("input_schema")),
    "tools.description_required": where(
        lambda p: p.tools.description_required, edit(lambda body: body["tools"][0].pop("description"))
    ),
    "tools.empty_description": where(
        lambda p: not p.tools.empty_description, edit(lambda body: body["tools"][0].update(description=""))
    ),
    "tools.strict": where(lambda p: p.tools.strict == "omit", edit(lambda body: body["tools"][0].update(strict=False))),
    "tools.server": edit(lambda body: body["tools"].append({"type": "no_such_tool_20260101", "name": "x"})),
    "tools.deferred": edit(lambda body: [tool.update(defer_loading=True) for tool in body["tools"]]),
    "choice.modes": edit(lambda body: body.update(tool_choice={"type": "odd"})),
    "choice.while_thinking": edit(
        lambda body: body.update(
            model="claude-sonnet-4-5",
            tool_choice={"type": "any"},
            thinking={"type": "enabled", "budget_tokens": 2000},
        )
    ),
    "choice.needs_tools": edit(lambda body: (body.pop("tools"), body.update(tool_choice={"type": "auto"}))),
    "choice.parallel_switch": where(
        lambda p: not p.choice.parallel_switch,
        edit(lambda body: body.update(tool_choice={"type": "auto", "disable_parallel_tool_use": True})),
    ),
    "choice.parallel_with_none": edit(
        lambda body: body.update(tool_choice={"type": "none", "disable_parallel_tool_use": True})
    ),
    "calls.text_after": blocks(1, lambda b: b.append(claude_text("There."))),
    "calls.arguments": blocks(1, lambda b: b[1].update(input='{"city": "Bonn"}')),
    "calls.arguments_object_only": blocks(1, lambda b: b[1].update(input=[1])),
    "calls.parallel": where(lambda p: not p.calls.parallel, AS_IT_IS),
    "calls.with_text": where(lambda p: not p.calls.with_text, AS_IT_IS),
    "calls.after": where(lambda p: p.calls.after != "any", edit(lambda body: body["messages"].pop(0))),
    "results.complete": blocks(2, lambda b: b.pop()),
    "results.paired": blocks(2, lambda b: b.append(claude_result(THREE))),
    "results.single": blocks(2, lambda b: b.append(claude_result(ONE))),
    "results.adjacent": edit(
        lambda body: (
            body["messages"].insert(2, {"role": "user", "content": "Wait"})
            or body["messages"].insert(3, {"role": "assistant", "content": "I do"})
        )
    ),
    "results.together": edit(
        lambda body: body["messages"].append({"role": "user", "content": [body["messages"][2]["content"].pop()]})
    ),
    "results.first": blocks(2, lambda b: b.insert(1, claude_text("Look"))),
    "results.alone": where(lambda p: p.results.alone, blocks(2, lambda b: b.append(claude_text("Look")))),
    "results.colocated": where(
        lambda p: "image" not in p.results.colocated, blocks(2, lambda b: b.append(CLAUDE_IMAGE))
    ),
    "results.call_order": where(lambda p: p.results.call_order, blocks(2, lambda b: b.append(b.pop(0)))),
    "results.name": blocks(2, lambda b: b[0].update(name="get_weather")),
    "results.body": where(
        lambda p: p.results.body == "text",
        blocks(2, lambda b: b[0].update(content=[{"type": "tool_reference", "tool_name": "x"}])),
    ),
    "results.media": where(
        lambda p: "image" not in p.results.media,
        blocks(2, lambda b: b[0].update(content=[CLAUDE_IMAGE])),
    ),
    "results.error_flag": where(lambda p: not p.results.error_flag, blocks(2, lambda b: b[0].update(is_error=True))),
    "results.error_media": blocks(2, lambda b: b[0].update(is_error=True, content=[CLAUDE_IMAGE])),
    "results.empty": where(lambda p: not p.results.empty, blocks(2, lambda b: b[0].update(content=""))),
    "results.empty_error": blocks(2, lambda b: b[0].update(is_error=True, content="")),
    "results.max_length": where(lambda p: p.results.max_length is not None, AS_IT_IS),
    "turns.first": edit(lambda body: body["messages"].pop(0)),
    "turns.last": edit(lambda body: body["messages"].pop()),
    "turns.prefill": where(
        lambda p: p.turns.prefill != "yes",
        edit(lambda body: body["messages"].append({"role": "assistant", "content": "It is"})),
    ),
    "turns.alternate": where(
        lambda p: p.turns.alternate, edit(lambda body: body["messages"].insert(0, {"role": "user", "content": "Hi"}))
    ),
    "turns.min_user": edit(lambda body: body.update(messages=[{"role": "assistant", "content": "Hi"}])),
    "turns.system": where(lambda p: p.turns.system == "message", AS_IT_IS),
    "turns.system_inside": edit(
        lambda body: (
            body["messages"].insert(1, {"role": "system", "content": "Hm."}) or body.update(model="claude-sonnet-4-5")
        )
    ),
    "turns.empty_text": blocks(1, lambda b: b[0].update(text="")),
    "turns.blank_text": blocks(1, lambda b: b[0].update(text=" \n")),
    "turns.empty_turn": edit(lambda body: body["messages"][0].update(content=[])),
    "turns.empty_prefill": where(
        lambda p: not p.turns.empty_prefill,
        edit(lambda body: body["messages"].append({"role": "assistant", "content": []})),
    ),
    "turns.required": edit(lambda body: body["messages"].clear()),
    "turns.trailing_space": where(
        lambda p: p.turns.prefill != "no",
        edit(lambda body: body["messages"].append({"role": "assistant", "content": "It is "})),
    ),
    "turns.assistant_media": blocks(1, lambda b: b.insert(0, CLAUDE_IMAGE)),
    "turns.media_sources": where(
        lambda p: "url" not in p.turns.media_sources,
        edit(
            lambda body: body["messages"][0].update(
                content=[{"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}]
            )
        ),
    ),
    "reasoning.modes": edit(lambda body: body.update(thinking={"type": "between_tools"})),
    "reasoning.signed": blocks(1, lambda b: b.insert(0, THOUGHT | {"signature": ""})),
    "reasoning.leading": edit(lambda body: body.update(thinking={"type": "enabled", "budget_tokens": 2000})),
    "reasoning.before_calls": blocks(1, lambda b: b.append(THOUGHT)),
    "reasoning.may_end_turn": blocks(1, lambda b: b.append(THOUGHT)),
    "reasoning.efforts": edit(lambda body: body.update(output_config={"effort": "odd"})),
    "reasoning.budget": edit(lambda body: body.update(thinking={"type": "enabled", "budget_tokens": 2000})),
    "reasoning.budget_required": where(
        lambda p: p.reasoning.budget_required, edit(lambda body: body.update(thinking={"type": "enabled"}))
    ),
    "reasoning.min_budget": edit(
        lambda body: body.update(model="claude-sonnet-4-5", thinking={"type": "enabled", "budget_tokens": 10})
    ),
    "reasoning.budget_below_limit": edit(
        lambda body: body.update(
            model="claude-sonnet-4-5", max_tokens=1500, thinking={"type": "enabled", "budget_tokens": 2000}
        )
    ),
    "reasoning.narrows_sampling": edit(
        lambda body: body.update(
            model="claude-sonnet-4-5", thinking={"type": "enabled", "budget_tokens": 2000}, temperature=0.5
        )
    ),
    "reasoning.refused_sampling": where(
        lambda p: p.reasoning.refused_sampling,
        edit(
            lambda body: body.update(
                model="claude-sonnet-4-5", thinking={"type": "enabled", "budget_tokens": 2000}, temperature=0.5
            )
        ),
    ),
    "reasoning.one_setting": where(
        lambda p: p.reasoning.one_setting,
        edit(lambda body: body.update(thinking={"type": "adaptive"}, output_config={"effort": "low"})),
    ),
    "reasoning.grouped": where(lambda p: p.reasoning.grouped, blocks(1, lambda b: b.append(THOUGHT))),
    "request.min_max_tokens": edit(lambda body: body.update(max_tokens=0)),
    "request.sampling": edit(lambda body: body.update(temperature=1)),
    "reasoning.foreign_marks": blocks(1, lambda b: b.insert(0, THOUGHT | {"signature": "gAAAAABo"})),
    "reasoning.signature_fields": blocks(
        1, lambda b: b[1].update(extra_content={"google": {"thought_signature": "s"}})
    ),
    "request.temperature_min": edit(lambda body: body.update(model="claude-sonnet-4-5", temperature=-0.5)),
    "request.temperature_max": edit(lambda body: body.update(model="claude-sonnet-4-5", temperature=1.5)),
    "request.temperature_or_top_p": edit(
        lambda body: body.update(model="claude-sonnet-4-5", temperature=0.5, top_p=0.9)
    ),
    "request.max_stop": where(
        lambda p: p.request.max_stop is not None, edit(lambda body: body.update(stop_sequences=list("abcde")))
    ),
    "request.blank_stop": edit(lambda body: body.update(stop_sequences=["END", "\n"])),
    "request.output": edit(lambda body: body.update(output_config={"format": {"type": "odd"}})),
    "request.output_closed": edit(
        lambda body: body.update(
            output_config={"format": {"type": "json_schema", "schema": inside({"type": "string"})}}
        )
    ),
    "request.output_with_tools": where(
        lambda p: not p.request.output_with_tools,
        edit(lambda body: body.update(output_config={"format": {"type": "json_schema", "schema": {}}})),
    ),
    "request.user": where(lambda p: not p.request.user, edit(lambda body: body.update(metadata={"user_id": "u"}))),
    "cache.max_markers": edit(
        lambda body: body["messages"].append(
            {"role": "user", "content": [claude_text(word) | MARK for word in ("a", "b", "c", "d", "e")]}
        )
    ),
    "cache.positions": where(
        lambda p: "tools" not in p.cache.positions, edit(lambda body: body["tools"][0].update(MARK))
    ),
    "cache.ttls": edit(lambda body: (body["tools"][0].update(MARK), body["tools"][1].update(LONG_MARK))),
    "request.cache_markers": where(
        lambda p: not p.request.cache_markers,
        edit(lambda body: body["tools"][0].update(cache_control={"type": "ephemeral"})),
    ),
    "request.refused_fields": where(
        lambda p: "cache_control" in p.request.refused_fields, edit(lambda body: body.update(MARK))
    ),
    "request.hosted_version": where(
        lambda p: p.request.hosted_version, edit(lambda body: body.update(anthropic_version="2023-06-01"))
    ),
    "request.foreign_models": where(
        lambda p: p.request.foreign_models, edit(lambda body: body.update(model="gemini-3-pro"))
    ),
}

CLAUDE_UNSEEN = {
    "cache.key_length": "there is no key",
    "request.fields": "all hosts have the same fields",
    "request.message_fields": "all hosts have the same fields",
    "request.seed_field": "there is no seed",
    "turns.document_part": "a document has one form",
    "ids.item_id_prefix": "a call has one id",
    "turns.document_name": "names of documents are free here",
    "tools.custom": "`type: custom` is an ordinary tool here",
    "tools.namespaces": "there is no such tool",
    "calls.empty_content": "a turn that only calls has no text block",
    "results.user_after": "results stand in the user's turn",
    "turns.system_many": "the field holds one prompt",
    "turns.developer_role": "there is no such role",
    "turns.function_role": "there are no such messages",
    "turns.name_field": "there is no such field",
    "turns.media": "there are blocks for images and documents only",
    "reasoning.carrier": "there is one form of thinking",
    "reasoning.switch": "there is one switch",
    "reasoning.placeholder_on": "nothing stands for lost thinking here",
    "request.max_tokens_field": "there is one such field",
}
