"""One row of each form, written by hand from its documented shape. All say the same: a user asks what is here, the
model calls `ls` twice, gets two results, and answers."""

from __future__ import annotations

import json
from typing import Any, Final

Row = dict[str, Any]

SCHEMA: Final = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
FUNCTION: Final = {"name": "ls", "description": "Lists.", "parameters": SCHEMA}
TOOL: Final = {"type": "function", "function": FUNCTION}
HERE: Final = {"path": "."}
ABOVE: Final = {"path": ".."}


def call(id: str, arguments: Any) -> Row:
    return {"id": id, "type": "function", "function": {"name": "ls", "arguments": arguments}}


OPENAI: Final[Row] = {
    "messages": [
        {"role": "user", "content": "What is here?"},
        {"role": "assistant", "tool_calls": [call("call_a", '{"path":"."}'), call("call_b", '{"path":".."}')]},
        {"role": "tool", "tool_call_id": "call_a", "content": "a.txt"},
        {"role": "tool", "tool_call_id": "call_b", "content": "b.txt"},
        {"role": "assistant", "content": "There is a.txt.", "weight": 1},
    ],
    "tools": [TOOL],
    "parallel_tool_calls": True,
}
MESSAGES: Final[Row] = {
    "messages": [
        {"role": "user", "content": "What is here?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"type": "function", "function": {"name": "ls", "arguments": HERE}},
                {"type": "function", "function": {"name": "ls", "arguments": ABOVE}},
            ],
        },
        {"role": "tool", "name": "ls", "content": "a.txt"},
        {"role": "tool", "name": "ls", "content": "b.txt"},
        {"role": "assistant", "content": "There is a.txt."},
    ],
    "tools": json.dumps([TOOL]),
}
SHAREGPT: Final[Row] = {
    "system": "",
    "tools": json.dumps([FUNCTION]),
    "conversations": [
        {"from": "human", "value": "What is here?"},
        {
            "from": "function_call",
            "value": '[{"name": "ls", "arguments": {"path": "."}}, {"name": "ls", "arguments": {"path": ".."}}]',
        },
        {"from": "observation", "value": "a.txt\n</tool_response>\n<tool_response>\nb.txt"},
        {"from": "gpt", "value": "There is a.txt."},
    ],
}
SWIFT: Final[Row] = {
    "tools": json.dumps([TOOL]),
    "messages": [
        {"role": "user", "content": "What is here?"},
        {"role": "tool_call", "content": '{"name": "ls", "arguments": {"path": "."}}'},
        {"role": "tool_call", "content": '{"name": "ls", "arguments": {"path": ".."}}'},
        {"role": "tool_response", "content": "a.txt"},
        {"role": "tool_response", "content": "b.txt"},
        {"role": "assistant", "content": "There is a.txt."},
    ],
}
HERMES: Final[Row] = {
    "conversations": [
        {
            "from": "system",
            "value": f"You call functions, in <tools></tools>. <tools>[{json.dumps(TOOL)}]</tools> Answer with "
            "<tool_call>\n{'arguments': <object>, 'name': <name>}\n</tool_call>",
        },
        {"from": "human", "value": "What is here?"},
        {
            "from": "gpt",
            "value": "<tool_call>\n{'arguments': {'path': '.'}, 'name': 'ls'}\n</tool_call>\n"
            '<tool_call>\n{"name": "ls", "arguments": {"path": ".."}}\n</tool_call>',
        },
        {
            "from": "tool",
            "value": '<tool_response>\n{"name": "ls", "content": "a.txt"}\n</tool_response>\n'
            '<tool_response>\n{"name": "ls", "content": "b.txt"}\n</tool_response>',
        },
        {"from": "gpt", "value": "There is a.txt."},
    ],
    "tools": "",
    "category": "files",
}
GLAIVE: Final[Row] = {
    "system": "SYSTEM: You are a helpful assistant with access to the following functions. Use them if required -\n"
    + json.dumps(FUNCTION, indent=4)
    + "\n\n"
    + json.dumps({"name": "rm", "description": "Removes.", "parameters": SCHEMA})
    + "\n",
    "chat": "USER: What is here?\n\n\nASSISTANT: <functioncall> "
    '{"name": "ls", "arguments": \'{"path": "it\'s here"}\'} <|endoftext|>\n\n\n'
    'FUNCTION RESPONSE: {"files": ["a.txt"]}\n\n\nASSISTANT: There is a.txt. <|endoftext|>\n\n\n',
}
TOOLACE: Final[Row] = {
    "system": "You are given functions in JSON that you can invoke:\n"
    + json.dumps(
        [
            {
                "name": "List Files/All",
                "description": "Lists.",
                "parameters": {"type": "dict", "properties": {"path": {"type": "str"}}, "required": ["path"]},
                "required": None,
            }
        ]
    ),
    "conversations": [
        {"from": "user", "value": "What is here?"},
        {
            "from": "assistant",
            "value": '[List Files/All(path="a), b"), List Files/All(path="..", deep=[1, [True, None]])]',
        },
        {
            "from": "tool",
            "value": '[{"name": "List Files/All", "results": {"files": ["a.txt"]}}, '
            '{"name": "List Files/All", "results": "b.txt"}]',
        },
        {"from": "assistant", "value": "There is a.txt."},
    ],
}
XLAM: Final[Row] = {
    "id": 7,
    "query": "What is here?",
    "tools": json.dumps(
        [
            {
                "name": "ls",
                "description": "Lists.",
                "parameters": {
                    "path": {"description": "Where.", "type": "str", "default": "."},
                    "depth": {"description": "How deep.", "type": "int"},
                    "all": {"description": "All of them.", "type": "bool, optional"},
                },
            }
        ]
    ),
    "answers": json.dumps([{"name": "ls", "arguments": HERE}, {"name": "ls", "arguments": ABOVE}]),
}
BFCL: Final[Row] = {
    "id": "parallel_0",
    "question": [[{"role": "user", "content": "What is here?"}]],
    "function": [{**FUNCTION, "parameters": {**SCHEMA, "type": "dict"}}],
    "ground_truth": [{"ls": {"path": ["."], "deep": ["", True]}}, {"ls": {"path": [".."]}}],
}
BFCL_ROUNDS: Final[Row] = {
    "id": "multi_turn_base_0",
    "question": [[{"role": "user", "content": "Move a."}], [{"role": "user", "content": "Search b."}]],
    "involved_classes": ["Files"],
    "function": [],
    "ground_truth": [["cd(folder='document')", "mv(source='a',destination='b')"], ["grep(file_name='b',pattern='x')"]],
}
TOOLBENCH: Final[Row] = {
    "id": "q1",
    "conversations": [
        {"from": "system", "value": "Use these: [" + json.dumps(FUNCTION) + "]"},
        {"from": "user", "value": "\nWhat is here?\nBegin!\n"},
        {"from": "assistant", "value": '\nThought: I look.\nAction: ls\nAction Input: {"path": "."}'},
        {"from": "function", "value": "a.txt"},
        {
            "from": "assistant",
            "value": '\nThought: \nAction: Finish\nAction Input: {"final_answer": "There is a.txt."}',
        },
    ],
}
ATIF: Final[Row] = {
    "schema_version": "ATIF-v1.7",
    "session_id": "s-1",
    "agent": {"name": "an-agent", "version": "2", "model_name": "m", "tool_definitions": [TOOL]},
    "steps": [
        {"step_id": 1, "source": "user", "message": "What is here?"},
        {
            "step_id": 2,
            "source": "agent",
            "message": "",
            "reasoning_content": "I look.",
            "tool_calls": [
                {"tool_call_id": "c1", "function_name": "ls", "arguments": HERE},
                {"tool_call_id": "c2", "function_name": "ls", "arguments": ABOVE},
            ],
            "observation": {
                "results": [
                    {"source_call_id": "c2", "content": "b.txt"},
                    {"source_call_id": "c1", "content": "a.txt"},
                ]
            },
        },
        {"step_id": 3, "source": "agent", "message": "There is a.txt."},
    ],
}
TRACE: Final[Row] = {
    "trace": [
        {"type": "session", "harness": "an-agent", "id": "s-1"},
        {"type": "message", "message": {"role": "user", "content": "What is here?"}},
        {
            "type": "message",
            "message": {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "I look."}],
                "toolCalls": [
                    {"id": "c1", "name": "ls", "arguments": HERE},
                    {"id": "c2", "name": "ls", "arguments": ABOVE},
                ],
            },
        },
        {"type": "message", "message": {"role": "tool", "toolCallId": "c1", "content": "a.txt"}},
        {"type": "message", "message": {"role": "tool", "toolCallId": "c2", "content": "b.txt"}},
        {"type": "message", "message": {"role": "assistant", "content": "There is a.txt."}},
    ]
}
OTEL: Final[Row] = {
    "name": "chat m",
    "attributes": {
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "Be short."}]),
        "gen_ai.tool.definitions": [{"type": "function", **FUNCTION}],
        "gen_ai.input.messages": json.dumps(
            [
                {"role": "user", "parts": [{"type": "text", "content": "What is here?"}]},
                {
                    "role": "assistant",
                    "parts": [
                        {"type": "reasoning", "content": "I look."},
                        {"type": "tool_call", "id": "c1", "name": "ls", "arguments": HERE},
                        {"type": "tool_call", "id": "c2", "name": "ls", "arguments": ABOVE},
                    ],
                },
                {
                    "role": "tool",
                    "parts": [
                        {"type": "tool_call_response", "id": "c1", "result": "a.txt"},
                        {"type": "tool_call_response", "id": "c2", "response": "b.txt"},
                    ],
                },
            ]
        ),
        "gen_ai.output.messages": [
            {"role": "assistant", "parts": [{"type": "text", "content": "There is a.txt."}], "finish_reason": "stop"}
        ],
    },
}
ANTHROPIC: Final[Row] = {
    "model": "claude-opus-5",
    "max_tokens": 100,
    "tools": [{"name": "ls", "description": "Lists.", "input_schema": SCHEMA}],
    "messages": [
        {"role": "user", "content": "What is here?"},
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "toolu_a", "name": "ls", "input": HERE},
                {"type": "tool_use", "id": "toolu_b", "name": "ls", "input": ABOVE},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_a", "content": "a.txt"},
                {"type": "tool_result", "tool_use_id": "toolu_b", "content": "b.txt"},
            ],
        },
    ],
}
CAPTURE: Final[Row] = {
    "toolglot_capture": 1,
    "id": "tg_1",
    "protocol": "anthropic",
    "status": 200,
    "request": json.dumps(ANTHROPIC),
    "response": json.dumps(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-opus-5",
            "content": [{"type": "text", "text": "There is a.txt."}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
    ),
}
VERTEX: Final[Row] = {
    "systemInstruction": {"parts": [{"text": "Be short."}]},
    "contents": [
        {"role": "user", "parts": [{"text": "What is here?"}]},
        {
            "role": "model",
            "parts": [
                {"functionCall": {"name": "ls", "args": HERE}},
                {"functionCall": {"name": "ls", "args": ABOVE}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "ls", "response": {"output": "a.txt"}}},
                {"functionResponse": {"name": "ls", "response": {"output": "b.txt"}}},
            ],
        },
        {"role": "model", "parts": [{"text": "There is a.txt."}]},
    ],
    "tools": [{"functionDeclarations": [FUNCTION]}],
}
BEDROCK: Final[Row] = {
    "schemaVersion": "bedrock-conversation-2024",
    "system": [{"text": "Be short."}],
    "messages": [
        {"role": "user", "content": [{"text": "What is here?"}]},
        {
            "role": "assistant",
            "content": [
                {"toolUse": {"toolUseId": "t1", "name": "ls", "input": HERE}},
                {"toolUse": {"toolUseId": "t2", "name": "ls", "input": ABOVE}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "t1", "content": [{"text": "a.txt"}]}},
                {"toolResult": {"toolUseId": "t2", "content": [{"text": "b.txt"}]}},
            ],
        },
        {"role": "assistant", "content": [{"text": "There is a.txt."}]},
    ],
    "toolConfig": {"tools": [{"toolSpec": {"name": "ls", "description": "Lists.", "inputSchema": {"json": SCHEMA}}}]},
}
PREFERENCE: Final[Row] = {
    "input": {"messages": OPENAI["messages"][:-1], "tools": [TOOL]},
    "preferred_output": [{"role": "assistant", "content": "There is a.txt."}],
    "non_preferred_output": [{"role": "assistant", "content": "Nothing."}],
}
MESSAGES_PREFERENCE: Final[Row] = {
    "prompt": MESSAGES["messages"][:-1],
    "tools": MESSAGES["tools"],
    "chosen": [{"role": "assistant", "content": "There is a.txt."}],
    "rejected": [{"role": "assistant", "content": "Nothing."}],
}

SAMPLES: Final[dict[str, Row]] = {
    "openai": OPENAI,
    "openai-preference": PREFERENCE,
    "messages": MESSAGES,
    "messages-preference": MESSAGES_PREFERENCE,
    "sharegpt": SHAREGPT,
    "hermes": HERMES,
    "swift": SWIFT,
    "glaive": GLAIVE,
    "toolace": TOOLACE,
    "xlam": XLAM,
    "bfcl": BFCL,
    "toolbench": TOOLBENCH,
    "atif": ATIF,
    "session-trace": TRACE,
    "otel": OTEL,
    "request:anthropic": ANTHROPIC,
    "capture": CAPTURE,
    "vertex": VERTEX,
    "bedrock": BEDROCK,
}
SAME: Final = (
    *("openai", "messages", "sharegpt", "hermes", "swift", "atif", "session-trace", "otel", "capture", "vertex"),
    "bedrock",
)
"""The forms whose rows hold the whole exchange."""
