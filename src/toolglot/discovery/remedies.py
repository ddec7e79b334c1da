"""What toolglot does about what an endpoint refuses, by entry of the profile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from toolglot.discovery.findings import Finding

_Remedy = tuple[Callable[[Any], bool], str]


def _is(*values: Any) -> Callable[[Any], bool]:
    return lambda value: value in values


def _lacks(word: str) -> Callable[[Any], bool]:
    return lambda value: word not in value


REMEDIES: Final[dict[str, _Remedy]] = {
    "ids.style": (_is("fixed", "ordinal"), "ids are rewritten in that form, and back for the client"),
    "ids.pattern": (lambda value: "." not in value or "[" in value, "other ids are rewritten, and back for the client"),
    "ids.max_length": (lambda value: value < 64, "longer ids are replaced by shorter ones, and back for the client"),
    "ids.unique_in": (_is("conversation"), "a repeated id is replaced, with its result's"),
    "ids.required": (_is(True), "a missing id is made, for call and result alike"),
    "names.pattern": (lambda value: value != r"\S+", "other names are rewritten, and back for the client"),
    "names.max_length": (lambda value: value < 256, "longer names are shortened, and back for the client"),
    "names.unique": (_is(True), "the first tool of a name is kept, and the others are reported"),
    "tools.max_count": (lambda value: value is not None, "tools beyond that are left out and reported"),
    "tools.allow_empty_list": (_is(False), "an empty list of tools is left out"),
    "tools.required_with_history": (_is(True), "the tools that were called are declared again"),
    "tools.parameters_required": (_is(True), "a tool without a schema gets an empty one"),
    "tools.omit_empty_parameters": (_is(True), "an empty schema is left out"),
    "tools.description_required": (_is(True), "a tool without a description gets its name as one"),
    "tools.empty_description": (_is(False), "an empty description is left out"),
    "tools.strict": (_is("omit"), "strict is left out"),
    "tools.custom": (_is(False), "a free-text tool is sent as a function, and back for the client"),
    "tools.namespaces": (_is(False), "a namespace becomes a prefix of its tools' names"),
    "tools.by_prompt": (bool, "tools, calls and results are written as text, and calls are parsed from it"),
    "choice.modes": (
        lambda value: not {"none", "required", "named"} <= {*value},
        "a choice that is not accepted is replaced by the nearest one and reported",
    ),
    "choice.parallel_switch": (_is(False), "the switch for parallel calls is left out"),
    "calls.empty_content": (_is("empty", "omit"), "the content of a turn with only calls is written that way"),
    "calls.arguments_object_only": (_is(True), "other arguments are wrapped into an object"),
    "calls.parallel": (_is(False), "calls of one turn are sent as one turn each"),
    "calls.with_text": (_is(False), "text is sent in a turn of its own before the calls"),
    "calls.in_text": (_is(True), "calls are parsed from the text, in streams too"),
    "calls.after": (_is("user_or_result"), "a turn with calls is joined to the one before it"),
    "results.complete": (_is(True), "a call without a result gets one that says so"),
    "results.paired": (_is(True), "a result without a call is sent as text"),
    "results.single": (_is(True), "one result of a call is kept"),
    "results.adjacent": (_is(True), "results are moved to their calls"),
    "results.together": (_is(True), "the results of a turn are put into one"),
    "results.first": (_is(True), "results are put before everything else"),
    "results.alone": (_is(True), "other content is moved to a turn of its own"),
    "results.call_order": (_is(True), "results are sorted by their calls"),
    "results.name": (_is("required", "refused"), "the tool's name on a result is added, or left out"),
    "results.media": (_lacks("image"), "images of results are sent in a user turn after them"),
    "results.empty": (_is(False), "an empty result says that it is empty"),
    "results.empty_error": (_is(False), "a failed result without content says that it failed"),
    "results.user_after": (_is(False), "a short assistant turn is put between results and the user turn"),
    "turns.first": (_is("user"), "a conversation that the assistant begins gets a short user turn before it"),
    "turns.last": (_is("user_or_result"), "a request that ends with an assistant turn gets a short user turn"),
    "turns.alternate": (_is(True), "turns of one role in a row are merged"),
    "turns.system_inside": (_is("first_only", "no", "before_assistant"), "system messages are moved, or sent as text"),
    "turns.system_many": (_is(False), "system messages are joined into one"),
    "turns.developer_role": (_is(False), "developer messages are sent as system messages"),
    "turns.name_field": (_is(False), "names of speakers are left out"),
    "turns.empty_text": (_is(False), "empty texts are left out"),
    "turns.blank_text": (_is(False), "texts of white space are left out"),
    "turns.empty_turn": (_is(False), "turns without content are left out"),
    "turns.media": (_lacks("image"), "images are replaced by a note"),
    "reasoning.placeholder_on": (
        lambda value: value != "none",
        "thinking is kept for the client and put back, with a placeholder where it is lost",
    ),
    "schema.refused": (bool, "these keywords are removed from schemas and described in descriptions"),
    "schema.refs": (_is(False), "references are replaced by what they refer to"),
    "schema.type_lists": (_is(False), "a list of types becomes a union"),
    "schema.union_with_type": (_is(False), "the type next to a union is removed"),
    "schema.root_union": (_is(False), "a union at the root is merged into one object"),
    "schema.type_required": (_is(True), "a missing type is added"),
    "schema.nullable": (_is(True), "null is written as nullable"),
    "schema.enum_types": (_is("string"), "the values of an enum are written as strings"),
    "schema.formats": (lambda value: value is not None, "other formats are moved into the description"),
    "schema.properties_required": (_is(True), "a missing list of properties is added"),
    "schema.properties_non_empty": (_is(True), "an object without properties gets one for any key"),
    "schema.items_required": (_is(True), "an array without items gets them"),
    "schema.required_defined": (_is(True), "required names without a property are left out"),
    "request.max_tokens_field": (_is("max_completion_tokens"), "the limit is written in that field"),
    "request.max_tokens_required": (_is(True), "a missing limit is added"),
    "request.min_max_tokens": (lambda value: value > 1, "a smaller limit is raised"),
    "request.seed_field": (_is("random_seed"), "the seed is written in that field"),
    "request.sampling": (lambda value: len(value) < 7, "settings that are not accepted are left out and reported"),
    "request.output_with_tools": (_is(False), "structured output is left out if there are tools, and reported"),
    "request.unknown_fields": (_is("refused"), "unknown fields are left out"),
    "request.cache_markers": (_is(False), "cache markers are left out"),
    "stream.index": (_is("zero", "missing", "unreliable"), "streamed calls are distinguished by id and name"),
    "stream.finish_reason": (_is(False), "the reason is derived from the calls"),
}


def remedy(found: Finding) -> str:
    """What toolglot does because of a finding; empty if there is nothing to do."""
    entry = REMEDIES.get(found.key)
    return entry[1] if entry is not None and found.settles and entry[0](found.value) else ""
