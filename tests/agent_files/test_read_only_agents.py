"""Sessions of Cline, Continue, Goose, llxprt and aider are found, listed, read, checked and handed over."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.agent_files.read_only import (
    ARGUMENTS,
    FORMS,
    PROMPT,
    RESULTS,
    cline_session,
    cline_task,
    continue_session,
    goose_lines,
    goose_messages,
    llxprt_session,
    write_json,
)
from support.agent_files.sessions import FOLDER, PNG, calls_of, home_in, results_by_call, texts_of
from toolglot import Compaction, InputError, Media, agent_files

READ_ONLY = {*agent_files.names()} - {*agent_files.writers()}


def changed(path: Path, index: int, value: object) -> Path:
    """The file with one of its lines replaced, or with more behind them."""
    lines = path.read_bytes().splitlines()
    lines[index:] = (
        [json.dumps(value).encode(), *lines[index + 1 :]] if index < len(lines) else [json.dumps(value).encode()]
    )
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def test_every_agent_that_is_only_read_has_its_forms_here() -> None:
    assert {agent for agent, _ in FORMS.values()} == READ_ONLY == {"cline", "continue_dev", "goose", "llxprt", "aider"}


@pytest.mark.parametrize("form", FORMS)
def test_a_session_is_found_listed_read_and_sound(form: str, tmp_path: Path) -> None:
    agent, make = FORMS[form]
    path = make(tmp_path)
    session = agent_files.read(path)
    assert (session.agent, agent_files.detect(path).name, agent_files.check(path)) == (agent, agent, ())
    assert session.title == PROMPT
    if form != "goose, an export":
        (row,) = agent_files.find(agent, home=home_in(tmp_path))
        assert (row.agent, row.path, row.title, row.directory) == (agent, str(path), PROMPT, session.directory)
        assert (row.id, row.turns >= 1, row.size > 0) == (session.id, True, True)
    assert PROMPT in texts_of(session.conversation)
    if agent == "aider":
        return
    assert session.directory == FOLDER
    assert [arguments for _, arguments in calls_of(session.conversation)] == ARGUMENTS
    results = [result for turn in session.conversation.turns for result in turn.results]
    assert [(result.text, result.is_error) for result in results] == [(RESULTS[0], False), (RESULTS[1], True)]
    images = [block for turn in session.conversation.turns for block in turn.blocks if isinstance(block, Media)]
    assert [(image.media_type, image.data) for image in images] == [("image/png", PNG)]
    assert session.conversation.turns[-1].text == "One file."
    assert "environment_details" not in texts_of(session.conversation)


@pytest.mark.parametrize("target", agent_files.writers())
@pytest.mark.parametrize("form", FORMS)
def test_a_session_is_handed_over_to_every_agent_that_can_be_written(form: str, target: str, tmp_path: Path) -> None:
    agent, make = FORMS[form]
    path = make(tmp_path)
    session = agent_files.read(path)
    written = agent_files.write(session.conversation, target, home=home_in(tmp_path), directory="/", source=agent)
    again = agent_files.read(written.path)
    assert calls_of(again.conversation) == calls_of(session.conversation)
    assert [text.removeprefix("Error: ") for _, text in results_by_call(again.conversation)] == [
        text for _, text in results_by_call(session.conversation)
    ]
    assert PROMPT in texts_of(again.conversation)
    assert agent_files.check(written.path) == ()


@pytest.mark.parametrize("agent", sorted(READ_ONLY))
def test_such_a_session_cannot_be_written_or_healed(agent: str, tmp_path: Path) -> None:
    path = next(make(tmp_path) for name, make in FORMS.values() if name == agent)
    session = agent_files.read(path)
    with pytest.raises(InputError, match="only read"):
        agent_files.write(session.conversation, agent, home=home_in(tmp_path))


def test_what_cline_cut_off_is_left_out(tmp_path: Path) -> None:
    path = cline_task(tmp_path)
    history = path.parents[2] / "state" / "taskHistory.json"
    (entry,) = json.loads(history.read_bytes())
    write_json(history, [{**entry, "conversationHistoryDeletedRange": [1, 2]}])
    session = agent_files.read(path)
    assert [turn.role for turn in session.conversation.turns] == ["user", "assistant"]
    assert (session.compactions, len(session.report)) == (1, 1)
    for nonsense in ([5, 1], [-9, 99], ["a", "b"], [1], None):
        write_json(history, [{**entry, "conversationHistoryDeletedRange": nonsense}])
        agent_files.read(path)


def test_a_compacted_session_of_cline_goes_on_with_what_it_compacted_to(tmp_path: Path) -> None:
    path = cline_session(tmp_path)
    state = {"version": 1, "source_message_count": 3, "messages": [{"role": "user", "content": "The summary."}]}
    write_json(path.with_name("1762.compaction.json"), state)
    session = agent_files.read(path)
    assert [turn.text for turn in session.conversation.turns] == ["The summary.", "One file."]


def test_the_summary_of_continue_stands_for_what_was_before_it(tmp_path: Path) -> None:
    path = continue_session(tmp_path)
    value = json.loads(path.read_bytes())
    value["history"][1]["conversationSummary"] = "The summary."
    session = agent_files.read(write_json(path, value))
    first, last = session.conversation.turns
    assert [block.summary for block in first.blocks if isinstance(block, Compaction)] == ["The summary."]
    assert last.text == "One file."


def test_what_the_model_of_goose_no_longer_sees_is_left_out(tmp_path: Path) -> None:
    path = goose_lines(tmp_path)
    hidden = {**goose_messages()[0], "metadata": {"userVisible": True, "agentVisible": False}}
    session = agent_files.read(changed(path, 1, hidden))
    assert PROMPT not in texts_of(session.conversation)
    assert "no longer sees" in str(session.report[0])


def test_llxprt_replaces_what_it_compressed_and_takes_back_what_was_rewound(tmp_path: Path) -> None:
    path = llxprt_session(tmp_path)
    rewind = {"v": 1, "seq": 6, "ts": "", "type": "rewind", "payload": {"itemsRemoved": 3}}
    session = agent_files.read(changed(path, 99, rewind))
    assert [turn.role for turn in session.conversation.turns] == ["user"]
    assert session.rewound == 3
    summary = {"speaker": "ai", "blocks": [{"type": "text", "text": "The summary."}]}
    payload = {"summary": summary, "itemsCompressed": 1}
    session = agent_files.read(
        changed(path, 99, {"v": 1, "seq": 7, "ts": "", "type": "compressed", "payload": payload})
    )
    (turn,) = session.conversation.turns
    assert [block.summary for block in turn.blocks if isinstance(block, Compaction)] == ["The summary."]


def test_the_chats_of_aider_are_turns_without_what_it_printed(tmp_path: Path) -> None:
    session = agent_files.read(FORMS["aider"][1](tmp_path))
    assert [(turn.role, turn.text) for turn in session.conversation.turns] == [
        ("user", PROMPT),
        ("assistant", "Look.\n\na.py\n```\nx = 1\n```"),
        ("user", "And now?\nIn two lines."),
        ("assistant", "Nothing more."),
    ]
    assert session.model == "claude-opus-5"


def test_a_call_without_a_result_is_found(tmp_path: Path) -> None:
    path = goose_lines(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3] + lines[4:]))
    assert [fault.kind for fault in agent_files.check(path)] == ["dangling-call", "dangling-call"]
    healed = agent_files.heal_file(path)
    assert not healed.is_changed


@pytest.mark.law
@pytest.mark.parametrize("form", [form for form in FORMS if form != "goose, the database"])
@given(data=st.data())
@settings(max_examples=60)
def test_a_broken_file_is_a_session_or_a_named_error(
    form: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    agent, make = FORMS[form]
    home = tmp_path_factory.mktemp("home")
    path = make(home)
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    other = data.draw(st.integers(0, len(whole)))
    path.write_bytes(
        data.draw(
            st.sampled_from(
                [
                    whole[:cut],
                    whole[:cut] + whole[other:],
                    whole[:cut] + b"\xff\0{[" + whole[cut:],
                    data.draw(st.binary(max_size=200)),
                ]
            )
        )
    )
    with contextlib.suppress(InputError):
        agent_files.read(path, agent=agent)
    agent_files.check(path, agent=agent)
    list(agent_files.find("all", home=home_in(home)))


@pytest.mark.law
@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "role",
                        "content",
                        "type",
                        "message",
                        "history",
                        "toolCallStates",
                        "blocks",
                        "payload",
                        "id",
                        "metadata",
                        "messages",
                        "output",
                        "conversation",
                        "toolResult",
                        "value",
                    ]
                ),
                inner,
                max_size=5,
            )
        ),
        max_leaves=20,
    )
)
@settings(max_examples=100)
def test_any_json_is_a_session_or_a_named_error(value: object, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("home")
    for agent, name in (
        ("cline", "api_conversation_history.json"),
        ("cline", "a.messages.json"),
        ("continue_dev", "a.json"),
        ("goose", "b.json"),
        ("goose", "a.jsonl"),
        ("llxprt", "b.jsonl"),
        ("aider", "a.md"),
        ("opencode", "c.json"),
    ):
        path = write_json(folder / name, value)
        for wrapped in (
            value,
            {
                "history": [value],
                "messages": [value],
                "conversation": [value],
                "info": {},
                "type": "content",
                "payload": value,
            },
        ):
            write_json(path, wrapped)
            with contextlib.suppress(InputError):
                agent_files.read(path, agent=agent)
            agent_files.check(path, agent=agent)
