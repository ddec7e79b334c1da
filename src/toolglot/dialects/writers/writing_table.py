"""The table of written forms: one for the name of each dialect."""

from __future__ import annotations

from typing import Final

from toolglot.dialects.writers.writing_forms import (
    WriteCall,
    Writing,
    as_body,
    as_command,
    as_gemma,
    as_object,
    as_python,
    as_tags,
    as_text,
    in_cdata,
)
from toolglot.jsontext import compact

_FENCE: Final = "```"


def _one(form: WriteCall, *others: WriteCall) -> Writing:
    return Writing((form, *others))


def _list(begin: str, end: str = "", form: WriteCall | None = None) -> Writing:
    return Writing((form or as_object(),), begin=f"{begin}[", between=", ", end=f"]{end}")


def _tags(begin: str, parameter: str, end: str, section: tuple[str, str] = ("", ""), between: str = "") -> Writing:
    """Values stand alone, or on lines of their own where that is needed to keep the white space around them."""
    on_lines = parameter.replace("VALUE", "\nVALUE\n")
    return Writing(
        (as_tags(begin, parameter, end), as_tags(begin, on_lines, end)),
        begin=section[0],
        between=between,
        end=section[1],
    )


def _invokes(space: str, opened: str, closed: str) -> Writing:
    return _tags(
        f'<{space}invoke name="NAME">',
        f'<{space}parameter name="KEY">VALUE</{space}parameter>',
        f"</{space}invoke>",
        (opened, closed),
    )


def _dsml(section: str) -> Writing:
    mark = "｜DSML｜"  # noqa: RUF001 - the bars that are meant
    return _tags(
        f'<{mark}invoke name="NAME">',
        f'<{mark}parameter name="KEY" string="STRING">VALUE</{mark}parameter>',
        f"</{mark}invoke>",
        (f"<{mark}{section}>", f"</{mark}{section}>"),
    )


def _deepseek(call: str) -> Writing:
    return Writing(
        (as_text(f"<｜tool▁call▁begin｜>{call}<｜tool▁call▁end｜>"),),  # noqa: RUF001
        begin="<｜tool▁calls▁begin｜>",  # noqa: RUF001
        between="",
        end="<｜tool▁calls▁end｜>",  # noqa: RUF001
    )


_QWEN: Final = ("<function=NAME>\n", "<parameter=KEY>\nVALUE\n</parameter>\n", "</function>")
_PAIRS: Final = ("<arg_key>KEY</arg_key>", "<arg_value>VALUE</arg_value>")
_GLM: Final = _tags("<tool_call>NAME\n", "\n".join(_PAIRS) + "\n", "</tool_call>", between="\n")
_HERMES: Final = _one(as_object("<tool_call>\n", "\n</tool_call>"))
_TOOL_CALLS: Final = _list("<tool_calls>", "</tool_calls>")
_COHERE: Final = as_object(name="tool_name", arguments="parameters", id="tool_call_id")
_PYTHON_LIST: Final = Writing((as_python,), begin="[", between=", ", end="]")

