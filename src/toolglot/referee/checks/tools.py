"""Definitions of tools, and the choice among them."""

from __future__ import annotations

from toolglot.errors import quote
from toolglot.referee.finding import Check, Checks, Findings, RequestCase, RuleBreach, step
from toolglot.referee.view import PartView, ToolView


def tool_count(case: RequestCase) -> Findings:
    tools, limit = case.view.tools or (), case.profile.tools.max_count
    if limit is not None and len(tools) > limit:
        message = f"{len(tools)} tools, at most {limit} are accepted"
        yield RuleBreach(case.view.tools_path, message, "send fewer tools", str(len(tools)))


def empty_list(case: RequestCase) -> Findings:
    if case.view.tools == () and not case.profile.tools.allow_empty_list:
        yield RuleBreach(case.view.tools_path, "the list of tools is empty", "leave tools and tool_choice out")


def tools_with_history(case: RequestCase) -> Findings:
    has_history = case.pairing.rounds or case.pairing.orphans
    if case.profile.tools.required_with_history and has_history and not case.has_tools:
        message = "the history holds calls or results, but no tools are declared"
        yield RuleBreach(case.view.tools_path, message, "declare the tools that were called")


def _functions(case: RequestCase) -> list[ToolView]:
    return [tool for tool in case.view.tools or () if tool.kind == "function"]


def parameters_required(case: RequestCase) -> Findings:
    for tool in _functions(case) if case.profile.tools.parameters_required else ():
        if tool.schema is None:
            hint = 'send {"type": "object", "properties": {}}'
            yield RuleBreach(tool.path, "the tool has no parameter schema", hint, tool.name or "")


def empty_schema(case: RequestCase) -> Findings:
    for tool in _functions(case) if not case.profile.tools.empty_schema else ():
        if tool.schema == {}:
            hint = 'send {"type": "object", "properties": {}}'
            yield RuleBreach(tool.schema_path or tool.path, "the parameter schema is empty", hint, tool.name or "")


def omit_empty_parameters(case: RequestCase) -> Findings:
    for tool in _functions(case) if case.profile.tools.omit_empty_parameters else ():
        if isinstance(tool.schema, dict) and not tool.schema.get("properties"):
            path = tool.schema_path or tool.path
            yield RuleBreach(path, "a tool without parameters must not have a schema", "leave the schema out")


def description_required(case: RequestCase) -> Findings:
    for tool in _functions(case) if case.profile.tools.description_required else ():
        if not tool.description:
            yield RuleBreach(tool.path, "the tool has no description", "describe the tool", tool.name or "")


def empty_description(case: RequestCase) -> Findings:
    for tool in _functions(case) if not case.profile.tools.empty_description else ():
        if tool.description == "":
            yield RuleBreach(tool.path, "the description of the tool is empty", "leave it out", tool.name or "")


def strict_field(case: RequestCase) -> Findings:
    form = case.profile.tools.strict
    is_checked = form in ("omit", "only_false", "request") and not case.ignores("tools.strict")
    for tool in _functions(case) if is_checked else ():
        if tool.strict is not None and not (form == "only_false" and tool.strict is False):
            yield RuleBreach(tool.path, "the field strict is not accepted", "leave strict out", tool.name or "")


def _foreign(kind: str, what: str) -> Check:
    def check(case: RequestCase) -> Findings:
        is_native = case.profile.tools.custom if kind == "custom" else case.profile.tools.namespaces
        for tool in (case.view.tools or ()) if not is_native else ():
            if tool.kind == kind:
                yield RuleBreach(tool.path, f"{what} are not supported", "send it as a function", tool.type[:80])

    return check


def _is_of_type(type_: str, known: str) -> bool:
    """Whether a tool is of a known type, or of a dated version of it."""
    if known.endswith("*"):
        return type_.startswith(known[:-1])
    return type_ == known or type_.startswith(known + "_")


def server_tools(case: RequestCase) -> Findings:
    known = case.profile.tools.server
    for tool in case.view.tools or ():
        if tool.kind == "server" and not any(_is_of_type(tool.type, type_) for type_ in known):
            message = f"tools of type {quote(tool.type)} are not supported"
            yield RuleBreach(tool.path, message, "leave it out, or send a function instead", tool.type[:80])


