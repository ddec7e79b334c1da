"""What can be done with sessions without talking to a model: list, search, export, import, fork, rewind, remove."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Coroutine
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.conversations.strategies import transcripts
from support.store.faulty_store import HookedStore, nothing
from toolglot import History, InputError, Issuer, Text, ToolCall, ToolResult, Turn, Usage, VersionError, dump
from toolglot.limits import Limits
from toolglot.runtime.log.documents import export_session, import_session
from toolglot.runtime.log.entries import row_key
from toolglot.runtime.log.info import title_of
from toolglot.runtime.log.search import search_sessions, snippet
from toolglot.runtime.log.session_log import LogLimits, SessionLog, SessionMissingError, SessionTakenError
from toolglot.runtime.log.sessions import (
    Page,
    fork_session,
    list_sessions,
    read_session,
    remove_session,
    rewind_session,
    shrink_session,
)
from toolglot.store import SqliteStore


def user(text: str) -> Turn:
    return Turn("user", (Text(text),))


def calling(name: str, arguments: dict[str, Any]) -> Turn:
    return Turn("assistant", (ToolCall("call_0", name, arguments),), issuer=Issuer("openai"))


class Clock:
    """Every look is a second later."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


def on_a_store(test: Callable[[SqliteStore], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        store = SqliteStore(":memory:")
        await test(store)
        await store.close()

    asyncio.run(whole())


async def talk(store: SqliteStore, id: str, *turns: Turn, **settings: Any) -> None:
    async with await SessionLog.create(store, id=id, **settings) as log:
        for turn in turns:
            await log.add_turn(turn)


async def turns_of(store: SqliteStore, id: str, owner: str = "") -> tuple[Turn, ...]:
    _, standing = await read_session(store, id, owner=owner)
    return tuple(standing.turns)


async def test_sessions_are_listed_the_newest_first_and_page_by_page() -> None:
    clock = Clock()
    store = SqliteStore(":memory:", clock=clock)
    for id in ("a", "b", "c", "d", "e"):
        await talk(store, id, user(f"this is {id}"), clock=clock, model="openai/gpt-5")
    async with await SessionLog.open(store, "b", clock=clock) as log:
        await log.add_turn(user("once more"))
    seen, after = [], ""
    while True:
        page = await list_sessions(store, after=after, limit=2)
        seen += [info.id for info in page.sessions]
        assert len(page.sessions) <= 2
        if not (after := page.next):
            break
    assert seen == ["b", "e", "d", "c", "a"]
    first = page.sessions[0]
    assert (first.title, first.model, first.turns) == ("this is a", "openai/gpt-5", 1)
    assert first.created < first.updated
    await store.close()


@pytest.mark.parametrize("options", [{"limit": 0}, {"limit": True}, {"after": "nonsense"}, {"after": 3}])
def test_what_is_no_page_is_refused(options: dict[str, Any]) -> None:
    async def test(store: SqliteStore) -> None:
        with pytest.raises(InputError):
            await list_sessions(store, **options)

    on_a_store(test)


def test_an_owner_lists_finds_and_removes_his_own_sessions_only() -> None:
    async def test(store: SqliteStore) -> None:
        await talk(store, "hers", user("a secret"), owner="ann")
        await talk(store, "his", user("a secret"), owner="bob")
        assert [info.id for info in (await list_sessions(store, owner="ann")).sessions] == ["hers"]
        assert (await list_sessions(store)).sessions == ()
        assert [hit.session.id for hit in await search_sessions(store, "SECRET", owner="bob")] == ["his"]
        for act in (fork_session, export_session, remove_session, shrink_session):
            with pytest.raises(SessionMissingError):
                await act(store, "hers", owner="bob")
        with pytest.raises(SessionMissingError):
            await rewind_session(store, "hers", None, owner="bob")
        fork = await fork_session(store, "hers", owner="ann")
        assert len((await list_sessions(store, owner="ann")).sessions) == 2
        assert await turns_of(store, fork.id, "ann") == await turns_of(store, "hers", "ann")
        copy = await import_session(store, await export_session(store, "hers", owner="ann"), owner="bob")
        assert copy.id == "hers"

    on_a_store(test)


def test_a_text_is_found_in_titles_words_calls_and_results_in_any_case() -> None:
    async def test(store: SqliteStore) -> None:
        await talk(store, "title", user("nothing"), title="The Grüße project")
        await talk(store, "words", user("x " * 200 + "say GRÜSSE, then Grüße there" + " y" * 200))
        await talk(store, "call", user("hi"), calling("send", {"text": "grüße"}))
        async with await SessionLog.create(store, id="result") as log:
            await log.add_turn(user("hi"))
            turn = await log.add_turn(calling("read", {}))
            await log.publish([ToolResult(turn.calls[0].id, "… viele Grüße …")])
        await talk(store, "none", user("goodbye"))
        seen: list[tuple[int, int]] = []
        found = {
            hit.session.id: hit
            for hit in await search_sessions(store, "grÜße", progress=lambda done, of: seen.append((done, of)))
        }
        assert found.keys() == {"title", "words", "call", "result"}
        assert seen == [(n, 5) for n in range(1, 6)]
        assert found["title"].turn_key == ""
        words = found["words"]
        assert (words.role, words.snippet[0], words.snippet[-1]) == ("user", "…", "…")
        assert "say GRÜSSE, then Grüße there" in words.snippet
        assert words.turn_key == (await turns_of(store, "words"))[0].key
        assert found["call"].snippet == 'send {"text":"grüße"}'
        assert found["result"].role == "tool"
        assert len(await search_sessions(store, "grüße", limit=2)) == 2

    on_a_store(test)


@pytest.mark.parametrize("text", ["", "  ", "x" * 201, 7])
def test_what_cannot_be_searched_for_is_refused(text: str) -> None:
    async def test(store: SqliteStore) -> None:
        with pytest.raises(InputError, match="1 to 200"):
            await search_sessions(store, text)
        with pytest.raises(InputError, match="from 1"):
            await search_sessions(store, "x", limit=0)

    on_a_store(test)


def test_what_looks_like_a_pattern_is_searched_for_as_it_is() -> None:
    async def test(store: SqliteStore) -> None:
        await talk(store, "dots", user("a.*b"))
        await talk(store, "letters", user("axxb"))
        assert [hit.session.id for hit in await search_sessions(store, "a.*b")] == ["dots"]

    on_a_store(test)


@given(st.text(max_size=300), st.integers(0, 300), st.integers(0, 50))
def test_a_snippet_is_one_line_of_bounded_length(text: str, start: int, length: int) -> None:
    shown = snippet(text, min(start, len(text)), min(start + length, len(text)))
    assert len(shown) <= 60 + 50 + 60 + 2
    assert len(shown.splitlines()) <= 1


@pytest.mark.law
@given(transcripts)
def test_an_exported_session_is_imported_equal(several: list[Turn]) -> None:
    async def test(store: SqliteStore) -> None:
        async with await SessionLog.create(store, id="original", model="openai/gpt-5") as log:
            await log.change(lambda history: history.extend(several, provider="openai"))
            for found in log.history.ledger.pending[:2]:
                await log.record_start(found.call, {"other": 1})
        data = await export_session(store, "original")
        other = SqliteStore(":memory:")
        info = await import_session(other, data)
        assert info.id == "original"
        assert json.loads(await export_session(other, "original"))["conversation"] == json.loads(data)["conversation"]
        _, here = await read_session(store, "original")
        _, there = await read_session(other, "original")
        assert (there.turns, there.runs, there.report) == (here.turns, here.runs, here.report)
        assert list(there.history().ledger) == list(log.history.ledger)
        again = await import_session(other, data)
        assert again.id not in ("", "original")
        assert await turns_of(other, again.id) == tuple(here.turns)
        await other.close()

    on_a_store(test)


def test_a_conversation_that_was_dumped_is_imported_too() -> None:
    async def test(store: SqliteStore) -> None:
        history = History(provider="openai")
        history.append(user("hello"))
        info = await import_session(store, dump(history.conversation))
        assert (info.title, info.turns) == ("hello", 1)
        assert await turns_of(store, info.id) == history.turns

    on_a_store(test)


SOUND = {"format": "toolglot.session", "version": 1, "info": {"id": "x"}, "conversation": {}}


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ([], "$"),
        ({"format": "other"}, "$"),
        ({**SOUND, "more": 1}, "$"),
        ({**SOUND, "version": "1"}, "$.version"),
        ({**SOUND, "info": {}}, "$.info"),
        ({**SOUND, "info": {"id": "../x"}}, "$.id"),
        ({**SOUND, "conversation": {"turns": [{"role": "nobody"}]}}, "$.conversation.turns[0].role"),
        ({**SOUND, "runs": [{"entry": "switched", "model": "x"}]}, "$.runs[0].entry"),
    ],
)
def test_a_document_that_is_not_sound_is_refused_where_it_is_wrong(document: object, path: str) -> None:
    async def test(store: SqliteStore) -> None:
        with pytest.raises(InputError) as caught:
            await import_session(store, json.dumps(document))
        assert caught.value.path == path
        assert (await list_sessions(store)).sessions == ()

    on_a_store(test)


