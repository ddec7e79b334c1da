"""What a Converse request asks for in fields that are the model's own: thinking, `top_k`, the form of the answer.

`additionalModelRequestFields` is whatever the model takes; of that, what Claude takes is known: `thinking`,
`output_config.effort`, `top_k`. `outputConfig` holds the schema of the answer as text, and an effort too.

Law: these objects are carried as they came while they match the canonical options. Unknown fields are always carried,
and no value is refused: the model decides about them.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from toolglot.conversation import Options, OutputFormat, Reasoning, ReasoningMode
from toolglot.jsontext import compact
from toolglot.protocols.fields.argument_text import read_object
from toolglot.protocols.fields.reading import Fields

PROTOCOL: Final = "bedrock"
FIELDS: Final = "additionalModelRequestFields"
CONFIG: Final = "outputConfig"

_MODES: Final[dict[str, ReasoningMode]] = {
    "enabled": "on",
    "disabled": "off",
    "adaptive": "adaptive",
    "between_tools": "between_tools",
}
_MODES_BACK: Final = {mode: written for written, mode in _MODES.items()}


class RequestOptions(NamedTuple):
    """What the two objects say."""

    mode: ReasoningMode | None = None
    budget: int | None = None
    effort: str | None = None
    top_k: int | None = None
    output: OutputFormat | None = None

    @property
    def reasoning(self) -> Reasoning | None:
        found = Reasoning(self.mode, self.effort, self.budget)
        return None if found == Reasoning() else found


# --- reading ----------------------------------------------------------------------------------------


def read(body: Fields) -> RequestOptions:
    """What a request, or what was kept of one, asks for."""
    fields, config = _object(body.get(FIELDS)), _object(body.get(CONFIG))
    thinking = _object(fields.get("thinking"))
    kind = thinking.get("type")
    mode = _MODES.get(kind) if type(kind) is str else None
    efforts = (config.get("effort"), _object(fields.get("output_config")).get("effort"))
    return RequestOptions(
        mode,
        _whole(thinking.get("budget_tokens")) if mode is not None else None,
        next((effort for effort in efforts if type(effort) is str), None),
        _whole(fields.get("top_k")),
        _read_output(config),
    )


def _object(value: Any) -> Fields:
    return value if type(value) is dict else {}


def _whole(value: Any) -> int | None:
    return value if type(value) is int else None


def _read_output(config: Fields) -> OutputFormat | None:
    format = _object(config.get("textFormat"))
    definition = _object(_object(format.get("structure")).get("jsonSchema"))
    written, name = definition.get("schema"), definition.get("name")
    if format.get("type") != "json_schema" or type(written) is not str:
        return None
    schema, _ = read_object(written)
    if schema is None:
        return None
    description: Any = definition.get("description")
    return OutputFormat(
        "json_schema",
        name if type(name) is str else None,
        schema,
        description=description if type(description) is str else None,
    )


def unread_fields(body: Fields) -> Fields:
    """The fields of the two objects that have no canonical form, for the report."""
    fields, config, wanted = _object(body.get(FIELDS)), _object(body.get(CONFIG)), read(body)
    return {key: rest for key, rest in _without_read(fields, config, wanted).items() if rest}


def _without_read(fields: Fields, config: Fields, wanted: RequestOptions) -> dict[str, Fields]:
    """Both objects without the fields that were read."""
    rest = {key: value for key, value in fields.items() if not (key == "top_k" and wanted.top_k is not None)}
    if wanted.mode is not None:
        del rest["thinking"]
    effort = _object(rest.get("output_config"))
    if type(effort.get("effort")) is str:
        rest["output_config"] = {key: value for key, value in effort.items() if key != "effort"}
        if not rest["output_config"]:
            del rest["output_config"]
    kept = {key: value for key, value in config.items() if not (key == "effort" and type(value) is str)}
    if wanted.output is not None:
        del kept["textFormat"]
    return {FIELDS: rest, CONFIG: kept}


# --- writing ----------------------------------------------------------------------------------------


def write(options: Options, kept: Fields | None) -> Fields:
    """The two objects, if they have content. `kept` is how they came."""
    original = kept or {}
    before, wanted = read(original), _wanted(options)
    if _meaning(wanted) == _meaning(before):
        return original
    rests = _without_read(_object(original.get(FIELDS)), _object(original.get(CONFIG)), before)
    fields, config = rests[FIELDS], rests[CONFIG]
    if wanted.mode is not None or wanted.budget is not None:
        thinking: Fields = {"type": _MODES_BACK[wanted.mode or "on"]}
        if wanted.budget is not None:
            thinking["budget_tokens"] = wanted.budget
        fields["thinking"] = thinking
    if wanted.effort is not None:
        fields["output_config"] = {**_object(fields.get("output_config")), "effort": wanted.effort}
    if wanted.top_k is not None:
        fields["top_k"] = wanted.top_k
    if wanted.output is not None:
        config["textFormat"] = _write_output(wanted.output)
    return {key: value for key, value in rests.items() if value}


def _wanted(options: Options) -> RequestOptions:
    reasoning, output = options.reasoning or Reasoning(), options.output
    return RequestOptions(
        reasoning.mode,
        reasoning.budget_tokens,
        reasoning.effort,
        options.sampling.top_k,
        output if output is not None and output.schema is not None else None,
    )


def _meaning(wanted: RequestOptions) -> tuple[Any, ...]:
    """What is compared. The schema counts by its text, since 1 and 1.0 differ there."""
    output = wanted.output
    return (*wanted[:4], None if output is None else (output.name, compact(output.schema)))


def _write_output(output: OutputFormat) -> Fields:
    definition: Fields = {"schema": compact(output.schema)}
    if output.name is not None:
        definition["name"] = output.name
    if output.description is not None:
        definition["description"] = output.description
    return {"type": "json_schema", "structure": {"jsonSchema": definition}}
