"""The default script reads the prompt: which tool it calls, with which arguments, and what it makes of the result."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.counted_work import no_hang
from support.schema.strategies import JSON
from support.simulator.asgi_client import ask
from toolglot.arguments import Validator
from toolglot.conversation import Text, ToolSpec, Turn
from toolglot.render.roles import TAGGED
from toolglot.simulator import Simulator
from toolglot.simulator.scripts.prompt_cues import MAX_PROMPT, UserPrompt, join_path, user_words, working_directory
from toolglot.simulator.scripts.result_quotes import MAX_QUOTED, shorten_quote
from toolglot.simulator.scripts.tool_selection import Picker

Body = dict[str, Any]


def string(**more: Any) -> Body:
    return {"type": "string", **more}


def tool(name: str, description: str = "", required: tuple[str, ...] | None = None, **properties: Body) -> Body:
    wanted = list(properties) if required is None else list(required)
    parameters = {"type": "object", "properties": properties, "required": wanted, "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


READ = tool("read_file", "Read a file of the project.", path=string())
WRITE = tool("write_file", "Write a file of the project.", path=string(), content=string())
DELETE = tool("delete_file", "Delete a file of the project.", path=string())
EDIT = tool("edit_file", "Edit a file of the project.", path=string(), old=string(), new=string())
AGENT = tool("Agent", "Launch a new agent that can read and search files.", prompt=string())
LIST = tool("list_files", "List the files of a folder.", folder=string())
SHELL = tool("shell", "Run a command.", command=string())
WEATHER = tool("get_weather", "The weather in a city.", city=string())
PEOPLE = tool("population", "How many people live in a city.", city=string())
SEARCH = tool("web_search", "Search the web.", query=string())
FETCH = tool("web_fetch", "Fetch a page.", url=string())
CALCULATE = tool("calculate", "Work out an expression.", expression=string())
FLIGHTS = tool("find_flights", "Flights between cities.", origin=string(), destination=string())
GREP = tool("grep", "Search files for a pattern.", ("pattern",), pattern=string(), path=string())
FORECAST = tool(
    "weather_forecast",
    "A forecast.",
    ("city", "days", "metric", "hours"),
    city=string(),
    days={"type": "integer", "minimum": 1, "maximum": 14},
    metric={"type": "boolean"},
    hours={"type": "array", "items": {"type": "integer"}},
    units=string(enum=["celsius", "fahrenheit"]),
)
ALL = [READ, WRITE, LIST, SHELL, WEATHER, PEOPLE, SEARCH, FETCH, CALCULATE, FLIGHTS]


def answer(prompt: str, tools: list[Body], *, unasked: bool = False, **more: Any) -> Body:
    """The message that a simulated model answers with."""
    messages = [{"role": "user", "content": prompt}]
    body = {"model": "gpt-4.1", "messages": messages, "tools": tools, **more}
    answered = ask(Simulator({"calls_unasked": unasked}), "openai", body)
    assert answered.status == 200, answered.data
    message: Body = answered.json["choices"][0]["message"]
    return message


def calls(prompt: str, tools: list[Body], **more: Any) -> list[tuple[str, Body]]:
    found = answer(prompt, tools, **more).get("tool_calls") or []
    return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in found]


# --- which tool, with which arguments ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "name", "arguments"),
    [
        ("What is in a.txt?", "read_file", {"path": "a.txt"}),
        ("read_file a.txt", "read_file", {"path": "a.txt"}),
        ("Please show me src/main.py.", "read_file", {"path": "src/main.py"}),
        ('Summarize "my notes.txt"', "read_file", {"path": "my notes.txt"}),
        ("Write 'hello' to b.txt", "write_file", {"path": "b.txt", "content": "hello"}),
        ("list the files in src/", "list_files", {"folder": "src/"}),
        ("Which files are there?", "list_files", {"folder": "."}),
        ("Run `git status`", "shell", {"command": "git status"}),
        ("What is the weather in Bonn? Use the tool.", "get_weather", {"city": "Bonn"}),
        ("is it raining in bonn", "get_weather", {"city": "bonn"}),
        ("get_weather city: Ulm", "get_weather", {"city": "Ulm"}),
        ("How many people live in New York?", "population", {"city": "New York"}),
        ("Search the web for tool calls", "web_search", {"query": "tool calls"}),
        ("What does https://example.com/a say?", "web_fetch", {"url": "https://example.com/a"}),
        ("Calculate 2 * (3 + 4)", "calculate", {"expression": "2 * (3 + 4)"}),
        ("Find flights from Rome to Oslo", "find_flights", {"origin": "Rome", "destination": "Oslo"}),
    ],
)
def test_the_tool_that_the_prompt_is_about_is_called_with_what_it_names(
    prompt: str, name: str, arguments: Body
) -> None:
    assert calls(prompt, ALL) == [(name, arguments)]
    assert calls(prompt, ALL[::-1]) == [(name, arguments)]  # whatever the order of the tools


def test_numbers_choices_booleans_and_lists_come_from_the_prompt() -> None:
    prompt = "The forecast for Bonn: 3 days, metric, celsius, at the hours 9 and 15."
    arguments = {"city": "Bonn", "days": 3, "metric": True, "hours": [3, 9, 15], "units": "celsius"}
    assert calls(prompt, [FORECAST]) == [("weather_forecast", arguments)]


def test_optional_arguments_need_a_cue_and_required_ones_a_value() -> None:
    assert calls("grep for 'TODO'", [GREP]) == [("grep", {"pattern": "TODO"})]
    assert calls("grep for 'TODO' in src/main.py", [GREP]) == [("grep", {"pattern": "TODO", "path": "src/main.py"})]
    days = tool("forecast", city=string(), days={"type": "integer", "minimum": 2})
    assert calls("The forecast for Bonn", [days]) == [("forecast", {"city": "Bonn", "days": 2})]
    small = tool("forecast", city=string(), days={"type": "integer", "maximum": 5})
    assert calls("The forecast for Bonn, 30 days", [small]) == [("forecast", {"city": "Bonn", "days": 1})]


def test_several_files_are_several_calls_unless_the_client_takes_one_at_a_time() -> None:
    both = [("read_file", {"path": "a.txt"}), ("read_file", {"path": "b.txt"})]
    assert calls("Read a.txt and b.txt", [READ]) == both
    assert calls("Read a.txt and b.txt", [READ], parallel_tool_calls=False) == both[:1]
    many = tool("read_files", paths={"type": "array", "items": string()})
    assert calls("Read a.txt and b.txt", [many]) == [("read_files", {"paths": ["a.txt", "b.txt"]})]


def test_a_name_weighs_more_than_a_description() -> None:
    wordy = tool("notebook", "Read a file, show a file, open a file: what is in it, and what it says.", path=string())
    assert calls("read a.txt", [wordy, tool("Read", "Reads.", file_path=string())]) == [
        ("Read", {"file_path": "a.txt"})
    ]


def test_a_shell_reads_a_file_where_nothing_else_does() -> None:
    assert calls("What is in a.txt?", [WEATHER, SHELL]) == [("shell", {"command": "cat a.txt"})]
    assert calls("What is in 'my notes.txt'?", [SHELL]) == [("shell", {"command": "cat 'my notes.txt'"})]


def test_an_absolute_path_is_made_with_the_working_directory_that_the_instructions_name() -> None:
    read = tool("Read", "Reads a file.", file_path=string(description="The absolute path to the file"))
    body = {"model": "gpt-4.1", "tools": [read]}
    system = {"role": "system", "content": "Be brief.\n - Primary working directory: /home/ana/project\n - Shell: sh"}
    messages = [system, {"role": "user", "content": "<system-reminder>\nread c.txt\n</system-reminder>\nread a.txt"}]
    answered = ask(Simulator({"calls_unasked": False}), "openai", {**body, "messages": messages})
    (call,) = answered.json["choices"][0]["message"]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"file_path": "/home/ana/project/a.txt"}


@pytest.mark.parametrize(
    ("text", "directory"),
    [
        ("Working directory: /home/ana", "/home/ana"),
        ("<env>\nWorking directory: /home/ana\nShell: sh\n</env>", "/home/ana"),
        ("Your current working directory is /home/ana.", "/home/ana"),
        ("cwd: /home/ana", "/home/ana"),
        ("<cwd>/home/ana</cwd>", "/home/ana"),
        ("cwd = `C:\\Users\\ana`", "C:\\Users\\ana"),
        ("- **Workspace Directories:**\n\n  - /home/ana\n", "/home/ana"),
        ("<description>What the user does within this working directory.</description>", ""),
        ("the current working directory, e.g. /etc/hosts", ""),
        ("Stay in the working directory; /tmp is forbidden.\nWorking directory: /home/ana", "/home/ana"),
        ("Run it in the working directory\n/usr/bin/env", ""),
    ],
)
def test_a_working_directory_is_what_a_line_names_so_and_no_other_path(text: str, directory: str) -> None:
    assert working_directory([Turn("system", (Text(text),))]) == directory


# --- what is ordered --------------------------------------------------------------------------------

CHANGING = [READ, WRITE, DELETE, LIST, EDIT, WEATHER]


@pytest.mark.parametrize(
    ("prompt", "name", "arguments"),
    [
        ("Write hello into c.txt", "write_file", {"path": "c.txt", "content": "hello"}),
        ("Please write hello world to the file c.txt.", "write_file", {"path": "c.txt", "content": "hello world"}),
        ("Save the word hello in src/c.txt", "write_file", {"path": "src/c.txt", "content": "hello"}),
        ("write hello into 'my notes.txt'", "write_file", {"path": "my notes.txt", "content": "hello"}),
        ("Create c.txt with the content hello, then stop", "write_file", {"path": "c.txt", "content": "hello"}),
        ("Write to c.txt: hello", "write_file", {"path": "c.txt", "content": "hello"}),
        ("Put 'read or delete me' into c.txt", "write_file", {"path": "c.txt", "content": "read or delete me"}),
        ("Remove a.txt", "delete_file", {"path": "a.txt"}),
        ("Replace 'x' with 'y' in a.txt", "edit_file", {"path": "a.txt", "old": "x", "new": "y"}),
        ("read write.py", "read_file", {"path": "write.py"}),
        ("What changed in a.txt?", "read_file", {"path": "a.txt"}),
        ("How do I delete a.txt?", "read_file", {"path": "a.txt"}),
        ("Look at a.txt", "read_file", {"path": "a.txt"}),
    ],
)
def test_a_verb_decides_between_tools_that_look_and_tools_that_change(prompt: str, name: str, arguments: Body) -> None:
    assert calls(prompt, CHANGING) == [(name, arguments)]
    assert calls(prompt, CHANGING[::-1]) == [(name, arguments)]


@pytest.mark.parametrize(
    ("prompt", "why"),
    [
        ("Create c.txt", "I would call write_file, but I cannot see its content in your words."),
        ("Write a poem about Rome to c.txt", "I would call write_file, but I cannot see its content in your words."),
        ("Delete the notes", "I would call delete_file, but I cannot see its path in your words."),
        ("Move a.txt to b.txt", "No tool fits that."),
    ],
)
def test_an_order_that_lacks_something_is_not_followed_with_another_tool(prompt: str, why: str) -> None:
    message = answer(prompt, CHANGING)
    assert "tool_calls" not in message
    assert why in message["content"]


def test_what_a_question_mentions_is_not_changed() -> None:
    assert calls("What is in a.txt?", [DELETE]) == []
    assert calls("How do I delete a.txt?", [DELETE]) == []
    assert calls("What is the price change of Acme?", [tool("price_change", stock=string())]) == [
        ("price_change", {"stock": "Acme"})
    ]


@pytest.mark.parametrize("name", ["Agent", "Task", "spawn_agent", "delegate_to_agents", "runSubagent"])
def test_a_tool_that_starts_agents_is_called_only_by_its_name(name: str) -> None:
    agent = tool(name, "Launch a task that can read and search files, and say what it read.", prompt=string())
    for prompt in ("Search the files and say what you read", "Task: read the files", "What does the agent do?"):
        assert calls(prompt, [agent]) == []
        assert calls(prompt, [agent, WEATHER], unasked=True) == [("get_weather", {"city": "Bonn"})]
    assert calls(f"Use {name} for 'cats'", [READ, agent]) == [(name, {"prompt": "cats"})]
    assert calls("Hello", [agent], tool_choice="required")[0][0] == name


def test_a_tool_with_agents_in_its_name_is_called_by_the_words_of_it() -> None:
    agents = tool("find_agents", "Estate agents in a city.", city=string())
    assert calls("Find agents in Bonn", [agents]) == [("find_agents", {"city": "Bonn"})]


# --- whose words ------------------------------------------------------------------------------------

LISTED = "Available agent types for the Agent tool:\n- Explore: search files, e.g. 'API endpoints'"


@pytest.mark.parametrize(
    "added",
    [TAGGED.format(text=LISTED), *(f"<{name}>{LISTED}</{name}>" for name in ("system-reminder", "ide_selection"))],
)
@pytest.mark.parametrize("is_apart", [True, False])
def test_the_prompt_is_what_the_user_wrote_last_and_not_what_was_added_behind_it(added: str, is_apart: bool) -> None:
    prompt = "<system-reminder>\nread b.txt\n</system-reminder>\nread a.txt"
    texts = [prompt, added] if is_apart else [f"{prompt}\n\n{added}"]
    messages = [{"role": "user", "content": text} for text in texts]
    body = {"model": "gpt-4.1", "messages": messages, "tools": [AGENT, SEARCH, READ]}
    answered = ask(Simulator({"calls_unasked": False}), "openai", body)
    (call,) = answered.json["choices"][0]["message"]["tool_calls"]
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == ("read_file", {"path": "a.txt"})


def test_a_tag_that_a_user_only_mentions_hides_nothing() -> None:
    assert user_words("What is <system> in a.txt?") == "What is <system> in a.txt?"
    assert user_words("<systems>read a.txt</systems>") == "<systems>read a.txt</systems>"
    assert user_words("a<system>b</system>c<system-reminder>d</system-reminder>e") == "ace"


# --- when no tool fits ------------------------------------------------------------------------------


@pytest.mark.parametrize("prompt", ["Hello", "Tell me a joke about cats.", "Don't read a.txt", "Why is the sky blue?"])
def test_a_prompt_that_no_tool_fits_is_answered_so(prompt: str) -> None:
    content = answer(prompt, [READ, WEATHER])["content"]
    assert content == f"You said: {prompt}\nNo tool fits that. I have read_file, get_weather."


@pytest.mark.parametrize(
    ("prompt", "tools", "why"),
    [
        ("What is the weather?", [WEATHER], "I would call get_weather, but I cannot see its city in your words."),
        ("Write a poem about Rome to a.txt", [WRITE], "I would call write_file, but I cannot see its content"),
        ("What happens if I run `rm -rf /`?", [SHELL], "No tool fits that."),
        ("Run the tests", [SHELL], "No tool fits that."),
    ],
)
def test_nothing_is_made_up_for_a_tool_that_is_really_run(prompt: str, tools: list[Body], why: str) -> None:
    message = answer(prompt, tools)
    assert "tool_calls" not in message
    assert why in message["content"]


def test_a_forced_choice_and_a_test_double_call_a_tool_whatever_the_prompt_is() -> None:
    assert calls("Hello", [WRITE], tool_choice="required") == [("write_file", {"path": "Bonn", "content": "Bonn"})]
    assert calls("Hello", [READ, WEATHER], unasked=True) == [("read_file", {"path": "Bonn"})]
    assert calls("The weather in Ulm?", [READ, WEATHER], unasked=True) == [("get_weather", {"city": "Ulm"})]
    forced = {"type": "function", "function": {"name": "read_file"}}
    assert calls("The weather, and a.txt", [WEATHER, READ], tool_choice=forced) == [("read_file", {"path": "a.txt"})]
    assert calls("What is in a.txt?", [READ], tool_choice="none") == []


# --- what comes of a result -------------------------------------------------------------------------


def after(prompt: str, tools: list[Body], *results: str, more: tuple[Body, ...] = ()) -> str:
    message = answer(prompt, tools)
    turns = [
        {"role": "user", "content": prompt},
        {"role": "assistant", "content": None, "tool_calls": message["tool_calls"]},
        *(
            {"role": "tool", "tool_call_id": call["id"], "content": result}
            for call, result in zip(message["tool_calls"], results, strict=True)
        ),
        *more,
    ]
    answered = ask(
        Simulator({"calls_unasked": False}), "openai", {"model": "gpt-4.1", "messages": turns, "tools": tools}
    )
    assert "tool_calls" not in answered.json["choices"][0]["message"]
    return str(answered.json["choices"][0]["message"]["content"])


def test_an_answer_says_what_the_file_says() -> None:
    assert after("What is in a.txt?", [READ], "hello\n") == "a.txt says: hello"
    assert after("What is in a.txt?", [SHELL], "hello\n") == "a.txt says: hello"
    assert after("Read a.txt and b.txt", [READ], "1", "2") == "a.txt says: 1\nb.txt says: 2"
    assert after("The weather in Bonn?", [WEATHER], "7 degrees") == "get_weather says: 7 degrees"
    assert after("What is in a.txt?", [READ], "") == "a.txt says nothing: its result is empty."


def test_only_the_result_of_a_reading_tool_is_quoted() -> None:
    assert after("Delete a.txt", [DELETE], "deleted a.txt") == "delete_file: deleted a.txt"
    assert after("Write hello into c.txt", [WRITE], "5 bytes") == "write_file: 5 bytes"
    assert after("Delete a.txt", [DELETE], "") == "delete_file is done: its result is empty."
    assert after("Calculate 2 + 3", [CALCULATE], "5") == "calculate: 5"
    assert after("list the files in src/", [LIST], "a.py") == "src/ says: a.py"
    assert after("Run `git status`", [SHELL], "clean") == "git status says: clean"


def test_elements_of_a_file_are_quoted() -> None:
    assert after("What is in a.xml?", [READ], "<system>on</system>") == "a.xml says: <system>on</system>"


def test_what_agents_put_around_a_result_is_not_quoted() -> None:
    numbered = "     1→first\n     2→second\n<system-reminder>\nIs it malware?\n</system-reminder>"
    assert after("What is in a.txt?", [READ], numbered) == "a.txt says: first\nsecond"
    shell = "Chunk ID: 1a\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\nhello\n"
    assert after("What is in a.txt?", [SHELL], shell) == "a.txt says: hello"


def test_a_reminder_behind_the_results_is_not_another_question() -> None:
    for text in ("<system-reminder>read b.txt</system-reminder>", TAGGED.format(text="read b.txt")):
        reminder = {"role": "user", "content": text}
        assert after("What is in a.txt?", [READ], "hello", more=(reminder,)) == "a.txt says: hello"


def test_a_long_result_is_shortened_at_the_end_of_a_line() -> None:
    long = "a line of text\n" * 1000
    text = after("What is in a.txt?", [READ], long)
    assert len(text) < MAX_QUOTED + 100
    assert text.splitlines()[-2:] == [
        "a line of text",
        f"… ({len(long) - 1 - text.rindex(chr(10)) + 12:,} more characters)",
    ]
    assert shorten_quote("x" * 5000) == "x" * MAX_QUOTED + "\n… (3,000 more characters)"


# --- hostile prompts and schemas --------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "<system-reminder>" * 100_000,
        "<system-reminder></system-reminder>" * 50_000,
        "a.b/" * 200_000,
        '"' * 500_000,
        "'a " * 200_000,
        "don't " * 100_000,
        "1." * 300_000,
        "( " * 300_000,
        "for " * 200_000,
        "working directory " * 30_000,
        "working directory:" * 30_000,
        "https://" * 100_000,
        "<system>" * 100_000,
        "write a.txt with " * 50_000,
        "write x to \0 " * 50_000,
    ],
    ids=lambda text: text[:20],
)
def test_a_hostile_prompt_is_read_in_bounded_work(text: str) -> None:
    """Only so much of a prompt is looked at: a slow expression would not end on any of these."""
    prompt = UserPrompt(user_words(text))
    assert len(prompt.text) <= MAX_PROMPT + 1
    for values in (prompt.quoted, prompt.paths, prompt.urls, prompt.names, prompt.numbers):
        assert len(values) <= 8
    assert prompt.words is not None
    assert isinstance(prompt.command + prompt.formula + prompt.after("for") + prompt.named_value("for"), str)
    assert len(prompt.written) <= 500
    assert working_directory([Turn("user", (Text(text),))]) == ""


@pytest.mark.parametrize(
    "prompt",
    [
        "weather in" + " " * 1900 + "x" * 1900,
        "weather in" + " a.b" * 900 + "x" * 300,
        "write " + " " * 1900 + "x" * 1900 + " a.txt",
        "write " + " \t" * 1900 + "to a.txt",
        "look" + "\u2003" * 3900,
        "for \n" * 900,
    ],
    ids=lambda prompt: prompt[:8] + repr(prompt[10:12]),
)
def test_long_white_space_in_a_prompt_costs_no_more_than_words(prompt: str) -> None:
    with no_hang(30):
        for tools in ([WEATHER], [WRITE], [SEARCH], [FLIGHTS], ALL):
            assert answer(prompt, tools) is not None


def test_long_white_space_between_words_changes_nothing_but_what_is_quoted() -> None:
    space = " " * 900
    assert calls(f"the weather{space}in{space}Bonn?", ALL) == [("get_weather", {"city": "Bonn"})]
    assert calls(f'write "a{space[:300]}b" to b.txt', ALL) == [
        ("write_file", {"path": "b.txt", "content": f"a{space[:300]}b"})
    ]


def test_prose_in_a_result_is_read_in_linear_work() -> None:
    """Each line may be cut in many ways into what a shell says of a command: they are not multiplied."""
    prose = "The quick dog ran to a new big red house today\n" * 1000
    with no_hang(30):
        assert after("What is in a.txt?", [READ], prose).startswith("a.txt says: The quick dog ran")


@pytest.mark.parametrize("cue", ["cwd ", "cwd = ", "cwd:::::::::\n\n            ", "working directory is :\n\n  -"])
def test_instructions_that_name_no_directory_very_often_are_read_in_linear_work(cue: str) -> None:
    with no_hang(30):
        assert working_directory([Turn("system", (Text(cue * 100_000),))]) == ""


def test_a_command_with_an_open_quote_is_no_list_of_words() -> None:
    shell = tool("shell", "Run a command.", command={"type": "array", "items": string()})
    text = answer('run "echo it\'s"', [shell])
    assert text["content"].endswith("I would call shell, but I cannot see its command in your words.")
    assert calls('run "echo it"', [shell]) == [("shell", {"command": ["echo", "it"]})]


@pytest.mark.parametrize(
    "bounds",
    [{"minimum": 10**400}, {"exclusiveMinimum": 10**400}, {"multipleOf": 10**400, "maximum": -1}],
    ids="-".join,
)
def test_a_number_too_large_to_reckon_with_is_a_tool_that_does_not_fit(bounds: Body) -> None:
    days = {"type": "integer", **bounds}
    forecast = tool("forecast", "A forecast.", days=days)
    assert "No tool fits that" in answer("The forecast for 3 days", [forecast])["content"]
    assert calls("The forecast, read a.txt", [forecast, READ]) == [("read_file", {"path": "a.txt"})]


def test_no_call_is_made_twice() -> None:
    both = [("read_file", {"path": "b.txt"}), ("read_file", {"path": "a.txt"})]
    assert calls("read a.txt path=b.txt", [READ]) == both
    assert calls("read a.txt path=a.txt", [READ]) == both[1:]
    absolute = tool("read_file", "Read a file.", path=string(description="An absolute path."))
    picker = Picker(UserPrompt("read a.txt and ./a.txt and b.txt"), "/w")
    filled = picker.fill(absolute["function"]["parameters"])
    assert [each.arguments["path"] for each in filled] == ["/w/a.txt", "/w/b.txt"]


@given(
    prompt=st.text(max_size=300) | st.sampled_from(['Read a.txt, 3 days, "x"', "calc 1+1 in Bonn for https://a.b/c"]),
    properties=st.dictionaries(
        st.sampled_from(["path", "city", "days", "url", "command", "items", "ok", "kind", "query"]), JSON, max_size=5
    ),
    required=st.lists(st.sampled_from(["path", "city", "days", "x"]), max_size=3),
)
def test_arguments_agree_with_their_schema_whatever_it_is(prompt: str, properties: Body, required: list[str]) -> None:
    schema = {"type": "object", "properties": properties, "required": required}
    picker = Picker(UserPrompt(prompt), "/work")
    first = picker.fill(schema)
    for filled in first:
        assert not Validator(schema).mismatches(filled.arguments)
    assert first == Picker(UserPrompt(prompt), "/work").fill(schema)
    assert picker.rank([ToolSpec("read", prompt, schema)]) is not None


@pytest.mark.parametrize(
    ("path", "whole"),
    [("a.txt", "/w/a.txt"), ("./a.txt", "/w/a.txt"), (".", "/w"), ("/b/a.txt", "/b/a.txt"), ("~/a", "~/a")],
)
def test_a_path_is_joined_to_the_directory_once(path: str, whole: str) -> None:
    assert join_path("/w", path) == whole
    assert join_path("", path) == path