def test_a_document_of_a_newer_version_is_refused_as_such() -> None:
    async def test(store: SqliteStore) -> None:
        with pytest.raises(VersionError, match="version 3"):
            await import_session(store, json.dumps({**SOUND, "version": 3}))

    on_a_store(test)


def test_a_session_that_is_too_large_for_a_document_is_refused() -> None:
    async def test(store: SqliteStore) -> None:
        await talk(store, "large", user("x" * 2000))
        with pytest.raises(InputError, match="max_bytes"):
            await export_session(store, "large", limits=Limits(max_bytes=1000))

    on_a_store(test)


def test_false_interactions_in_a_document_are_refused() -> None:
    async def test(store: SqliteStore) -> None:
        removed = {"call": {"block": "tool_call", "id": "x", "name": "y"}, "turn_key": "k", "index": 0}
        turn = {"role": "user", "metadata": {"removed": [removed]}}
        with pytest.raises(InputError, match="canonical id"):
            await import_session(store, json.dumps({**SOUND, "conversation": {"turns": [turn]}}))

    on_a_store(test)


def test_a_fork_at_a_turn_goes_its_own_way() -> None:
    async def test(store: SqliteStore) -> None:
        async with await SessionLog.create(store, id="trunk", model="openai/gpt-5") as log:
            for text in ("one", "two", "three"):
                await log.add_turn(user(text))
            await log.change(lambda history: history.append(user("four")), usage=Usage(input_tokens=9), cost=Decimal(1))
            fork = await fork_session(store, "trunk", at=log.history.turns[1].key)  # while another holds it
        assert (fork.forked_from, fork.turns, fork.title, fork.model) == ("trunk", 2, "one", "openai/gpt-5")
        assert (fork.tokens, fork.cost) == (0, None)
        async with await SessionLog.open(store, fork.id) as branch:
            await branch.add_turn(user("elsewhere"))
            assert [turn.text for turn in branch.history.turns] == ["one", "two", "elsewhere"]
        assert [turn.text for turn in await turns_of(store, "trunk")] == ["one", "two", "three", "four"]
        with pytest.raises(InputError, match="no turn has the key"):
            await fork_session(store, "trunk", at="nowhere")

    on_a_store(test)


