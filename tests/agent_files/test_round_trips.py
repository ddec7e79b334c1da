"""What is written for an agent is read as the same conversation, and is sound.

Laws 2, 6, 10 and 12: calls, results and text are kept, ids are distinct, and nothing opaque leaves its issuer.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings

from support.agent_files.sessions import (
    IDS,
    PNG,
    SIGNATURE,
    SUMMARY,
    calls_of,
    full_conversation,
    home_in,
    minimal,
    place,
    results_by_call,
    texts_of,
    write_file,
)
from support.conversations.strategies import conversations
from toolglot import (
    Compaction,
    Conversation,
    EmptyConversationError,
    InputError,
    Issuer,
    Media,
    RefusedError,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Turn,
    agent_files,
)

WRITERS = agent_files.writers()
PAIRS = [(source, target) for source in WRITERS for target in WRITERS]


@pytest.mark.parametrize("agent", WRITERS)
def test_a_written_session_is_read_with_its_calls_results_texts_and_images(agent: str, tmp_path: Path) -> None:
    written = agent_files.write(full_conversation(), agent, home=home_in(tmp_path), directory="/", title="Grüße")
    session = agent_files.read(written.path)
    assert (session.agent, session.id, session.report) == (agent, written.id, ())
    conversation = session.conversation
    names = [name for name, _ in calls_of(conversation)]
    assert names[:2] == ["Bash", "Bash"]
    assert names[2].isascii()  # no provider accepts an umlaut
    assert any("renamed" in str(entry) for entry in written.report)
    assert [arguments for _, arguments in calls_of(conversation)] == [
        {"command": "ls größe.txt"},
        {"command": "cat größe.txt"},
        {"name": "größe"},
    ]
    found = [text for _, text in results_by_call(conversation)]
    assert found[0] == "größe.txt 你好"
    assert found[1].endswith("no such file")
    assert "interrupted" in found[2]
    assert (written.calls, written.results) == (3, 3)
    images = [block for turn in conversation.turns for block in turn.blocks if isinstance(block, Media)]
    assert [image.data for image in images] == [PNG]
    assert "What is in größe.txt? Grüße, 你好" in texts_of(conversation)
    assert "Stop, do not do that." in texts_of(conversation)
    assert conversation.turns[-1].text == "One file was found."
    if agent == "copilot_cli":  # its own form of a summary is not known, so it is a message
        assert SUMMARY in conversation.turns[0].text
    else:
        assert session.compactions == 1
        summaries = [block for block in conversation.turns[0].blocks if isinstance(block, Compaction)]
        assert SUMMARY in str(summaries[0].summary)
    assert agent_files.check(written.path) == ()


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_session_is_handed_from_one_agent_to_another(source: str, target: str, tmp_path: Path) -> None:
    home = home_in(tmp_path)
    first = agent_files.write(full_conversation(), source, home=home, directory="/", id=IDS["codex"])
    session = agent_files.read(first.path)
    second = agent_files.write(session.conversation, target, home=home, directory="/", source=source)
    again = agent_files.read(second.path)
    assert calls_of(again.conversation) == calls_of(session.conversation)
    assert [text.removeprefix("Error: ") for _, text in results_by_call(again.conversation)] == [
        text.removeprefix("Error: ") for _, text in results_by_call(session.conversation)
    ]
    assert set(texts_of(again.conversation).split()) >= set(texts_of(session.conversation).split())
    assert first.path.read_bytes() == first.data
    assert agent_files.check(second.path) == ()


@pytest.mark.parametrize("target", WRITERS)
@pytest.mark.parametrize("issuer", ["anthropic", "openai_responses", "gemini"])
def test_law_12_no_signature_leaves_its_issuer(issuer: str, target: str, tmp_path: Path) -> None:
    made_by = Issuer(issuer, model="claude-opus-5")
    conversation = Conversation(
        (
            Turn("user", (Text("Hi"),)),
            Turn(
                "assistant",
                (
                    Thinking("hm", signature=SIGNATURE, redacted=f"{SIGNATURE}-redacted"),
                    Text("Yes.", signature=f"{SIGNATURE}-text"),
                    ToolCall("call_1", "ls", {}, signature=f"{SIGNATURE}-call"),
                ),
                issuer=made_by,
            ),
            Turn("user", (ToolResult("call_1", "a"),)),
            Turn("assistant", (Text("Done."),), issuer=made_by),
        )
    )
    written = agent_files.write(conversation, target, home=home_in(tmp_path), directory="/")
    assert SIGNATURE.encode() not in written.data
    assert any(entry.gravity == "loss" and "thinking" in entry.reason for entry in written.report)


@pytest.mark.parametrize("agent", IDS)
def test_the_minimal_file_is_found_read_and_sound(agent: str, tmp_path: Path) -> None:
    home = home_in(tmp_path)
    path = write_file(place(agent, home), minimal(agent))
    (row,) = agent_files.find(agent, home=home)
    assert (row.agent, row.id, row.path, row.title) == (agent, IDS[agent], str(path), "What is here?")
    assert row.turns >= 1
    session = agent_files.read(path)
    assert agent_files.detect(path).name == agent
    assert [text for _, text in results_by_call(session.conversation)] == ["a.txt", "/x"]
    assert agent_files.check(path) == ()


@pytest.mark.parametrize("agent", WRITERS)
def test_nothing_is_overwritten_and_a_dry_run_writes_nothing(agent: str, tmp_path: Path) -> None:
    home = home_in(tmp_path)
    settings_ = {"home": home, "directory": "/x", "id": IDS["codex"], "now": 1794736800.0}
    agent_files.write(full_conversation(), agent, dry_run=True, **settings_)  # type: ignore[arg-type]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    written = agent_files.write(full_conversation(), agent, **settings_)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="a session is there already"):
        agent_files.write(Conversation((Turn("user", (Text("other"),)),)), agent, **settings_)  # type: ignore[arg-type]
    assert written.path.read_bytes() == written.data
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [written.path]


@pytest.mark.parametrize("agent", WRITERS)
def test_an_empty_conversation_is_refused(agent: str, tmp_path: Path) -> None:
    with pytest.raises(EmptyConversationError, match="no messages"):
        agent_files.write(Conversation(), agent, home=home_in(tmp_path), directory="/")


@pytest.mark.law
@pytest.mark.parametrize("agent", WRITERS)
@given(conversation=conversations)
@settings(max_examples=60)
def test_whatever_the_conversation_a_written_session_is_sound_and_stable(
    agent: str, conversation: Conversation, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = home_in(tmp_path_factory.mktemp("home"))
    try:
        written = agent_files.write(conversation, agent, home=home, directory="/", title="t")
    except RefusedError:
        return
    session = agent_files.read(written.path)
    calls = [call.id for turn in session.conversation.turns for call in turn.calls]
    results = [result.call_id for turn in session.conversation.turns for result in turn.results]
    assert sorted(calls) == sorted(results)
    assert len({*calls}) == len(calls) == written.calls
    assert session.report == ()
    assert agent_files.check(written.path) == ()
    again = agent_files.write(session.conversation, agent, home=home, directory="/", source=agent)
    assert calls_of(agent_files.read(again.path).conversation) == calls_of(session.conversation)
    assert agent_files.check(again.path) == ()


@pytest.mark.parametrize("text", ["/etc/hosts is what?", "?why", "  /x", "<session_context> of mine"])
def test_a_prompt_that_gemini_cli_would_leave_out_is_marked(text: str, tmp_path: Path) -> None:
    conversation = Conversation((Turn("user", (Text(text),)), Turn("assistant", (Text("Yes."),))))
    written = agent_files.write(conversation, "gemini", home=home_in(tmp_path), directory="/")
    assert any("as a command" in entry.reason for entry in written.report)
    assert text.strip() in texts_of(agent_files.read(written.path).conversation)


def test_gemini_cli_finds_the_folder_that_it_has_registered(tmp_path: Path) -> None:
    registry = tmp_path / ".gemini" / "projects.json"
    registry.parent.mkdir()
    registry.write_text('{"projects": {"/home/me/proj": "proj-3", "/evil": "../../x"}}', encoding="utf-8")
    home = home_in(tmp_path)
    for directory, folder in (("/home/me/proj", "proj-3"), ("/other/My Proj", "my-proj"), ("/evil", "evil")):
        written = agent_files.write(full_conversation(), "gemini", home=home, directory=directory, dry_run=True)
        assert written.path.parent.parent == tmp_path / ".gemini" / "tmp" / folder
    taken = tmp_path / ".gemini" / "tmp" / "my-proj"
    taken.mkdir(parents=True)
    (taken / ".project_root").write_text("/another/my-proj", encoding="utf-8")
    written = agent_files.write(full_conversation(), "gemini", home=home, directory="/other/My Proj", dry_run=True)
    assert written.path.parent.parent.name == "my-proj-1"
