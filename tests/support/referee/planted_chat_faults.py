"""Faults to plant into a good body of Chat Completions, one for each profile key."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from support.referee.good_bodies import (
    ONE,
    PIXEL,
    THREE,
    Body,
    chat_call,
    chat_result,
    chat_saying,
)
from support.referee.planted_faults import (
    AS_IT_IS,
    EITHER,
    Plant,
    edit,
    inside,
    refuses_fields,
    where,
)
from toolglot.profiles import Profile

IMAGE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}


def chat(change: Callable[[list[Body]], Any]) -> Plant:
    return edit(lambda body: change(body["messages"]))


def both_ids(make: Callable[[str], str]) -> Plant:
    """Another id on the first call and its result."""

    def change(messages: list[Body]) -> None:
        messages[2]["tool_calls"][0]["id"] = messages[3]["tool_call_id"] = make(ONE)

    return chat(change)


def with_results(body: Body, profile: Profile, *more: Body) -> Body:
    return body | {"messages": [*body["messages"], *more]}


def named_choice(mode: str) -> Any:
    name = {"name": "get_weather"}
    allowed = {"mode": "auto", "tools": [{"type": "function", "function": name}]}
    special = {
        "named": {"type": "function", "function": name},
        "allowed": {"type": "allowed_tools", "allowed_tools": allowed},
    }
    return special.get(mode, mode)


def refused_choice(profile: Profile) -> str | None:
    return next((mode for mode in ("named", "allowed", "required", "none") if mode not in profile.choice.modes), None)


def refused_while_thinking(profile: Profile) -> str | None:
    if profile.reasoning.default != "on":
        return None
    return next((mode for mode in profile.choice.modes if mode not in profile.choice.while_thinking), None)


MORE_MEDIA = {
    "image": IMAGE,
    "audio": {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}},
    "video": {"type": "video_url", "video_url": {"url": "https://example.com/a.mp4"}},
}


def refused_medium(profile: Profile) -> Body | None:
    return next((part for kind, part in MORE_MEDIA.items() if kind not in profile.turns.media), None)


CHAT_PLANTS: dict[str, Plant] = {
    **EITHER,
    "ids.pattern": both_ids(lambda _: "a b c def"),
    "ids.max_length": where(
        lambda p: p.ids.style != "fixed",  # where the exact length is demanded too
        lambda body, profile: both_ids(lambda _: "a" * (profile.ids.max_length + 1))(body, profile),
    ),
    "ids.fixed_length": where(lambda p: p.ids.style == "fixed", both_ids(lambda _: "abc")),
    "ids.required": chat(lambda m: m[2]["tool_calls"][0].pop("id")),
    "ids.written": where(lambda p: not p.ids.written, edit(lambda _: None)),
    "ids.unique_in": chat(lambda m: m[2]["tool_calls"].append(chat_call(ONE))),
    "names.pattern": edit(lambda body: body["tools"][0]["function"].update(name="get weather")),
    "names.max_length": chat(lambda m: m[2]["tool_calls"][0]["function"].update(name="a" * 65)),
    "tools.parameters_required": where(
        lambda p: p.tools.parameters_required, edit(lambda body: body["tools"][0]["function"].pop("parameters"))
    ),
    "tools.description_required": where(
        lambda p: p.tools.description_required, edit(lambda body: body["tools"][0]["function"].pop("description"))
    ),
    "tools.empty_description": where(
        lambda p: not p.tools.empty_description, edit(lambda body: body["tools"][0]["function"].update(description=""))
    ),
    "tools.strict": where(
        lambda p: p.tools.strict == "omit" and refuses_fields(p),
        edit(lambda body: body["tools"][0]["function"].update(strict=False)),
    ),
    "tools.custom": where(
        lambda p: not p.tools.custom,
        edit(lambda body: body["tools"].append({"type": "custom", "custom": {"name": "free"}})),
    ),
    "tools.namespaces": edit(lambda body: body["tools"].append({"type": "namespace", "name": "crm", "tools": []})),
    "tools.server": edit(lambda body: body["tools"].append({"type": "no_such_tool"})),
    "choice.modes": lambda body, profile: (
        body | {"tool_choice": named_choice(mode)}
        if (mode := refused_choice(profile))
        else body | {"tool_choice": "odd"}
    ),
    "choice.while_thinking": lambda body, profile: (
        body | {"tool_choice": named_choice(mode)} if (mode := refused_while_thinking(profile)) else None
    ),
    "choice.needs_tools": edit(lambda body: (body.pop("tools"), body.update(tool_choice="auto"))),
    "choice.parallel_switch": where(
        lambda p: not p.choice.parallel_switch and refuses_fields(p),
        edit(lambda body: body.update(parallel_tool_calls=False)),
    ),
    "choice.parallel_with_none": where(
        lambda p: not p.choice.parallel_with_none,
        edit(lambda body: body.update(tool_choice="none", parallel_tool_calls=False)),
    ),
    "calls.arguments": chat(lambda m: m[2]["tool_calls"][0]["function"].update(arguments={"city": "Bonn"})),
    "calls.arguments_object_only": chat(lambda m: m[2]["tool_calls"][0]["function"].update(arguments="[1")),
    "calls.parallel": where(lambda p: not p.calls.parallel, AS_IT_IS),
    "calls.with_text": where(lambda p: not p.calls.with_text, AS_IT_IS),
    "calls.empty_content": where(lambda p: p.calls.empty_content == "empty", chat(lambda m: m[2].update(content=None))),
    "calls.after": where(lambda p: p.calls.after != "any", chat(lambda m: m.pop(1))),
    "results.complete": chat(lambda m: m.pop()),
    "results.paired": lambda body, profile: with_results(body, profile, chat_result(profile, THREE)),
    "results.single": lambda body, profile: with_results(body, profile, chat_result(profile, ONE)),
    "results.adjacent": chat(lambda m: m.insert(4, {"role": "user", "content": "Well?"})),
    "results.call_order": chat(lambda m: m.append(m.pop(3))),
    "results.name": lambda body, profile: (
        None
        if profile.results.name in ("optional", "wanted")
        else chat(
            (lambda m: m[3].update(name="get_weather"))
            if profile.results.name == "refused"
            else (lambda m: m[3].pop("name", None))
        )(body, profile)
    ),
    "results.body": chat(lambda m: m[3].update(content=[{"type": "refusal", "refusal": "No."}])),
    "results.media": chat(lambda m: m[3].update(content=[IMAGE])),
    "results.empty": where(lambda p: not p.results.empty, chat(lambda m: m[3].update(content=""))),
    "results.user_after": where(
        lambda p: not p.results.user_after, chat(lambda m: m.append({"role": "user", "content": "Well?"}))
    ),
    "results.max_length": where(lambda p: p.results.max_length is not None, AS_IT_IS),
    "turns.first": where(lambda p: p.turns.first == "user", chat(lambda m: m.pop(1))),
    "turns.last": where(
        lambda p: p.turns.last != "any",
        chat(lambda m: (m.pop(), m.pop())),
    ),
    "turns.prefill": where(
        lambda p: p.turns.last != "any" and p.turns.prefill != "yes",
        lambda body, profile: with_results(body, profile, chat_saying(profile, "It is")),
    ),
    "turns.alternate": where(
        lambda p: p.turns.alternate, chat(lambda m: m.insert(1, {"role": "user", "content": "Hi"}))
    ),
    "turns.min_user": where(lambda p: p.turns.min_user > 0, chat(lambda m: m.pop(1))),
    "turns.system_inside": where(
        lambda p: p.turns.system_inside != "anywhere", chat(lambda m: m.insert(2, {"role": "system", "content": "Hm."}))
    ),
    "turns.system_many": where(
        lambda p: not p.turns.system_many, chat(lambda m: m.insert(1, {"role": "system", "content": "Hm."}))
    ),
    "turns.developer_role": where(lambda p: not p.turns.developer_role, chat(lambda m: m[0].update(role="developer"))),
    "turns.function_role": where(
        lambda p: not p.turns.function_role,
        chat(lambda m: m.insert(2, {"role": "function", "name": "read", "content": "printed"})),
    ),
    "turns.name_field": where(
        lambda p: not p.turns.name_field and refuses_fields(p), chat(lambda m: m[1].update(name="ana"))
    ),
    "turns.empty_text": chat(lambda m: m[1].update(content=[{"type": "text", "text": ""}])),
    "turns.blank_text": chat(lambda m: m[1].update(content=" \n")),
    "turns.empty_turn": chat(lambda m: m[1].update(content="")),
    "turns.empty_prefill": where(
        lambda p: not p.turns.empty_prefill, chat(lambda m: m.append({"role": "assistant", "content": ""}))
    ),
    "turns.required": chat(lambda m: m.clear()),
    "turns.trailing_space": where(
        lambda p: p.turns.prefill != "no",
        lambda body, profile: with_results(body, profile, chat_saying(profile, "It is ") | {"prefix": True}),
    ),
    "turns.media": lambda body, profile: where(
        lambda p: refused_medium(p) is not None, chat(lambda m: m[1].update(content=[refused_medium(profile)]))
    )(body, profile),
    "turns.media_sources": where(
        lambda p: "url" not in p.turns.media_sources,
        chat(lambda m: m[1].update(content=[{"type": "image_url", "image_url": "https://example.com/a.png"}])),
    ),
    "turns.assistant_media": chat(lambda m: m[2].update(content=[IMAGE])),
    "reasoning.carrier": lambda body, profile: chat(
        lambda m: m[2].update(
            content=[{"type": "thinking", "thinking": "Hm."}]
            if profile.reasoning.carrier != "thinking_chunks"
            else "a",
            **({} if profile.reasoning.carrier != "thinking_chunks" else {"reasoning_content": "Hm."}),
        )
    )(body, profile),
    "reasoning.modes": where(
        lambda p: p.reasoning.modes or refuses_fields(p), edit(lambda body: body.update(thinking={"type": "adaptive"}))
    ),
    "reasoning.placeholder_on": where(
        lambda p: p.reasoning.placeholder_on != "none" and p.reasoning.default != "off",
        chat(lambda m: m[2].pop("reasoning_content", None)),
    ),
    "reasoning.may_end_turn": chat(
        lambda m: m.insert(2, {"role": "assistant", "content": "", "reasoning_content": "Hm."})
    ),
    "reasoning.efforts": where(
        lambda p: p.reasoning.efforts or refuses_fields(p), edit(lambda body: body.update(reasoning_effort="odd"))
    ),
    "reasoning.budget": where(
        lambda p: not p.reasoning.budget and refuses_fields(p), edit(lambda body: body.update(thinking_budget=100))
    ),
    "reasoning.switch": where(
        refuses_fields,
        lambda body, profile: (
            body
            | (
                {"thinking": {"type": "enabled"}}
                if profile.reasoning.switch == "enable_thinking"
                else {"enable_thinking": True}
            )
        ),
    ),
    "reasoning.budget_required": where(
        lambda p: p.reasoning.budget_required, edit(lambda body: body.update(thinking={"type": "enabled"}))
    ),
    "reasoning.min_budget": where(lambda p: p.reasoning.budget, edit(lambda body: body.update(thinking_budget=0))),
    "reasoning.budget_below_limit": where(
        lambda p: p.reasoning.budget, edit(lambda body: body.update(thinking_budget=5000, max_tokens=2000))
    ),
    "reasoning.narrows_sampling": where(
        lambda p: p.reasoning.narrows_sampling and "on" in p.reasoning.modes and "temperature" in p.request.sampling,
        edit(lambda body: body.update(thinking={"type": "enabled"}, temperature=0.5)),
    ),
    "reasoning.refused_sampling": where(
        lambda p: p.reasoning.refused_sampling and p.reasoning.efforts and "temperature" in p.request.sampling,
        lambda body, profile: (
            copy.deepcopy(body) | {"reasoning_effort": profile.reasoning.efforts[-1], "temperature": 0.5}
        ),
    ),
    "reasoning.one_setting": where(
        lambda p: p.reasoning.one_setting,
        edit(lambda body: body.update(thinking={"type": "enabled"}, reasoning_effort="low")),
    ),
    "reasoning.grouped": where(
        lambda p: p.reasoning.grouped,
        chat(
            lambda m: m.__setitem__(
                slice(2, 2), [{"role": "assistant", "content": "", "reasoning_content": "Hm."}, copy.deepcopy(m[1])]
            )
        ),
    ),
    "request.max_tokens_field": where(
        lambda p: p.request.max_tokens_field == "max_tokens" and refuses_fields(p),
        edit(lambda body: body.update(max_completion_tokens=100)),
    ),
    "request.min_max_tokens": edit(lambda body: body.update(max_tokens=0)),
    "request.sampling": where(refuses_fields, edit(lambda body: body.update(top_k=5))),
    "request.fields": where(
        lambda p: p.request.fields is not None and "store" not in p.request.fields and refuses_fields(p),
        edit(lambda body: body.update(store=False)),
    ),
    "request.message_fields": where(
        lambda p: p.request.message_fields is not None and refuses_fields(p),
        chat(lambda m: m[2].update(annotations=[])),
    ),
    "request.seed_field": where(
        lambda p: p.request.seed_field == "random_seed" and refuses_fields(p), edit(lambda body: body.update(seed=1))
    ),
    "turns.document_part": where(
        lambda p: p.turns.document_part == "document_url" and "document" in p.turns.media,
        chat(
            lambda m: m[1].update(
                content=[{"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi0xLjQK"}}]
            )
        ),
    ),
    "request.refused_fields": where(
        lambda p: "logprobs" in p.request.refused_fields, edit(lambda body: body.update(logprobs=True))
    ),
    "reasoning.signature_fields": where(
        lambda p: p.reasoning.signature_fields,
        chat(lambda m: m[2]["tool_calls"][0].update(extra_content={"google": {"thought_signature": "s"}})),
    ),
    "request.temperature_min": where(
        lambda p: p.request.temperature_min is not None and "temperature" in p.request.sampling,
        edit(lambda body: body.update(temperature=-0.5)),
    ),
    "request.temperature_max": where(
        lambda p: p.request.temperature_max is not None and "temperature" in p.request.sampling,
        edit(lambda body: body.update(temperature=2.5)),
    ),
    "request.temperature_or_top_p": where(
        lambda p: p.request.temperature_or_top_p and "temperature" in p.request.sampling,
        edit(lambda body: body.update(temperature=0.5, top_p=0.9)),
    ),
    "request.max_stop": where(
        lambda p: p.request.max_stop is not None and "stop" in p.request.sampling,
        edit(lambda body: body.update(stop=[f"END {n}" for n in range(17)])),
    ),
    "request.blank_stop": where(
        lambda p: not p.request.blank_stop and "stop" in p.request.sampling, edit(lambda body: body.update(stop="\n"))
    ),
    "request.output": lambda body, profile: (
        body | {"response_format": {"type": "grammar", "grammar": "a"}}
        if profile.request.output or refuses_fields(profile)
        else None
    ),
    "request.output_closed": where(
        lambda p: p.request.output_closed != "no",
        edit(
            lambda body: body.update(
                response_format={
                    "type": "json_schema",
                    "json_schema": {"name": "n", "strict": True, "schema": inside({"type": "string"})},
                }
            )
        ),
    ),
    "request.output_with_tools": where(
        lambda p: not p.request.output_with_tools,
        edit(lambda body: body.update(response_format={"type": "json_object"})),
    ),
    "request.user": where(lambda p: not p.request.user and refuses_fields(p), edit(lambda body: body.update(user="u"))),
    "cache.key_length": where(
        lambda p: p.cache.key_length is not None, edit(lambda body: body.update(prompt_cache_key="k" * 69))
    ),
    "request.cache_markers": where(
        lambda p: not p.request.cache_markers and refuses_fields(p),
        edit(lambda body: body["tools"][0].update(cache_control={"type": "ephemeral"})),
    ),
    "request.foreign_models": where(
        lambda p: p.request.foreign_models, edit(lambda body: body.update(model="gemini-3-pro"))
    ),
}

CHAT_UNSEEN = {
    "cache.max_markers": "only OpenRouter has markers",
    "cache.positions": "only OpenRouter has markers, and it ignores those that it does not know",
    "cache.ttls": "only OpenRouter has markers",
    "request.hosted_version": "there is no such field",
    "tools.deferred": "there is no field for it",
    "reasoning.foreign_marks": "thinking stands in plain fields",
    "calls.text_after": "calls have a field of their own, which has no position",
    "ids.item_id_prefix": "a call has one id",
    "turns.document_name": "names of documents are free here",
    "results.together": "a message holds one result",
    "results.first": "a message holds one result; what stands before it breaks adjacency",
    "results.alone": "a message holds one result",
    "results.colocated": "a message holds one result",
    "results.error_flag": "there is no such field",
    "results.error_media": "there is no error mark",
    "results.empty_error": "there is no error mark",
    "turns.system": "there is no such field: `system` is an unknown one",
    "reasoning.signed": "thinking stands in plain fields",
    "reasoning.leading": "thinking has a field of its own, which has no position",
    "reasoning.before_calls": "thinking has a field of its own, which has no position",
}
"""Keys whose demand cannot be broken in this protocol."""