def test_a_fork_does_not_run_again_what_the_first_had_started() -> None:
    async def test(store: SqliteStore) -> None:
        async with await SessionLog.create(store, id="trunk") as log:
            turn = await log.add_turn(calling("send", {}))
            await log.record_start(turn.calls[0], {})
            fork = await fork_session(store, "trunk")
            async with await SessionLog.open(store, fork.id) as branch:
                assert "outcome is unknown" in branch.history.turns[-1].results[0].text
            assert len(log.history.ledger.pending) == 1

    on_a_store(test)


def test_a_session_is_rewound_and_removed_only_by_its_holder() -> None:
    async def test(store: SqliteStore) -> None:
        async with await SessionLog.create(store, id="held") as log:
            one = await log.add_turn(user("one"))
            await log.add_turn(user("two"))
            for work in (rewind_session(store, "held", None), remove_session(store, "held")):
                with pytest.raises(SessionTakenError):
                    await work
        info = await rewind_session(store, "held", one.key)
        assert info.turns == 1
        assert await turns_of(store, "held") == (one,)
        info = await rewind_session(store, "held", None)
        assert info.turns == 0

    on_a_store(test)


def test_a_removed_session_leaves_nothing_and_its_id_is_free() -> None:
    async def test(store: SqliteStore) -> None:
        await talk(store, "gone", *(user(f"word-{n}") for n in range(600)))
        await talk(store, "stays", user("here"))
        await remove_session(store, "gone")
        assert [info.id for info in (await list_sessions(store)).sessions] == ["stays"]
        (fence,) = await store.scan("turns", client="gone", limit=10)
        assert (fence.key, b"word" in (fence.value or b"")) == (row_key(601), False)
        with pytest.raises(SessionMissingError):
            await remove_session(store, "gone")
        await talk(store, "gone", user("again"))
        assert len(await turns_of(store, "gone")) == 1

    on_a_store(test)


