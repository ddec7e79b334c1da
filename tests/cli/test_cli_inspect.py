"""`toolglot inspect`: files in the inspector, served on loopback or written into one page."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from support.inspector.captured_requests import captured, talk
from support.waiting import HANG_SECONDS
from toolglot import agent_files
from toolglot.agent_files import AgentHome
from toolglot.cli.files.captured_files import CaptureReader
from toolglot.cli.main import main
from toolglot.cli.targets import Target
from toolglot.conversation import Conversation, Text, ToolCall, ToolResult, Turn, canonical_json
from toolglot.errors import InputError
from toolglot.gateway.inspector.file_inspector import FileInspector, grouped

SECRET: Final = "sk-ant-api03-abcdefgh12345678"  # noqa: S105 - made up
REQUEST: Final = {
    "model": "claude-opus-5",
    "max_tokens": 50,
    "messages": [{"role": "user", "content": f"hello </script><script>alert(1)</script> {SECRET}"}],
}


def write(folder: Path, name: str, *values: Any) -> str:
    """A file of JSON, one value on each line."""
    file = folder / name
    file.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return str(file)


def answer(captures: list[dict[str, Any]], path: str, method: str = "GET", **headers: str) -> httpx.Response:
    """What the page gets from an inspector of files."""

    async def run() -> httpx.Response:
        transport = httpx.ASGITransport(app=FileInspector(grouped(captures)))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:9") as client:
            return await client.request(method, path, headers=headers)

    return asyncio.run(run())


def data_of(page: str) -> dict[str, Any]:
    """The data in an exported page."""
    found = re.search(r'<script type="application/json" id="toolglot-data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


# --- reading ----------------------------------------------------------------------------------------


def test_a_request_is_shown_as_its_provider_is_sent_it(tmp_path: Path) -> None:
    (found,) = CaptureReader().read(write(tmp_path, "request.json", REQUEST))
    assert (found["id"], found["protocol"], found["target"]) == ("request.json:1", "anthropic", "anthropic")
    assert found["rendered"] == found["request"]
    assert SECRET not in json.dumps(found)


def test_a_request_is_shown_for_another_target(tmp_path: Path) -> None:
    name = write(tmp_path, "requests.jsonl", REQUEST, {**REQUEST, "top_k": 3})
    found = CaptureReader(target=Target("mistral", "mistral-large-latest")).read(name)
    assert [each["id"] for each in found] == ["requests.jsonl:1", "requests.jsonl:2"]
    assert json.loads(found[1]["rendered"])["model"] == "mistral-large-latest"
    assert found[1]["changes"]["loss"] == 1


def test_a_request_that_was_only_read_is_shown_as_not_sent(tmp_path: Path) -> None:
    file = write(tmp_path, "request.json", REQUEST)
    for reader in (CaptureReader(), CaptureReader(target=Target("mistral", "mistral-large-latest"))):
        assert [each["row"]["state"] for each in grouped(reader.read(file))] == ["unsent"]


def test_captures_are_shown_as_they_are(tmp_path: Path) -> None:
    captures = [captured(talk(1), id="tg_1"), captured(talk(2), id="tg_2")]
    found = grouped(CaptureReader().read(write(tmp_path, "captures.jsonl", *captures)))
    assert [each["row"]["parent"] for each in found] == [None, "tg_1"]
    assert [each["row"]["state"] for each in found] == ["done", "done"]
    assert found[0]["rendered"] == captures[0]["rendered"]


def test_a_session_is_shown_as_the_request_that_continues_it(tmp_path: Path) -> None:
    conversation = Conversation((Turn("user", (Text("hello"),)), Turn("assistant", (Text("hi"),))), model="gpt-4.1")
    file = tmp_path / "session.json"
    file.write_bytes(canonical_json.dump(conversation))
    (found,) = CaptureReader().read(str(file))
    roles = [message["role"] for message in json.loads(found["request"])["messages"]]
    assert roles == ["user", "assistant"]


def written_session(folder: Path, agent: str) -> Path:
    """A session of a coding agent, in a home folder of its own."""
    call = ToolCall("functions.ls:0", "ls", {})
    turns = (
        Turn("user", (Text("What is here?"),)),
        Turn("assistant", (call,)),
        Turn("user", (ToolResult(call.id, f"a.txt {SECRET}"),)),
        Turn("assistant", (Text("There is a.txt."),)),
    )
    home = AgentHome(folder=folder, environ={})
    return agent_files.write(Conversation(turns), agent, home=home, directory="/srv/project").path


@pytest.mark.parametrize("agent", agent_files.writers())
def test_a_session_of_a_coding_agent_is_shown_as_the_request_that_it_would_send(tmp_path: Path, agent: str) -> None:
    file = written_session(tmp_path, agent)
    (found,) = CaptureReader(target=Target("mistral", "mistral-large-latest")).read(str(file))
    (row,) = [each["row"] for each in grouped([found])]
    assert (row["title"], row["latest"], row["turns"]) == ("What is here?", "There is a.txt.", 4)
    assert (row["target"], row["id"], row["state"]) == ("mistral", found["session"], "unsent")
    assert "a.txt" in found["rendered"]
    assert SECRET not in json.dumps(found)


def test_a_session_is_named_by_its_id_or_as_the_latest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    id = json.loads(written_session(tmp_path, "claude").read_text("utf-8").splitlines()[0])["sessionId"]
    for name in ("latest", id, id[:8]):
        assert main(["inspect", name, "--export", str(tmp_path / "page.html"), "--force"]) == 0
        (row,) = data_of((tmp_path / "page.html").read_text("utf-8"))["rows"]
        assert row["id"] == id
    assert main(["inspect", "zzz", "--export", str(tmp_path / "page.html"), "--force"]) == 2
    assert "there is no such file either" in capsys.readouterr().err


def test_an_error_names_its_line_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, "a.json", {"what": "is this"})
    assert main(["inspect", file]) == 2
    assert capsys.readouterr().err.startswith(f"error: {file}:1: not a request of any known protocol")


def test_what_cannot_be_sent_is_shown_with_its_error(tmp_path: Path) -> None:
    name = write(tmp_path, "request.json", {**REQUEST, "messages": []})
    (found,) = CaptureReader(target=Target("mistral")).read(name)
    assert found["error"]
    assert grouped([found])[0]["row"]["state"] == "failed"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.jsonl", '{"model": "gpt-4.1", "messages": []}\n{"model": \n', r"a\.jsonl:2:"),
        ("a.jsonl", '\n{"model": "gpt-4.1", "messages": []}\n[1]\n', r"a\.jsonl:3: expected a JSON object"),
        ("a.json", '{\n"model": "x",\n oops\n}', r"a\.json:3:"),
        ("a.json", "", "file is empty"),
        ("a.json", '{"what": "is this"}', r"a\.json:1: not a request of any known protocol"),
        ("a.json", '{"toolglot_capture": 7}', r"a\.json:1: a capture of version 7"),
        ("a.json", "[" * 100_000, r"a\.json:1"),
    ],
)
def test_an_error_names_the_file_and_the_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        CaptureReader().read(str(tmp_path / name))


def test_an_error_is_an_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(tmp_path / "none.json")]) == 2
    assert "none.json: no such file" in capsys.readouterr().err


# --- serving ----------------------------------------------------------------------------------------


def test_the_page_and_its_paths_are_those_of_the_gateway(tmp_path: Path) -> None:
    captures = [captured(talk(1), id="tg_1"), captured(talk(2), id="tg_2")]
    assert answer(captures, "/").text == answer(captures, "/inspector").text
    assert answer(captures, "/inspector/api/info").json()["mode"] == "file"
    rows = answer(captures, "/inspector/api/requests?limit=1").json()
    assert ([row["id"] for row in rows["rows"]], rows["more"]) == (["tg_2"], True)
    rest = answer(captures, f"/inspector/api/requests?before={rows['next']}").json()
    assert ([row["id"] for row in rest["rows"]], rest["more"]) == (["tg_1"], False)
    conversation = rows["rows"][0]["conversation"]
    for path in ("", "/diff", "/timeline", "/targets", "/targets/mistral", "/code?as=curl", "/body/request", "/export"):
        assert answer(captures, f"/inspector/api/requests/tg_2{path}").status_code == 200, path
    exported = answer(captures, f"/inspector/api/conversations/{conversation}/export?form=jsonl")
    assert [json.loads(line)["id"] for line in exported.text.splitlines()] == ["tg_1", "tg_2"]
    assert "row" not in json.loads(exported.text.splitlines()[0])


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"origin": "http://127.0.0.1:9"}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://127.0.0.1:10"}, 403),
        ({"host": "evil.example"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
    ],
)
def test_other_pages_are_refused(headers: dict[str, str], status: int) -> None:
    assert answer([captured()], "/inspector/api/requests", **headers).status_code == status


def test_files_are_only_shown() -> None:
    for method, path in (
        ("DELETE", "/requests"),
        ("POST", "/requests/tg_1/replay"),
        ("GET", "/events"),
        ("GET", "/fleet"),
    ):
        assert answer([captured()], f"/inspector/api{path}", method).status_code in (404, 405)
    assert answer([captured()], "/v1/messages", "POST").status_code == 404


def test_it_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    name = write(tmp_path, "request.json", REQUEST)
    words = [sys.executable, "-m", "toolglot", "inspect", name]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as popen:
        assert popen.stdout is not None
        address = popen.stdout.readline().decode().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/inspector", address)
        page = httpx.get(address)
        rows = httpx.get(f"{address}/api/requests").json()["rows"]
        popen.send_signal(signal.SIGINT)
        assert popen.wait(HANG_SECONDS) == 0
    assert page.headers["content-security-policy"]
    assert [row["id"] for row in rows] == ["request.json:1"]


# --- exporting --------------------------------------------------------------------------------------


def test_a_page_is_written_that_holds_the_requests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, out = write(tmp_path, "request.json", REQUEST), str(tmp_path / "page.html")
    assert main(["inspect", name, "--to", "mistral", "--export", out]) == 0
    assert "1 request in" in capsys.readouterr().err
    page = Path(out).read_text(encoding="utf-8")
    assert SECRET not in page
    assert "<script>alert" not in page
    data = data_of(page)
    (detail,) = data["details"].values()
    assert detail["canonical"]["turns"][0]["blocks"][0]["text"].startswith("hello </script>")
    assert (data["info"]["mode"], len(data["rows"])) == ("export", 1)
    assert {name for name in ("details", "diffs", "timelines", "targets", "codes") if data[name]} == {
        *("details", "diffs", "timelines", "targets", "codes")
    }
    assert main(["inspect", name, "--export", out]) == 2
    assert "already exists" in capsys.readouterr().err
    assert main(["inspect", name, "--export", out, "--force", "--quiet"]) == 0


def test_an_exported_page_reads_again_as_captures(tmp_path: Path) -> None:
    captures = [captured(talk(1), id="tg_1")]
    lines = answer(captures, "/inspector/api/requests/tg_1/export?form=jsonl").text
    (tmp_path / "again.jsonl").write_text(lines, encoding="utf-8")
    assert CaptureReader().read(str(tmp_path / "again.jsonl")) == captures


def test_two_files_with_the_same_requests_are_both_shown(tmp_path: Path) -> None:
    first, second = (write(tmp_path, name, captured(talk(1))) for name in ("a.jsonl", "b.jsonl"))
    out = str(tmp_path / "page.html")
    assert main(["inspect", first, second, "--export", out, "--quiet"]) == 0
    assert len(data_of(Path(out).read_text(encoding="utf-8"))["rows"]) == 2
