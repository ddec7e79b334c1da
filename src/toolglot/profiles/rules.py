"""What a profile can say: the keys, their types, what they mean, and the conservative defaults.

Each class is a group, each field a key (`ids.max_length`). The defaults are the render-safe core: a
request that satisfies them is accepted by nearly every provider, so they serve an unknown one.
The loader, the error messages, the generated rulebook and the renderer all read this table.

Law: a key describes what a target demands, never what toolglot does about it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Names = tuple[str, ...]


class Group(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class IdRules(Group, frozen=True, kw_only=True):
    """Ids of tool calls."""

    style: Annotated[
        Literal["prefixed", "fixed", "ordinal"],
        Meta(
            description="How ids are made for this target: a prefix and the canonical suffix, a fixed "
            "number of alphanumerics, or `functions.{name}:{n}`."
        ),
    ] = "prefixed"
    prefix: Annotated[str, Meta(description="The prefix of style `prefixed`.")] = "call_"
    pattern: Annotated[str, Meta(description="Pattern that a whole id must match.")] = "[A-Za-z0-9_-]+"
    max_length: Annotated[int, Meta(ge=9, description="Maximum length of an id, in characters.")] = 40
    fixed_length: Annotated[int, Meta(ge=9, description="Exact length of style `fixed`.")] = 9
    required: Annotated[bool, Meta(description="Calls and results must carry an id.")] = True
    written: Annotated[
        bool, Meta(description="Calls and results may carry an id; without, order and name pair them.")
    ] = True
    unique_in: Annotated[
        Literal["conversation", "turn"], Meta(description="Where the same id may not occur twice.")
    ] = "conversation"
    item_id_prefix: Annotated[
        str, Meta(description="Prefix that the separate id of a call item must have; empty: no such id.")
    ] = ""


class NameRules(Group, frozen=True, kw_only=True):
    """Names of tools."""

    pattern: Annotated[str, Meta(description="Pattern that a whole name must match.")] = "[A-Za-z_][A-Za-z0-9_-]*"
    max_length: Annotated[int, Meta(ge=1, description="Maximum length of a name.")] = 64
    unique: Annotated[bool, Meta(description="Two tools may not share a name.")] = True


class ToolRules(Group, frozen=True, kw_only=True):
    """Definitions of tools."""

    max_count: Annotated[
        int | None, Meta(description="Maximum number of tools in a request; null: no known limit.")
    ] = None
    allow_empty_list: Annotated[bool, Meta(description="`tools: []` is accepted.")] = False
    required_with_history: Annotated[
        bool, Meta(description="Tools must be declared when the history holds calls or results.")
    ] = False
    parameters_required: Annotated[bool, Meta(description="A tool must have a parameter schema.")] = True
    empty_schema: Annotated[bool, Meta(description="`{}` is accepted as the schema of no parameters.")] = False
    omit_empty_parameters: Annotated[bool, Meta(description="A tool without parameters must omit the schema.")] = False
    description_required: Annotated[bool, Meta(description="A tool must have a description.")] = False
    empty_description: Annotated[bool, Meta(description="A description may be empty.")] = False
    strict: Annotated[
        Literal["omit", "only_false", "optional", "explicit_false", "request"],
        Meta(
            description="The `strict` field: refused, accepted as false only, free to use, to be sent as false when "
            "not wanted because leaving it out means true, or refused on a tool and one switch for all of a request."
        ),
    ] = "omit"
    unknown_fields: Annotated[
        Literal["ignored", "refused"],
        Meta(description="What happens to an unknown field of a tool, if unknown fields are refused."),
    ] = "refused"
    custom: Annotated[bool, Meta(description="Free-text (custom) tools are native.")] = False
    namespaces: Annotated[bool, Meta(description="Namespace tools are native.")] = False
    server: Annotated[
        Names, Meta(description="Types of tools that the provider runs itself; `*` at the end matches any ending.")
    ] = ()
    deferred: Annotated[
        tuple[Literal["declared", "referenced", "added", "searched", "defined"], ...],
        Meta(
            description="What there is for tools that are loaded later: a tool may be declared as deferred, a result "
            "may name the tools that it loads, a prompt in the middle may add and remove tools, the provider "
            "searches for tools itself, and results and prompts define the tools that they load."
        ),
    ] = ()
    web_search: Annotated[
        str, Meta(description="The type of the provider's own tool that searches the web; empty: none.")
    ] = ""
    web_fetch: Annotated[
        str, Meta(description="The type of the provider's own tool that reads a page; empty: none.")
    ] = ""
    forced_search: Annotated[bool, Meta(description="A tool choice can demand the provider's own search.")] = False
    search_with_functions: Annotated[
        bool, Meta(description="The provider's own search and functions may be in one request.")
    ] = True
    protocol: Annotated[str, Meta(description="The target to use instead when tools are wanted; empty: this one.")] = ""
    by_prompt: Annotated[
        str,
        Meta(
            description="The dialect in which tools, calls and results are written as text, for a model without a tool "
            "API; empty: they are sent as such."
        ),
    ] = ""


class ChoiceRules(Group, frozen=True, kw_only=True):
    """`tool_choice` and parallel control."""

    modes: Annotated[
        tuple[Literal["auto", "none", "required", "named", "allowed"], ...],
        Meta(description="Modes that the target accepts."),
    ] = ("auto", "none")
    while_thinking: Annotated[
        tuple[Literal["auto", "none", "required", "named", "allowed"], ...],
        Meta(description="Modes that it accepts while thinking is on."),
    ] = ("auto", "none")
    needs_tools: Annotated[bool, Meta(description="A choice without tools is refused.")] = True
    parallel_switch: Annotated[bool, Meta(description="Parallel calls can be switched off.")] = False
    parallel_with_none: Annotated[
        bool, Meta(description="The switch for parallel calls is accepted together with tool choice none.")
    ] = True


class CallRules(Group, frozen=True, kw_only=True):
    """Tool calls in the history."""

    arguments: Annotated[Literal["string", "object"], Meta(description="How arguments are written on the wire.")] = (
        "string"
    )
    arguments_object_only: Annotated[bool, Meta(description="Arguments that are not a JSON object are refused.")] = True
    parallel: Annotated[bool, Meta(description="An assistant turn may hold several calls.")] = True
    with_text: Annotated[bool, Meta(description="An assistant turn may hold text beside calls.")] = True
    text_after: Annotated[bool, Meta(description="Text may follow a call in its turn.")] = True
    empty_content: Annotated[
        Literal["null", "empty", "omit"],
        Meta(description="What to write as the text of a turn that has only calls."),
    ] = "null"
    malformed: Annotated[
        str,
        Meta(description="The target's stop reason for a reply in which the model wrote a call that cannot be read."),
    ] = ""
    in_text: Annotated[bool, Meta(description="Replies may hold calls that the model wrote as text.")] = False
    after: Annotated[Literal["any", "user_or_result"], Meta(description="What a turn with calls may follow.")] = "any"


class ResultRules(Group, frozen=True, kw_only=True):
    """Tool results in the history."""

    carrier: Annotated[
        Literal["message", "block", "item"],
        Meta(description="A message of its own, a block in a user turn, or an input item."),
    ] = "message"
    complete: Annotated[bool, Meta(description="Every call must have a result.")] = True
    paired: Annotated[bool, Meta(description="Every result must have a call before it.")] = True
    single: Annotated[bool, Meta(description="A call may have one result only.")] = True
    adjacent: Annotated[bool, Meta(description="Results directly follow the turn that called.")] = True
    together: Annotated[bool, Meta(description="All results of a turn are in one turn.")] = False
    first: Annotated[bool, Meta(description="Results come before anything else in their turn.")] = True
    alone: Annotated[bool, Meta(description="A turn with results holds nothing else.")] = False
    colocated: Annotated[
        tuple[Literal["text", "image", "document"], ...],
        Meta(description="What may share a turn with results, where not everything may."),
    ] = ("text", "image", "document")
    call_order: Annotated[bool, Meta(description="Results come in the order of their calls.")] = True
    name: Annotated[
        Literal["required", "wanted", "optional", "refused"],
        Meta(description="The tool's name on a result; `wanted`: accepted without, understood better with it."),
    ] = "optional"
    body: Annotated[Literal["text", "blocks", "object"], Meta(description="What a result's content may be.")] = "text"
    media: Annotated[Names, Meta(description="Media kinds that a result may hold.")] = ()
    error_flag: Annotated[bool, Meta(description="There is a field that marks an error.")] = False
    error_media: Annotated[bool, Meta(description="An error result may hold media.")] = False
    empty: Annotated[bool, Meta(description="A result without content is accepted.")] = False
    empty_error: Annotated[bool, Meta(description="An error result without content is accepted.")] = False
    user_after: Annotated[bool, Meta(description="A user turn may follow results directly.")] = True
    max_length: Annotated[int | None, Meta(description="Maximum length of the text of a result, in characters.")] = None


class TurnRules(Group, frozen=True, kw_only=True):
    """Order and content of turns."""

    first: Annotated[Literal["any", "user"], Meta(description="Who speaks first, apart from the system prompt.")] = (
        "user"
    )
    last: Annotated[Literal["any", "user_or_result"], Meta(description="What a request may end with.")] = (
        "user_or_result"
    )
    prefill: Annotated[
        Literal["no", "yes", "flag"],
        Meta(description="The last turn may be the start of the answer; `flag`: when marked as such."),
    ] = "no"
    prefill_flags: Annotated[Names, Meta(description="Fields that mark a message as the start of the answer.")] = (
        "prefix",
        "partial",
    )
    pauses: Annotated[
        bool, Meta(description="The last turn may be one that the model paused while the provider runs a tool.")
    ] = False
    alternate: Annotated[bool, Meta(description="User and assistant must alternate.")] = True
    min_user: Annotated[int, Meta(ge=0, description="Minimum number of user turns.")] = 1
    required: Annotated[bool, Meta(description="A request has at least one turn.")] = True
    max_count: Annotated[int | None, Meta(description="Maximum number of turns in a request.")] = None
    system: Annotated[Literal["field", "message"], Meta(description="Where the system prompt goes.")] = "message"
    system_inside: Annotated[
        Literal["anywhere", "before_assistant", "first_only", "no"],
        Meta(description="Where a system message is accepted among the turns."),
    ] = "first_only"
    system_many: Annotated[bool, Meta(description="Several system messages are accepted.")] = False
    developer_role: Annotated[bool, Meta(description="There is a developer role.")] = False
    function_role: Annotated[
        bool, Meta(description="The function calls and function messages of the first Chat API are accepted.")
    ] = False
    name_field: Annotated[bool, Meta(description="A message may carry a `name`.")] = False
    empty_text: Annotated[bool, Meta(description="Empty text is accepted.")] = False
    blank_text: Annotated[bool, Meta(description="Text of white space only is accepted.")] = False
    empty_turn: Annotated[bool, Meta(description="A turn without content is accepted.")] = False
    empty_prefill: Annotated[bool, Meta(description="The start of the answer may be a turn without content.")] = False
    trailing_space: Annotated[bool, Meta(description="A final assistant text may end in white space.")] = False
    media: Annotated[Names, Meta(description="Media kinds that a user turn may hold.")] = ("image",)
    media_sources: Annotated[
        tuple[Literal["data", "url", "store"], ...],
        Meta(
            description="How a medium may be sent: within the request, by URL, or only by a URL in the "
            "provider's own store."
        ),
    ] = ("data",)
    media_stores: Annotated[Names, Meta(description="Schemes of URLs in the provider's own store.")] = ()
    media_base64: Annotated[
        bool, Meta(description="Data that is not base64 is refused before anything else is checked.")
    ] = False
    media_by_type: Annotated[bool, Meta(description="The kind of a medium follows from its MIME type alone.")] = False
    untyped_media: Annotated[Names, Meta(description="Media kinds that may be sent without a MIME type.")] = ()
    assistant_media: Annotated[Names, Meta(description="Media kinds in assistant turns.")] = ()
    max_image: Annotated[
        int | None, Meta(description="Characters that the base64 of an image may have; null: not known.")
    ] = None
    refusals: Annotated[bool, Meta(description="A reply may have a refusal next to its content.")] = True
    document_part: Annotated[
        Literal["file", "document_url"] | None,
        Meta(description="The type of the part that holds a document; null: `file`, and others may be accepted."),
    ] = None
    document_name: Annotated[
        str | None,
        Meta(
            description="Pattern that the whole name of a document must match; no two documents of a request share a "
            "name. null: documents need no such names."
        ),
    ] = None


class ReasoningRules(Group, frozen=True, kw_only=True):
    """Thinking, and what must come back of it."""

    carrier: Annotated[
        Literal[
            "none",
            "thinking_blocks",
            "reasoning_items",
            "reasoning_content",
            "reasoning",
            "reasoning_details",
            "reasoning_blocks",
            "thinking_chunks",
            "thinking",
            "thought_parts",
            "think_tags",
        ],
        Meta(description="Where the target keeps thinking in a history."),
    ] = "none"
    summaries: Annotated[bool, Meta(description="A summary of thinking can be requested.")] = False
    foreign: Annotated[
        Literal["refused", "text"],
        Meta(description="Thinking of another issuer: refused, or accepted as plain text."),
    ] = "refused"
    modes: Annotated[
        tuple[Literal["off", "on", "adaptive", "between_tools"], ...],
        Meta(description="Thinking modes that a request may set; empty: there is no such setting."),
    ] = ()
    switch: Annotated[
        Literal["none", "thinking", "enable_thinking", "reasoning"],
        Meta(description="The field of a Chat Completions request that sets the mode; none: there is no such field."),
    ] = "none"
    default: Annotated[Literal["off", "on", "adaptive"], Meta(description="The mode of a request that sets none.")] = (
        "off"
    )
    signed: Annotated[bool, Meta(description="Thinking is only accepted with its signature.")] = False
    leading: Annotated[
        tuple[Literal["on", "adaptive", "between_tools"], ...],
        Meta(description="Modes in which an open tool loop must start with its thinking."),
    ] = ()
    placeholder: Annotated[
        str | None, Meta(description="What to write for lost thinking, if something is required.")
    ] = None
    placeholder_on: Annotated[
        Literal["none", "calls", "first_call", "assistant"],
        Meta(description="Which turns or calls need the placeholder."),
    ] = "none"
    bound_to: Annotated[
        tuple[Literal["provider", "endpoint", "account", "model", "prefix"], ...],
        Meta(description="What a signature is bound to: elsewhere it is refused."),
    ] = ("provider", "endpoint", "account", "model")
    foreign_marks: Annotated[
        Names, Meta(description="Prefixes of signatures that plainly come from another issuer.")
    ] = ()
    signature_fields: Annotated[
        Names,
        Meta(
            description="Fields of turns and calls in which other hosts send their own signatures, which mean nothing "
            "here."
        ),
    ] = ()
    grouped: Annotated[
        bool, Meta(description="A thinking item and the item after it are kept or dropped together.")
    ] = False
    before_calls: Annotated[bool, Meta(description="Thinking comes before the calls of its turn.")] = True
    may_end_turn: Annotated[bool, Meta(description="A turn may end on thinking.")] = False
    efforts: Annotated[Names, Meta(description="Accepted values of the effort setting.")] = ()
    budget: Annotated[bool, Meta(description="A token budget for thinking is accepted.")] = False
    budget_required: Annotated[bool, Meta(description="Thinking that is switched on needs its budget.")] = False
    min_budget: Annotated[int, Meta(description="The smallest accepted budget of thinking that is on.")] = 1
    budget_below_limit: Annotated[
        bool, Meta(description="A budget for thinking must be smaller than the limit of the answer.")
    ] = True
    narrows_sampling: Annotated[
        bool, Meta(description="While it thinks, temperature is 1, top_p is from 0.95 to 1, and top_k is refused.")
    ] = False
    refused_sampling: Annotated[
        Names,
        Meta(
            description="Sampling settings that are refused while it thinks; a temperature or top_p of 1 and a penalty "
            "of 0 are accepted, since they are the defaults."
        ),
    ] = ()
    one_setting: Annotated[bool, Meta(description="Effort and thinking mode may not both be set.")] = False


class SchemaRules(Group, frozen=True, kw_only=True):
    """JSON Schema of tool parameters."""

    field: Annotated[str, Meta(description="The field that holds a tool's schema.")] = "parameters"
    free_field: Annotated[
        str,
        Meta(
            description="Another field for it, which accepts any JSON Schema and is exempt from the rest of this group."
        ),
    ] = ""
    keywords: Annotated[
        Names | None, Meta(description="The only keywords accepted; null: any that is not refused below.")
    ] = None
    refused: Annotated[Names, Meta(description="Keywords that are refused.")] = (
        "$schema",
        "$id",
        "$ref",
        "$defs",
        "definitions",
        "oneOf",
        "allOf",
        "not",
        "if",
        "then",
        "else",
        "patternProperties",
        "propertyNames",
        "dependentSchemas",
        "unevaluatedProperties",
    )
    well_formed: Annotated[
        bool,
        Meta(description="A schema with an unknown type, or with values that its keywords do not have, is refused."),
    ] = True
    root_union: Annotated[bool, Meta(description="The root may be a union.")] = False
    refs: Annotated[bool, Meta(description="Local references are understood.")] = False
    type_lists: Annotated[bool, Meta(description="`type` may be a list.")] = False
    union_with_type: Annotated[bool, Meta(description="`type` is accepted next to `anyOf`.")] = False
    union_alone: Annotated[bool, Meta(description="Nothing is accepted next to `anyOf`.")] = False
    type_required: Annotated[bool, Meta(description="A schema that is not a union must have a `type`.")] = False
    nullable: Annotated[bool, Meta(description="`nullable: true` is the way to allow null.")] = False
    tuple_items: Annotated[Literal["items", "prefixItems", "no"], Meta(description="How a tuple is written.")] = "no"
    enum_types: Annotated[Literal["any", "string"], Meta(description="Types that an enum may have.")] = "any"
    formats: Annotated[Names | None, Meta(description="Accepted values of `format`; null: any.")] = ()
    properties_required: Annotated[bool, Meta(description="An object must list `properties`.")] = True
    properties_non_empty: Annotated[bool, Meta(description="An object must have at least one property.")] = False
    items_required: Annotated[bool, Meta(description="An array must have `items`.")] = True
    required_defined: Annotated[bool, Meta(description="A required name must be one of the properties.")] = False
    property_pattern: Annotated[
        str | None, Meta(description="Pattern that the whole name of a property must match; null: any name.")
    ] = None
    max_depth: Annotated[int | None, Meta(description="Deepest nesting.")] = None
    strict_formats: Annotated[Names, Meta(description="Formats accepted in strict mode.")] = ()
    strict_refused: Annotated[Names, Meta(description="Keywords refused in strict mode.")] = (
        "default",
        "oneOf",
        "allOf",
        "not",
        "if",
        "then",
        "else",
        "dependentRequired",
        "dependentSchemas",
        "patternProperties",
        "propertyNames",
        "contains",
        "uniqueItems",
        "minProperties",
        "maxProperties",
    )
    strict_all_required: Annotated[bool, Meta(description="In strict mode every property must be required.")] = True
    strict_max_depth: Annotated[int | None, Meta(description="Maximum nesting depth of a strict schema.")] = 10
    strict_max_properties: Annotated[
        int | None, Meta(description="Maximum number of properties of a strict schema.")
    ] = 5000
    strict_max_tools: Annotated[int | None, Meta(description="Maximum number of strict tools in a request.")] = None
    strict_max_optional: Annotated[
        int | None, Meta(description="Maximum number of optional properties of all strict schemas of a request.")
    ] = None
    strict_max_unions: Annotated[
        int | None,
        Meta(description="Maximum number of properties with a union (`anyOf`, type list) of all strict schemas."),
    ] = None
    strict_schema_optional: Annotated[
        int | None, Meta(description="Maximum number of optional properties of one strict schema.")
    ] = None
    strict_schema_unions: Annotated[
        int | None, Meta(description="Maximum number of properties with a union of one strict schema.")
    ] = None
    strict_recursion: Annotated[bool, Meta(description="A strict schema may refer to itself.")] = True
    strict_booleans: Annotated[
        bool, Meta(description="A property of a strict schema may be `true` or `false` instead of a schema.")
    ] = True


class RequestRules(Group, frozen=True, kw_only=True):
    """The rest of a request."""

    target: Annotated[str, Meta(description="The target that serves the model instead; empty: this one.")] = ""
    max_tokens_field: Annotated[str, Meta(description="The field that limits the answer.")] = "max_tokens"
    old_max_tokens_field: Annotated[
        str, Meta(description="An older name of that field, which models without hidden thinking accept too.")
    ] = "max_tokens"
    max_tokens_required: Annotated[bool, Meta(description="That field must be present.")] = False
    min_max_tokens: Annotated[int, Meta(ge=1, description="Its smallest accepted value.")] = 1
    sampling: Annotated[Names, Meta(description="Sampling settings that are accepted.")] = (
        "temperature",
        "top_p",
        "stop",
    )
    temperature_max: Annotated[
        float | None, Meta(description="The highest temperature that is accepted; null: no known limit.")
    ] = None
    temperature_min: Annotated[
        float | None, Meta(description="The lowest temperature that is accepted; null: no known limit.")
    ] = None
    temperature_or_top_p: Annotated[bool, Meta(description="Temperature and top_p may not both be set.")] = False
    max_stop: Annotated[int | None, Meta(description="Maximum number of stop sequences; null: no known limit.")] = None
    blank_stop: Annotated[bool, Meta(description="A stop sequence may be only white space.")] = True
    output: Annotated[
        tuple[Literal["json", "json_schema"], ...], Meta(description="Structured output that is accepted.")
    ] = ()
    output_with_tools: Annotated[bool, Meta(description="Structured output and tools may be used together.")] = False
    output_description: Annotated[bool, Meta(description="The schema of structured output may have a description.")] = (
        False
    )
    output_closed: Annotated[
        Literal["no", "strict", "always"],
        Meta(
            description="When every object of the schema of the output must be closed, and complete where those of "
            "strict tools are: never, with `strict`, or always."
        ),
    ] = "no"
    unknown_fields: Annotated[Literal["ignored", "refused"], Meta(description="What happens to an unknown field.")] = (
        "refused"
    )
    refused_fields: Annotated[
        Names, Meta(description="Fields of a request that are refused although the protocol has them.")
    ] = ()
    fields: Annotated[
        Names | None,
        Meta(description="All fields that a request may have; null: those that any host is known to have."),
    ] = None
    message_fields: Annotated[
        Names | None,
        Meta(description="All fields that a message may have; null: those that any host is known to have."),
    ] = None
    common_fields: Annotated[
        Names,
        Meta(description="Fields that mean what they mean at other hosts of the protocol, besides its settings."),
    ] = ("stream_options", "n", "logprobs", "top_logprobs", "logit_bias")
    seed_field: Annotated[str, Meta(description="The field with the seed of sampling.")] = "seed"
    user: Annotated[bool, Meta(description="A field names the end user.")] = False
    cache_markers: Annotated[bool, Meta(description="Cache markers on blocks are accepted.")] = False
    foreign_models: Annotated[
        Names,
        Meta(
            description="Names of models, as patterns with `*`, that plainly belong to another provider. They are not "
            "taken over by a profile that extends this one: it is another host."
        ),
    ] = ()
    path: Annotated[str, Meta(description="Path under the base address; empty: that of the protocol.")] = ""
    stream_path: Annotated[str, Meta(description="The same for streams.")] = ""
    hosted_version: Annotated[
        str,
        Meta(
            description="The version that a cloud which hosts the protocol wants in the body (`anthropic_version`). "
            "The model is then in the path, and may not be in the body. Empty: no such cloud."
        ),
    ] = ""
    count_tokens: Annotated[str, Meta(description="Path that counts tokens; empty: none.")] = ""
    context_management: Annotated[
        tuple[Literal["compaction", "clear_results", "clear_thinking"], ...],
        Meta(
            description="What the provider does itself to a conversation that grows too long, if a request of its "
            "protocol says so: `compaction` (it makes summaries, and reads its own), `clear_results`, `clear_thinking`."
        ),
    ] = ()


class CacheRules(Group, frozen=True, kw_only=True):
    """Prompt caches. `request.cache_markers` says whether markers are accepted."""

    style: Annotated[
        Literal["markers", "automatic", "none"],
        Meta(
            description="How a prompt gets into the cache: a request marks how far, the provider decides by itself, or "
            "no cache is known."
        ),
    ] = "none"
    placing: Annotated[
        bool,
        Meta(
            description="Markers are placed for clients whose protocol has none: a marker further on reads what an "
            "earlier one wrote, and writes only the rest."
        ),
    ] = False
    max_markers: Annotated[int, Meta(ge=0, description="Maximum number of markers in a request.")] = 0
    positions: Annotated[
        tuple[Literal["tools", "system", "messages", "results"], ...],
        Meta(
            description="Where a marker may be: at a tool, in the system prompt, at content of a message, at a tool "
            "result."
        ),
    ] = ()
    min_tokens: Annotated[int, Meta(ge=0, description="The shortest prompt that is cached, in tokens.")] = 0
    step_tokens: Annotated[
        int, Meta(ge=0, description="Automatic caches grow in steps of this many tokens; 0: not known.")
    ] = 0
    ttls: Annotated[Names, Meta(description="How long a marker may ask for, shortest first; none: it cannot ask.")] = ()
    default_ttl_seconds: Annotated[
        int | None, Meta(description="How long a prompt stays in the cache without use; null: not known.")
    ] = None
    lookback: Annotated[
        int | None,
        Meta(
            description="How many blocks before a marker an earlier entry of the cache is looked for; null: without "
            "limit."
        ),
    ] = None
    read_price: Annotated[
        float | None,
        Meta(
            description="What a token costs that was read from the cache, as a share of other input; null: not known, "
            "and as other input. For models whose price is not listed.",
        ),
    ] = None
    write_price: Annotated[
        float | None,
        Meta(description="The same for a token that was written to the cache; null: not known."),
    ] = None
    write_price_1h: Annotated[
        float | None,
        Meta(description="The same for one that was written for an hour; null: as `cache.write_price`."),
    ] = None
    key_field: Annotated[
        str, Meta(description="The field of a request that keeps a conversation where its cache is; empty: none.")
    ] = ""
    key_length: Annotated[
        int | None, Meta(description="Maximum length of such a key, in characters; null: no known limit.")
    ] = None
    affinity_header: Annotated[
        str, Meta(description="The header that keeps a conversation where its cache is; empty: none.")
    ] = ""


class StreamRules(Group, frozen=True, kw_only=True):
    """What its streams look like."""

    framing: Annotated[Literal["sse", "ndjson", "aws"], Meta(description="How events are framed.")] = "sse"
    calls: Annotated[Literal["pieces", "whole"], Meta(description="Calls come in pieces or at once.")] = "pieces"
    index: Annotated[
        Literal["reliable", "zero", "missing", "unreliable"],
        Meta(description="Whether a call's index can be trusted."),
    ] = "unreliable"
    ends_with: Annotated[str, Meta(description="The event that ends a stream.")] = "[DONE]"
    finish_reason: Annotated[bool, Meta(description="Whether the finish reason is reliable about tool calls.")] = False
    last_items: Annotated[bool, Meta(description="The last event holds all items that were streamed.")] = True
    forced_stop: Annotated[bool, Meta(description="A reply whose call was forced may end with `stop`.")] = False
    usage: Annotated[Literal["asked", "always", "never"], Meta(description="When token counts are sent.")] = "asked"
    thinking: Annotated[
        Literal["field", "parts"],
        Meta(description="Where a Chat Completions stream has thinking: in a field of its own, or in the content."),
    ] = "field"


class EmbeddingRules(Group, frozen=True, kw_only=True):
    """Embeddings."""

    settings: Annotated[
        tuple[Literal["dimensions", "title", "truncation", "tokens"], ...],
        Meta(description="Settings of a request that are accepted; `tokens`: an input may be a list of token ids."),
    ] = ("dimensions",)
    tasks: Annotated[Names, Meta(description="What a request can say that the vectors are for; none: nothing.")] = ()
    task_required: Annotated[bool, Meta(description="A request must say what the vectors are for.")] = False
    max_inputs: Annotated[int | None, Meta(description="Maximum number of inputs in a request.")] = None
    dimensions_field: Annotated[str, Meta(description="The field that sets the length of a vector.")] = "dimensions"
    form: Annotated[str, Meta(description="The form of the body, if it differs between models of a provider.")] = ""
    path: Annotated[str, Meta(description="Path of the endpoint, if it is not that of the protocol.")] = ""


class ContextRules(Group, frozen=True, kw_only=True):
    """What a model can take and do. The values of the known models are in `models.toml`."""

    window: Annotated[
        int | None, Meta(description="Tokens that a request may hold, its tools included; null: not known.")
    ] = None
    max_window: Annotated[
        int | None,
        Meta(
            description="The same for a request that asks for more, or where sources differ; null: that of `window`. A "
            "request that cannot fit into it is refused before it is sent."
        ),
    ] = None
    output: Annotated[
        int | None, Meta(description="Tokens that a reply may have, thinking included; null: not known.")
    ] = None
    media: Annotated[
        Names | None, Meta(description="Media kinds that the model reads besides text; null: not known.")
    ] = None
    thinking: Annotated[bool | None, Meta(description="Whether the model can think; null: not known.")] = None
    tools: Annotated[bool | None, Meta(description="Whether the model calls tools; null: not known.")] = None


class Rules(Group, frozen=True, kw_only=True):
    """All rules of a profile."""

    ids: IdRules = IdRules()
    names: NameRules = NameRules()
    tools: ToolRules = ToolRules()
    choice: ChoiceRules = ChoiceRules()
    calls: CallRules = CallRules()
    results: ResultRules = ResultRules()
    turns: TurnRules = TurnRules()
    reasoning: ReasoningRules = ReasoningRules()
    schema: SchemaRules = SchemaRules()
    request: RequestRules = RequestRules()
    cache: CacheRules = CacheRules()
    stream: StreamRules = StreamRules()
    embeddings: EmbeddingRules = EmbeddingRules()
    context: ContextRules = ContextRules()
