"""Tools of MCP servers: real servers, as processes over stdio and over streamable HTTP on loopback."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_servers.serving import PATIENCE, ask, over_http, over_stdio, until
from toolglot import InputError
from toolglot.conversation import Media, Text
from toolglot.runtime.mcp.connection import Handshake
from toolglot.runtime.mcp.servers import McpLimits, McpServer, McpServerError, McpServers
from toolglot.runtime.tools.toolbox import Output, ToolBox, ToolContext, ToolError, tool

Test = Callable[[McpServer, ToolBox], Awaitable[None]]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with over_http() as (url, _):
        yield url


@pytest.fixture(scope="module")
def address_of_json() -> Iterator[str]:
    with over_http("json") as (url, _):
        yield url


@pytest.fixture(params=["stdio", "stdio, legacy", "http", "http, json", "http, legacy"])
def connect(request: pytest.FixtureRequest, address: str, address_of_json: str) -> Callable[[Test], None]:
    """Runs a test with an open server, over each transport and with each handshake."""
    over, _, how = request.param.partition(", ")
    handshake: Handshake = "legacy" if how == "legacy" else "auto"

    async def run(server: McpServer, test: Test) -> None:
        async with asyncio.timeout(PATIENCE * 2), server as box:
            await test(server, box)

    def connected(test: Test) -> None:
        if over == "stdio":
            asyncio.run(run(over_stdio(handshake=handshake), test))
        else:
            url = address_of_json if how == "json" else address
            asyncio.run(run(McpServer.http(url, name="kinds", handshake=handshake), test))

    return connected


def test_every_kind_of_content_is_carried(connect: Callable[[Test], None]) -> None:
    async def test(server: McpServer, box: ToolBox) -> None:
        reply = await ask(box, "everything")
        assert isinstance(reply.content, tuple)
        words, image, sound, inside, document, link, broken = reply.content
        assert words == Text("words")
        assert image == Media("image", "image/png", "iVBORw0KGgo=")
        assert sound == Media("audio", "audio/wav", "iVBORw0KGgo=")
        assert inside == Text("file:///a.txt:\ninside")
        assert document == Media("document", "application/pdf", "JVBERg==", name="b.pdf")
        assert link == Text("row: db://rows/1 (The first.; text/csv)")
        assert broken == Text("[image of the type image/png, whose data could not be read]")
        assert reply.result == {"n": 1}
        assert not reply.is_error

        assert await ask(box, "echo", text="ab", times=2) == Output("abab")
        assert await ask(box, "nothing") == Output('{"rows":[1,2]}', result={"rows": [1, 2]})
        assert await ask(box, "fail", reason="no such row") == Output("no such row", is_error=True)
        assert (await ask(box, "add", a=1, b=2)).result == {"sum": 3}
        assert (await ask(box, "crash")).is_error
        assert server.instructions == "Ask it anything."

    connect(test)


def test_what_the_model_sees_and_what_the_hints_say(connect: Callable[[Test], None]) -> None:
    async def test(server: McpServer, box: ToolBox) -> None:
        echo, add, everything = box.find("echo"), box.find("add"), box.find("everything")
        assert echo is not None
        assert add is not None
        assert everything is not None
        assert echo.spec.description == "Says it again."
        assert echo.spec.parameters is not None
        assert echo.spec.parameters["required"] == ["text"]
        assert (echo.side_effects, echo.idempotent, echo.approval) == (True, False, False)
        assert (add.side_effects, add.idempotent) == (False, True)
        assert (everything.side_effects, everything.idempotent, everything.approval) == (True, True, False)

        odd = next(tool for tool in box if tool.name.startswith("a_b_c_"))
        assert server.original(odd.name) == "a.b/c"
        assert server.original("echo") == "echo"
        assert server.original("unknown") is None
        assert (await ask(box, odd.name)).content == "odd"

    connect(test)


def test_progress_is_reported_to_the_context(connect: Callable[[Test], None]) -> None:
    async def test(server: McpServer, box: ToolBox) -> None:
        reported: list[str] = []
        assert (await ask(box, "steps", ToolContext(progress=reported.append), count=2)).content == "done"
        # Answers to HTTP in plain JSON have no room for anything else.
        assert reported in (["1/2 going", "2/2 going", "2"], [])

    connect(test)


def test_a_changed_list_of_tools_is_followed_in_every_box(connect: Callable[[Test], None]) -> None:
    async def test(server: McpServer, box: ToolBox) -> None:
        mine = ToolBox([tool(lambda: "mine", name="extra")])
        server.join(mine)
        before = [held.name for held in box]
        await ask(box, "grow", name="extra")
        await until(lambda: "extra" in box)
        assert [held.name for held in box] == [*before, "extra"]
        assert (await ask(box, "extra")).content == "new"
        assert (await ask(mine, "kinds__extra")).content == "new"
        await ask(box, "shrink", name="extra")
        await until(lambda: "extra" not in box)
        assert "kinds__extra" not in mine
        assert "extra" in mine
        assert [held.name for held in box] == before

    connect(test)


def test_cancelling_one_call_notifies_the_server_and_leaves_the_others(
    connect: Callable[[Test], None], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    # Where the answer is plain JSON the server of the package does not see that no one waits for it any more.
    is_notified = request.node.callspec.params["connect"] != "http, json"

    async def test(server: McpServer, box: ToolBox) -> None:
        note = tmp_path / "cancelled"
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(ask(box, "wait", note=str(note)))
            await until(Path(f"{note}.started").exists)
            beside = tasks.create_task(ask(box, "echo", text="beside"))
            waiting.cancel()
        assert waiting.cancelled()
        assert (await beside).content == "beside"
        if is_notified:
            await until(note.exists)
        with anyio.move_on_after(0):
            await ask(box, "echo", text="never called")
        assert (await ask(box, "echo", text="after")).content == "after"
        assert server.is_open

    connect(test)


async def test_a_call_that_takes_too_long_is_an_error_and_the_server_is_notified(tmp_path: Path) -> None:
    note = tmp_path / "cancelled"
    async with over_stdio(timeout=0.5) as box:
        wait = box.find("wait")
        assert wait is not None
        assert wait.timeout == 0.5
        with pytest.raises(ToolError, match=r"'kinds' did not respond within 0\.5 s, and the call was cancelled"):
            await ask(box, "wait", note=str(note))
        await until(note.exists)


def test_calls_come_from_any_task_at_once(connect: Callable[[Test], None]) -> None:
    async def test(server: McpServer, box: ToolBox) -> None:
        replies = await asyncio.gather(*(ask(box, "echo", text=str(number)) for number in range(50)))
        assert [output.content for output in replies] == [str(number) for number in range(50)]

    connect(test)


# --- servers that end -------------------------------------------------------------------------------


async def test_a_process_that_dies_fails_its_calls_and_is_started_once_more(tmp_path: Path) -> None:
    secret = "hunter-twenty-two"  # noqa: S105
    server = over_stdio(env={"SECRET": secret})
    async with server as box:
        waiting = asyncio.create_task(ask(box, "wait", note=str(tmp_path / "n")))
        await until((tmp_path / "n.started").exists)
        with pytest.raises(ToolError, match="'kinds' failed: it ended while the call ran; whether the tool did its"):
            await ask(box, "die")
        with pytest.raises(ToolError, match="it ended while the call ran"):
            await waiting
        assert not server.is_open
        assert server.errors == "killed, key ***\n"
        assert secret not in repr(server) + repr(vars(server))
        assert (await ask(box, "echo", text="again")).content == "again"
        assert server.is_open
    assert not server.is_open
    with pytest.raises(ToolError, match="the MCP server 'kinds' is not open"):
        await ask(box, "echo", text="closed")


def test_an_http_server_that_dies_fails_its_calls_and_is_connected_to_once_more() -> None:
    async def main(server: McpServer) -> None:
        async with server as box:
            with pytest.raises(ToolError, match="'kinds' failed"):
                await ask(box, "die")
            with pytest.raises(ToolError, match=r"'kinds' failed: .*Connect"):
                await ask(box, "echo", text="nobody")
            with over_http(port=port):
                assert (await ask(box, "echo", text="again")).content == "again"

    with over_http() as (url, _):
        port = int(url.split(":")[2].removesuffix("/mcp"))
        asyncio.run(main(McpServer.http(url, name="kinds")))


def test_an_http_server_that_was_started_anew_and_forgot_the_session_is_connected_to_once_more() -> None:
    async def main(server: McpServer, stop: Callable[[], None]) -> None:
        async with server as box:
            stop()
            with over_http(port=port):
                with pytest.raises(ToolError, match="'kinds' failed"):
                    await ask(box, "echo", text="forgotten")
                assert (await ask(box, "echo", text="again")).content == "again"

    with over_http() as (url, process):
        port = int(url.split(":")[2].removesuffix("/mcp"))

        def stop() -> None:
            process.kill()
            process.wait()

        asyncio.run(main(McpServer.http(url, name="kinds", handshake="legacy"), stop))


async def test_nothing_is_left_of_a_process_when_it_is_closed(tmp_path: Path) -> None:
    child = "import os, subprocess, sys; p = subprocess.Popen(['sleep', '60']); print(p.pid, file=sys.stderr); "
    stubborn = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    script = tmp_path / "stubborn.py"
    source = (Path(__file__).parents[2] / "mcp_servers" / "hostile.py").read_text("utf-8")
    script.write_text(child + stubborn + source.replace("\nmain()\n", "\nmain()\ntime.sleep(60)\n"), "utf-8")
    # The head docstring of the source comes after code then, and a future import may not.
    script.write_text(script.read_text("utf-8").replace("from __future__ import annotations\n", ""), "utf-8")
    server = McpServer.stdio(sys.executable, [str(script), "ask"], limits=McpLimits(stop=0.2))
    async with server as box:
        assert (await ask(box, "ask")).content == "ok"
        await until(lambda: server.errors.strip().isdigit())
        left = int(server.errors)
    await until(lambda: _is_gone(left))


def _is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and state.read_text().split()[2] == "Z"  # no one has read how it ended


@pytest.mark.parametrize("is_started", [False, True])
async def test_a_server_is_abandoned_when_its_opener_is_cancelled(is_started: bool) -> None:
    server = McpServer.stdio(sys.executable, ["-c", "import time; time.sleep(60)"], limits=McpLimits(stop=0.2))
    opening = asyncio.create_task(McpServers([server]).open())
    await until(lambda: server._connection is not None)
    connection = server._connection
    assert connection is not None
    await until(lambda: not is_started or connection._task is not None)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert not server.is_open


async def test_calls_that_run_when_the_server_is_closed_end_with_an_error(tmp_path: Path) -> None:
    server = over_stdio()
    box = await server.open()
    assert await server.open() is box
    waiting = asyncio.create_task(ask(box, "wait", note=str(tmp_path / "n")))
    await until((tmp_path / "n.started").exists)
    await server.close()
    with pytest.raises(ToolError, match="it was closed while the call ran"):
        await waiting
    assert server._connection is not None
    with pytest.raises(McpServerError, match="it was closed"):
        await server._connection.call("echo", {}, ToolContext().progress)
    async with server:
        assert (await ask(box, "echo", text="open")).content == "open"
    await McpServer.stdio("never-opened").close()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(McpServerError, match="the package `mcp` is not installed"):
        asyncio.run(over_stdio().open())


# --- several servers --------------------------------------------------------------------------------


async def test_servers_with_the_same_names_are_distinguished() -> None:
    both = McpServers([over_stdio(name="one"), over_stdio(name="two")])
    async with both as box:
        names = [held.name for held in box]
        assert "echo" not in names
        assert {"one__echo", "two__echo"} <= {*names}
        assert len(names) == len(both["one"].tools) + len(both["two"].tools)
        assert (await ask(box, "two__echo", text="x")).content == "x"
        # A change gives no tool another name.
        await ask(box, "one__grow", name="later")
        await until(lambda: "later" in box)
        await ask(box, "two__grow", name="later")
        await until(lambda: "two__later" in box)
        assert [held.name for held in box][: len(names)] == names
    assert len(both) == 2
    assert [server.is_open for server in both] == [False, False]
    assert all(len(name) <= 64 for name in names)


async def test_names_may_always_begin_with_the_server_or_never() -> None:
    async with over_stdio(name="a server of a very long name " * 3, names="always") as box:
        assert all(len(held.name) <= 64 and "a_server_of_a_very_long_name_" in held.name for held in box)
        assert any("echo" in held.name for held in box), [held.name for held in box]
        assert len({held.name for held in box}) == len(box)
    server = over_stdio(names="never")
    async with server:
        mine = ToolBox([tool(lambda: "mine", name="echo")])
        server.join(mine)
        assert mine.find("echo") is not server.tools.find("echo")
        assert "the tool 'echo' is left out: its name is taken" in server.problems


def test_one_server_that_does_not_open_closes_all_or_is_reported() -> None:
    async def main() -> None:
        def pair() -> list[McpServer]:
            return [over_stdio(), McpServer.stdio("no-such-program-anywhere", name="missing")]

        needed = McpServers(pair())
        with pytest.raises(
            McpServerError, match="'missing' failed: 'no-such-program-anywhere' cannot be started: No s"
        ):
            await needed.open()
        assert [server.is_open for server in needed] == [False, False]
        optional = McpServers(pair(), all_needed=False)
        async with optional as box:
            assert "echo" in box
            assert [*optional.failures] == ["missing"]

    asyncio.run(main())
    with pytest.raises(InputError, match="two servers have the same name"):
        McpServers([over_stdio(), over_stdio()])


async def test_only_safe_variables_and_the_configured_ones_reach_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_PRIVATE_KEY", "x")
    async with over_stdio(env={"GIVEN": "1"}) as box:
        seen = str((await ask(box, "environment")).content).split()
    assert "GIVEN" in seen
    assert "PATH" in seen
    assert "MY_PRIVATE_KEY" not in seen


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: McpServer.http("ftp://example.com"), "begins with http"),
        (lambda: McpServer.http("http://"), "begins with http"),
        (lambda: McpServer.stdio("x", timeout=0), "more than 0"),
        (lambda: McpServer("", lambda _: None), "expected a name"),  # type: ignore[arg-type, return-value]
        (lambda: McpLimits(max_tools=0), "more than 0"),
    ],
)
def test_a_server_that_makes_no_sense_is_refused_at_once(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


async def test_hints_of_a_server_that_is_not_trusted_mean_nothing_and_approval_can_be_required() -> None:
    async with over_stdio(trust_hints=False, approval=True) as box:
        add = box.find("add")
        assert add is not None
        assert (add.side_effects, add.idempotent, add.approval) == (True, False, True)