def deferred_tools(case: RequestCase) -> Findings:
    tools, forms = case.view.tools or (), case.profile.tools.deferred
    for tool in tools if "declared" not in forms else ():
        if tool.is_deferred:
            yield RuleBreach(tool.path, "a tool cannot be deferred", "declare it when it is loaded", tool.name or "")
    if tools and "declared" in forms and all(tool.is_deferred for tool in tools):
        hint = "leave a tool that is not deferred, for example the one that searches"
        yield RuleBreach(case.view.tools_path, "all tools are deferred", hint)
    known = {tool.name for tool in tools}
    for part in _tool_changes(case):
        if part.is_definition:
            known.add(part.name)
        if (part.tool_change if part.tool_change == "referenced" else "added") not in forms:
            yield RuleBreach(part.path, f"a {part.type} is not accepted", "write it as text", part.type)
        elif part.name is not None and part.name not in known:
            message = f"{quote(part.name)} is not a tool of the request"
            yield RuleBreach(part.path, message, "declare the tool with the others", part.name[:80])


def _tool_changes(case: RequestCase) -> list[PartView]:
    parts = [part for message in case.view.messages for item in message.items for part in (item, *item.content)]
    return [part for part in parts if part.tool_change]


def tools_elsewhere(case: RequestCase) -> Findings:
    target = case.profile.tools.protocol
    if target and case.has_tools:
        yield RuleBreach(
            case.view.tools_path, "this model does not support tools on this endpoint", f"use the target {target}"
        )


def choice_modes(case: RequestCase) -> Findings:
    choice, modes = case.view.choice, case.profile.choice.modes
    if choice is not None and choice.mode not in modes:
        message = f"tool choice {choice.mode} is not accepted"
        yield RuleBreach(choice.path, message, f"one of {', '.join(modes)}", choice.mode)


def choice_while_thinking(case: RequestCase) -> Findings:
    choice, modes = case.view.choice, case.profile.choice.while_thinking
    # Adaptive thinking accepts a forced choice and then does not think (anthropic-choice-thinking).
    if choice is None or case.thinking != "on" or choice.mode not in case.profile.choice.modes:
        return
    if choice.mode not in modes:
        message = f"tool choice {choice.mode} is not accepted while thinking is on"
        yield RuleBreach(choice.path, message, f"one of {', '.join(modes)}, or thinking off", choice.mode)


def choice_needs_tools(case: RequestCase) -> Findings:
    choice = case.view.choice
    if not case.profile.choice.needs_tools:
        return
    for setting in (choice, case.view.parallel):
        if setting is not None and not case.has_tools and not case.view.later_tools:
            yield RuleBreach(setting.path, "there is a tool choice, but no tools", "leave it out, or send the tools")
    if choice is not None and (case.has_tools or case.view.later_tools):
        listed = (*(case.view.tools or ()), *case.view.later_tools)
        known = {tool.name for tool in (*listed, *(member for tool in listed for member in tool.members))}
        for name in choice.names:
            if name not in known:
                message = f"the tool choice names {quote(name)}, which is not a tool of the request"
                yield RuleBreach(choice.path, message, "name one of the tools", name[:80], is_aside=True)


def parallel_switch(case: RequestCase) -> Findings:
    parallel = case.view.parallel
    if parallel is not None and not case.profile.choice.parallel_switch and not case.ignores("choice.parallel_switch"):
        yield RuleBreach(parallel.path, "a switch for parallel calls is not accepted", "leave it out")


def parallel_with_none(case: RequestCase) -> Findings:
    parallel, choice = case.view.parallel, case.view.choice
    if parallel is None or choice is None or choice.mode != "none" or case.profile.choice.parallel_with_none:
        return
    yield RuleBreach(
        parallel.path, "a switch for parallel calls is not accepted with tool choice none", "leave the switch out"
    )


def extra_tool_fields(case: RequestCase) -> Findings:
    """Shared with `request.unknown_fields`."""
    for tool in (case.view.tools or ()) if case.profile.tools.unknown_fields == "refused" else ():
        for name in tool.extra_fields:
            yield RuleBreach(step(tool.path, name), f"a tool has no field {quote(name)}", "leave it out", name[:80])


CHECKS: Checks = {
    "tools.max_count": tool_count,
    "tools.allow_empty_list": empty_list,
    "tools.required_with_history": tools_with_history,
    "tools.parameters_required": parameters_required,
    "tools.empty_schema": empty_schema,
    "tools.omit_empty_parameters": omit_empty_parameters,
    "tools.description_required": description_required,
    "tools.empty_description": empty_description,
    "tools.strict": strict_field,
    "tools.custom": _foreign("custom", "free-text tools"),
    "tools.namespaces": _foreign("namespace", "namespaces of tools"),
    "tools.server": server_tools,
    "tools.deferred": deferred_tools,
    "tools.protocol": tools_elsewhere,
    "choice.modes": choice_modes,
    "choice.while_thinking": choice_while_thinking,
    "choice.needs_tools": choice_needs_tools,
    "choice.parallel_switch": parallel_switch,
    "choice.parallel_with_none": parallel_with_none,
}