WRITINGS: Final[dict[str, Writing]] = {
    # one JSON object for each call
    "hermes": _HERMES,
    "granite4": _HERMES,
    "ernie45": _HERMES,
    "longcat": _one(as_object("<longcat_tool_call>\n", "\n</longcat_tool_call>")),
    "granite20b_fc": _one(as_object("<function_call> ")),
    "internlm2": _one(as_object("<|action_start|><|plugin|>\n", "<|action_end|>", arguments="parameters")),
    "gigachat3": _one(as_object("<|message_sep|>\n\nfunction call<|role_sep|>\n")),
    "inkling": _one(as_object("<|content_invoke_tool_json|>", "<|end_message|>", arguments="args")),
    "tool_xml": _one(as_object("<tool>", "</tool>")),
    "llama3_json": Writing((as_object(arguments="parameters"),), between="; "),
    "fenced_json": _one(as_object(f"{_FENCE}json\n", f"\n{_FENCE}")),
    "openai_json": Writing(
        (
            as_body(
                lambda name, given, id: {
                    "id": id,
                    "type": "function",
                    "function": {"name": name, "arguments": compact(given)},
                }
            ),
        ),
        begin='{"tool_calls": [',
        between=", ",
        end="]}",
        ids="own",
    ),
    "anthropic_json": Writing(
        (as_body(lambda name, given, id: {"type": "tool_use", "id": id, "name": name, "input": given}),), ids="own"
    ),
    "gemini_json": _one(as_body(lambda name, given, _: {"functionCall": {"name": name, "args": given}})),
    "generic_content": _one(as_body(lambda name, given, _: {"tool_call": {"name": name, "arguments": given}})),
    # a list of JSON objects
    "mistral": _list("[TOOL_CALLS] ", form=as_object(id="id"))._replace(ids="nine"),
    "granite": _list("<|tool_call|>"),
    "phi4_mini": _list("functools"),
    "firefunction_v2": _list("functools"),
    "cohere_command3": _list("<|START_ACTION|>", "<|END_ACTION|>", _COHERE)._replace(ids="count"),
    "cohere_command4": _list("<|START_ACTION|>", "<|END_ACTION|>", _COHERE)._replace(ids="count"),
    "cohere_command_r_plus": _list(
        f"Action:\n{_FENCE}json\n", f"\n{_FENCE}", as_object(name="tool_name", arguments="parameters")
    ),
    "jamba": _TOOL_CALLS,
    "hunyuan_a13b": _TOOL_CALLS,
    "apriel": _TOOL_CALLS,
    "nemotron_toolcall": _list("<TOOLCALL>", "</TOOLCALL>"),
    "xlam": _list(""),
    "apertus": _list("<|tools_prefix|>", "<|tools_suffix|>", as_body(lambda name, given, _: {name: given})),
    # a name and JSON
    "kimi_k2": Writing(
        (as_text("<|tool_call_begin|>ID<|tool_call_argument_begin|>JSON<|tool_call_end|>"),),
        begin="<|tool_calls_section_begin|>",
        between="",
        end="<|tool_calls_section_end|>",
        ids="kimi",
    ),
    "deepseek_v3": _deepseek(f"function<｜tool▁sep｜>NAME\n{_FENCE}json\nJSON\n{_FENCE}"),  # noqa: RUF001
    "deepseek_v31": _deepseek("NAME<｜tool▁sep｜>JSON"),  # noqa: RUF001
    "mistral_v11": Writing((as_text("[TOOL_CALLS]NAME[ARGS]JSON"),), between=""),
    "functionary_v31": _one(as_text("<function=NAME>JSON</function>")),
    "functionary_v32": _one(as_text(">>>NAME\nJSON")),
    "harmony": Writing(
        (
            as_text(
                "<|start|>assistant<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>JSON<|call|>"
            ),
        ),
        between="",
    ),
    "react": Writing((as_text("Action: NAME\nAction Input: JSON"),), result=("Observation: ", "")),
    "xai_tool_call": _one(as_text("<tool_call><name>NAME</name><arguments>JSON</arguments></tool_call>")),
    # tags
    "qwen3_coder": _one(as_tags("<tool_call>\n" + _QWEN[0], _QWEN[1], _QWEN[2] + "\n</tool_call>")),
    "step3p5": _one(as_tags("<tool_call>\n" + _QWEN[0], _QWEN[1], _QWEN[2] + "\n</tool_call>")),
    "seed_oss": _one(as_tags("<seed:tool_call>\n" + _QWEN[0], _QWEN[1], _QWEN[2] + "\n</seed:tool_call>")),
    "glm45": _GLM,
    "glm47": _tags("<tool_call>NAME", "".join(_PAIRS), "</tool_call>"),
    "ling3": _GLM,
    "poolside_v1": _GLM,
    "hy_v3": _tags("<tool_call>NAME<tool_sep>", "".join(_PAIRS), "</tool_call>", ("<tool_calls>", "</tool_calls>")),
    "minimax_m2": _invokes("", "<minimax:tool_call>\n", "\n</minimax:tool_call>"),
    "dots": _invokes("", "<dots_function_call>", "</dots_function_call>"),
    "anthropic_legacy": _invokes("", "<function_calls>\n", "\n</function_calls>"),
    "muse_glimmer": _invokes("atem:", "<atem:function_calls>", "</atem:function_calls>"),
    "step3": _tags(
        '<｜tool_call_begin｜><steptml:invoke name="NAME">',  # noqa: RUF001
        '<steptml:parameter name="KEY">VALUE</steptml:parameter>',
        "</steptml:invoke><｜tool_call_end｜>",  # noqa: RUF001
        ("<｜tool_calls_begin｜>", "<｜tool_calls_end｜>"),  # noqa: RUF001
    ),
    "deepseek_v32": _dsml("function_calls"),
    "deepseek_v4": _dsml("tool_calls"),
    "kimi_k3": _tags(
        '<|open|>call tool="NAME" index="ID"<|sep|>',
        '<|open|>argument key="KEY" type="TYPE"<|sep|>VALUE<|close|>argument<|sep|>',
        "<|close|>call<|sep|>",
        ("<|open|>tools<|sep|>", "<|close|>tools<|sep|>"),
    )._replace(ids="place"),
    "minimax_m3": _tags(
        ']<]minimax[>[<invoke name="NAME">',
        "]<]minimax[>[<KEY>VALUE]<]minimax[>[</KEY>",
        "]<]minimax[>[</invoke>",
        ("]<]minimax[>[<tool_call>", "]<]minimax[>[</tool_call>"),
    ),
    "minicpm5": _one(
        as_tags('<function name="NAME">', '<param name="KEY">VALUE</param>', "</function>"),
        as_tags('<function name="NAME">', '<param name="KEY">VALUE</param>', "</function>", value=in_cdata),
    ),
    "xai": _tags(
        '<xai:function_call name="NAME">',
        '<parameter name="KEY">VALUE</parameter>',
        "</xai:function_call>",
        between="\n",
    ),
    "bash_tag": Writing((as_command,), sample=("bash", {"command": "ls -la"})),
    # Python
    "pythonic": _PYTHON_LIST,
    "llama4_pythonic": _PYTHON_LIST._replace(begin="<|python_start|>[", end="]<|python_end|>"),
    "lfm2": _PYTHON_LIST._replace(begin="<|tool_call_start|>[", end="]<|tool_call_end|>"),
    "olmo3": Writing((as_python,), begin="<function_calls>", end="</function_calls>"),
    # Gemma
    "gemma4": Writing(
        (as_gemma("<|tool_call>", '<|"|>', "<tool_call|>"),),
        between="",
        result=("<|tool_response>", "<tool_response|>"),
    ),
    "functiongemma": Writing(
        (as_gemma("<start_function_call>", "<escape>", "<end_function_call>"),),
        between="",
        result=("<start_function_response>", "<end_function_response>"),
    ),
}