def test_a_holder_of_a_removed_session_is_refused() -> None:
    async def test(store: SqliteStore) -> None:
        log = await SessionLog.create(store, id="gone")
        await log.add_turn(user("one"))
        await log._claim.release()
        await remove_session(store, "gone")
        with pytest.raises(SessionTakenError):
            await log.add_turn(user("late"))
        await log.close()
        assert (await list_sessions(store)).sessions == ()

    on_a_store(test)


def test_what_is_written_while_a_session_is_removed_goes_with_it() -> None:
    async def test(inner: SqliteStore) -> None:
        store = HookedStore(inner)
        log = await SessionLog.create(store, id="gone")
        await log._claim.release()

        async def just_in_time(moment: str) -> None:
            if moment == "before keep turns":
                store.hook = nothing
                await log.add_turn(user("just in time"))

        store.hook = just_in_time
        await remove_session(store, "gone")
        assert len(log.history) == 1
        (fence,) = await store.scan("turns", client="gone", limit=10)
        assert fence.key == row_key(2)
        with pytest.raises(SessionTakenError):
            await log.add_turn(user("late"))
        await log.close()

    on_a_store(test)


def test_a_session_whose_row_is_damaged_can_be_removed() -> None:
    async def test(store: SqliteStore) -> None:
        await talk(store, "s", user("one"))
        await store.keep("sessions", "", {"s": b"\xff"}, until=math.inf)
        await remove_session(store, "s")
        assert await list_sessions(store) == Page(())

    on_a_store(test)


@pytest.mark.parametrize("is_done", [True, False])
def test_a_session_that_is_shrunk_while_it_is_read_is_read_anew(is_done: bool) -> None:
    """The list of sessions is read first, then the log; in between, the log may have begun anew."""

    async def test(store: SqliteStore) -> None:
        await talk(store, "s", *(user(f"{n}") for n in range(5)))
        old = await store.find("sessions", "", ["s"])
        await rewind_session(store, "s", (await turns_of(store, "s"))[1].key)
        if is_done:
            assert await shrink_session(store, "s") == 6  # and one that stays as a fence
        else:
            await store.remove("turns", "s", [row_key(n) for n in range(3)])
        finds = 0

        class Stale(SqliteStore):
            async def find(self, kind: str, client: str, keys: Any) -> dict[str, bytes]:
                nonlocal finds
                finds += 1
                return old if finds == 1 else await store.find(kind, client, keys)

            async def scan(self, *args: Any, **more: Any) -> Any:
                return await store.scan(*args, **more)

        stale = Stale(":memory:")
        _, standing = await read_session(stale, "s", limits=LogLimits())
        assert [turn.text for turn in standing.turns] == ["0", "1"]
        assert finds == (2 if is_done else 3)
        await stale.close()

    on_a_store(test)


HOSTILE = "pay\x1b]0;evil\x07 \x1b[31mred\x9b2J \u202eslive\u2066 a\x00b\x7f\u200fc\r\nnext"
SHOWN = "pay]0;evil [31mred2J slive abc next"


def test_titles_and_snippets_hold_nothing_that_a_terminal_obeys() -> None:
    async def test(store: SqliteStore) -> None:
        await talk(store, "said", user(HOSTILE))
        await talk(store, "given", user("hello"), title=HOSTILE)
        async with await SessionLog.create(store, id="renamed") as log:
            await log.rename(HOSTILE)
        assert {info.title for info in (await list_sessions(store)).sessions} == {SHOWN}
        await talk(store, "later", user("hi"), calling("send", {"text": "x"}), user(f"needle {HOSTILE}"))
        (hit,) = await search_sessions(store, "needle")
        assert hit.snippet == f"needle {SHOWN}"

    on_a_store(test)


def test_a_title_keeps_what_joins_letters() -> None:
    assert title_of("\U0001f468\u200d\U0001f469 می\u200cخواهم") == "\U0001f468\u200d\U0001f469 می\u200cخواهم"
