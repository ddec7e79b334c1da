"""Files, batches, images and audio of several client keys at one provider, with OpenAI's own SDK."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.gateway.http_client import ask
from support.gateway.served_gateway import Served, gateway
from support.waiting import wait_until
from toolglot.gateway.accounting.client_keys import new_key, save
from toolglot.gateway.accounting.usage import UsageRow, read_usage
from toolglot.gateway.endpoints.passed_replies import counted_tokens
from toolglot.gateway.endpoints.passed_requests import models_of_requests
from toolglot.gateway.http.form_data import read_form
from toolglot.gateway.http.requests import GatewayRefusal
from toolglot.protocols.base import get
from toolglot.store import SqliteStore

LINE = {"custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "gpt-4.1", "messages": []}}
LINES = (json.dumps(LINE) + "\n").encode()
USAGE = {"input_tokens": 1000, "output_tokens": 200, "total_tokens": 1200}


class Provider(ThreadingHTTPServer):
    """An account of a provider: it knows its objects, and not whose they are."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, dict[str, Any]] = {}
        self.lock = threading.Lock()
        self.count = 0

    def create(self, kind: str, **fields: Any) -> dict[str, Any]:
        with self.lock:
            self.count += 1
            id = f"{kind}-{self.count}"
            self.objects[id] = {"id": id, "object": kind, "created_at": 1, **fields}
            return self.objects[id]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: Provider

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        path, _, query = self.path.removeprefix("/v1/").partition("?")
        status, reply = self._reply(path, query, body)
        data = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("content-type", "application/octet-stream" if isinstance(reply, bytes) else "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _reply(self, path: str, query: str, body: bytes) -> tuple[int, Any]:
        provider = self.server
        if path == "images/generations":
            return 200, {"created": 1, "data": [{"b64_json": "A" * 100_000}], "usage": USAGE}
        if path == "audio/transcriptions":
            return 200, {"text": "hello", "usage": {"type": "duration", "seconds": 12}}
        if path == "audio/speech":
            return 200, b"sound"
        if path == "files" and self.command == "POST":
            return 200, provider.create("file", filename="f", bytes=len(body), purpose="batch", status="processed")
        if path == "batches" and self.command == "POST":
            return 200, provider.create(
                "batch",
                input_file_id=json.loads(body)["input_file_id"],
                endpoint="/v1/chat/completions",
                completion_window="24h",
                status="validating",
            )
        if path in ("files", "batches"):
            after = re.search(r"after=([^&]*)", query)
            found = [each for id, each in sorted(provider.objects.items()) if id.startswith(path[:4])]
            if after is not None:
                ids = [each["id"] for each in found]
                found = found[ids.index(after[1]) + 1 :]
            limit = int(found_limit[1]) if (found_limit := re.search(r"limit=(\d+)", query)) else 10_000
            page = found[:limit]
            ends = {"first_id": page[0]["id"], "last_id": page[-1]["id"]} if page else {}
            return 200, {"object": "list", "data": page, **ends, "has_more": len(found) > limit}
        known = provider.objects.get(path.split("/")[1])
        if known is None:
            return 404, {"error": {"message": "none", "type": "invalid_request_error", "param": None, "code": None}}
        if self.command == "DELETE":
            del provider.objects[known["id"]]
            return 200, {"id": known["id"], "object": "file", "deleted": True}
        return 200, b"content" if path.endswith("/content") else known

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def provider() -> Iterator[Provider]:
    server = Provider()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Shared:
    """A gateway with keys in its store."""

    def __init__(self, served: Served, file: Path, secrets: dict[str, str]) -> None:
        self.served, self.file, self.secrets = served, file, secrets

    def sdk(self, name: str) -> openai.OpenAI:
        return openai.OpenAI(base_url=f"{self.served.url}/v1", api_key=self.secrets[name], max_retries=0)

    def used(self, requests: int) -> dict[str, UsageRow]:
        rows: list[UsageRow] = []

        def is_written() -> bool:
            nonlocal rows
            rows = stored(self.file, read_usage)
            return sum(row.amounts.requests for row in rows) >= requests

        wait_until(is_written)
        return {row.model: row for row in rows}


def stored(file: Path, act: Any) -> Any:
    async def run() -> Any:
        store = SqliteStore(file)
        try:
            return await act(store)
        finally:
            await store.close()

    return asyncio.run(run())


@contextmanager
def shared(tmp_path: Path, provider: Provider, **keys: dict[str, Any]) -> Iterator[Shared]:
    file, secrets = tmp_path / "store.db", {}
    for name, limits in keys.items():
        key, secrets[name] = new_key(name, now=time.time(), **limits)
        stored(file, lambda store, key=key: save(store, key))
    upstream = f'[upstreams.openai]\nprovider = "openai"\nurl = "{provider.url}"\nkey_env = "P"'
    with gateway(None, settings=f'store = "{file}"', upstreams=upstream, environ={"P": "p"}) as served:
        yield Shared(served, file, secrets)


def test_a_key_reaches_its_own_files_and_batches_only(tmp_path: Path, provider: Provider) -> None:
    with shared(tmp_path, provider, a={}, b={}) as gate:
        a, b = gate.sdk("a"), gate.sdk("b")
        own = a.files.create(file=("x.jsonl", LINES), purpose="batch")
        other = b.files.create(file=("y.jsonl", LINES), purpose="batch")
        batch = a.batches.create(input_file_id=own.id, endpoint="/v1/chat/completions", completion_window="24h")
        assert a.files.retrieve(own.id).id == own.id
        assert a.files.content(own.id).read() == b"content"
        assert [each.id for each in a.files.list()] == [own.id]
        assert [each.id for each in b.files.list()] == [other.id]
        assert [each.id for each in b.batches.list()] == []
        for refused in (
            lambda: b.files.retrieve(own.id),
            lambda: b.files.content(own.id),
            lambda: b.files.delete(own.id),
            lambda: b.batches.retrieve(batch.id),
            lambda: b.batches.cancel(batch.id),
            lambda: b.batches.create(input_file_id=own.id, endpoint="/v1/responses", completion_window="24h"),
            lambda: b.files.retrieve("file-unknown"),
            lambda: b.responses.create(
                model="openai/gpt-5.5",
                input=[{"role": "user", "content": [{"type": "input_file", "file_id": own.id}]}],
            ),
        ):
            with pytest.raises(openai.NotFoundError, match="No object found"):
                refused()
        # What the provider makes for a batch belongs to its owner, once that has seen it.
        result = provider.create("file", filename="out")
        provider.objects[batch.id] |= {"status": "completed", "output_file_id": result["id"], "usage": USAGE}
        with pytest.raises(openai.NotFoundError):
            b.files.content(result["id"])
        assert a.batches.retrieve(batch.id).output_file_id == result["id"]
        assert a.files.content(result["id"]).read() == b"content"
        with pytest.raises(openai.NotFoundError):
            b.files.content(result["id"])
        assert a.files.delete(own.id).deleted
        with pytest.raises(openai.NotFoundError):
            a.files.retrieve(own.id)


def test_a_list_of_many_objects_shows_those_of_the_key_on_pages_of_its_size(tmp_path: Path, provider: Provider) -> None:
    with shared(tmp_path, provider, a={}, b={}) as gate:
        a = gate.sdk("a")
        for _ in range(5_000):
            provider.create("file", filename="f", bytes=1, purpose="batch", status="processed")
        with ThreadPoolExecutor(4) as pool:
            made = {*pool.map(lambda _: a.files.create(file=("x", b"{}"), purpose="user_data").id, range(8))}
        for _ in range(5_000):
            provider.create("file", filename="f", bytes=1, purpose="batch", status="processed")
        assert {each.id for each in a.files.list()} == made
        assert {each.id for each in a.files.list(limit=1000)} == made
        assert [*gate.sdk("b").files.list()] == []
        got = ask(gate.served, "/v1/files?limit=2", key=gate.secrets["b"])
        assert (got.status, "larger `limit`" in got.body["error"]["message"]) == (400, True)


def test_images_and_audio_are_counted_by_their_usage_and_held_to_models(tmp_path: Path, provider: Provider) -> None:
    with shared(
        tmp_path, provider, a={"models": ("gpt-image-*", "openai/whisper-1", "tts-1"), "tokens_total": 10**6}
    ) as gate:
        a = gate.sdk("a")
        a.images.generate(model="gpt-image-1", prompt="a cat")
        a.audio.transcriptions.create(model="whisper-1", file=("a.wav", b"0" * 4000))
        assert a.audio.speech.create(model="tts-1", voice="alloy", input="hello").read() == b"sound"
        with pytest.raises(openai.PermissionDeniedError, match="may not use"):
            a.images.generate(model="dall-e-3", prompt="a cat")
        with pytest.raises(openai.PermissionDeniedError, match="names none"):
            a.images.generate(prompt="a cat")
        with pytest.raises(openai.PermissionDeniedError, match="may not use"):
            a.audio.transcriptions.create(model="gpt-4o-transcribe", file=("a.wav", b"0"))
        rows = gate.used(3)
        (record,) = [each for each in gate.served.records if each.route.model == "tts-1"]
    assert (rows["gpt-image-1"].amounts.input, rows["gpt-image-1"].amounts.output) == (1000, 200)
    assert rows["whisper-1"].amounts.input == 120
    assert rows["tts-1"].amounts.input > 0
    assert any("estimated" in entry.reason for entry in record.reply.entries)


def test_a_budget_of_money_needs_a_price_and_is_used_up_by_images(tmp_path: Path, provider: Provider) -> None:
    with shared(tmp_path, provider, a={"spend_total": "1"}, b={"tokens_total": 1000}) as gate:
        with pytest.raises(openai.APIStatusError, match="price of 'openai/unpriced' is unknown"):
            gate.sdk("a").images.generate(model="unpriced", prompt="a cat")
        assert [*gate.sdk("a").files.list()] == []
        gate.sdk("b").images.generate(model="gpt-image-1", prompt="a cat")
        with pytest.raises(openai.APIStatusError, match="budget"):
            gate.sdk("b").images.generate(model="gpt-image-1", prompt="a cat")


def test_a_repeated_key_does_not_hide_an_object_of_another_key(tmp_path: Path, provider: Provider) -> None:
    with shared(tmp_path, provider, a={}, b={}) as gate:
        secret = gate.sdk("a").files.create(file=("x.jsonl", LINES), purpose="batch")
        own = gate.sdk("b").files.create(file=("x.jsonl", LINES), purpose="batch")
        named = f'"input_file_id": "{secret.id}", "input_file_id": "{own.id}"'.encode()
        body = b'{"endpoint": "/v1/chat/completions", "completion_window": "24h", ' + named + b"}"
        got = ask(gate.served, "/v1/batches", body, key=gate.secrets["b"], headers={"content-type": "application/json"})
        assert got.status == 400
        assert "more than one way" in got.body["error"]["message"]


def test_the_requests_of_a_batch_may_not_name_objects_of_another_key(tmp_path: Path, provider: Provider) -> None:
    with shared(tmp_path, provider, a={}, b={}) as gate:
        a, b = gate.sdk("a"), gate.sdk("b")
        secret = a.files.create(file=("x.txt", b"secret"), purpose="user_data")
        body = {"model": "m", "input": [{"type": "input_file", "file_id": secret.id}]}
        line = json.dumps({"custom_id": "1", "method": "POST", "url": "/v1/responses", "body": body}).encode()
        with pytest.raises(openai.NotFoundError, match="No object found"):
            b.files.create(file=("x.jsonl", line), purpose="batch")
        a.files.create(file=("x.jsonl", line), purpose="batch")


def test_a_batch_is_held_to_the_models_of_its_file_and_counted_once(tmp_path: Path, provider: Provider) -> None:
    with shared(tmp_path, provider, a={"models": ("gpt-4.1",), "spend_total": "1"}, b={"models": ("x",)}) as gate:
        a, b = gate.sdk("a"), gate.sdk("b")
        made: Any = {"endpoint": "/v1/chat/completions", "completion_window": "24h"}
        file = b.files.create(file=("x.jsonl", LINES), purpose="batch")
        with pytest.raises(openai.PermissionDeniedError, match=r"may not use 'gpt-4\.1'"):
            b.batches.create(input_file_id=file.id, **made)
        with pytest.raises(openai.BadRequestError, match="a line of the file is not JSON"):
            a.files.create(file=("x.jsonl", LINES + b"not JSON\n"), purpose="batch")
        file = a.files.create(file=("x.jsonl", LINES), purpose="batch")
        batch = a.batches.create(input_file_id=file.id, **made)
        provider.objects[batch.id] |= {"status": "completed", "usage": USAGE}
        for _ in range(3):
            a.batches.retrieve(batch.id)
            assert [each.id for each in a.batches.list()] == [batch.id]
        rows = gate.used(8)
    assert (rows["gpt-4.1"].amounts.input, rows["gpt-4.1"].amounts.output) == (1000, 200)
    assert rows["gpt-4.1"].amounts.cost == 1000 * 2000 + 200 * 8000


def test_an_object_that_a_client_only_mentions_is_not_its_own(tmp_path: Path, provider: Provider) -> None:
    with shared(tmp_path, provider, a={}, b={}) as gate:
        a = gate.sdk("a")
        result = provider.create("file", filename="out")
        made = a.files.create(file=("x", b"{}"), purpose="user_data")
        provider.objects[made.id] |= {"metadata": {"output_file_id": result["id"]}, "deep": {"file": result["id"]}}
        a.files.retrieve(made.id)
        with pytest.raises(openai.NotFoundError):
            a.files.content(result["id"])


@pytest.mark.parametrize(
    ("path", "id"),
    [
        ("files/abc:download", "files/abc"),
        ("models/veo-3/operations/op1", "models/veo-3/operations/op1"),
        ("cachedContents/c", "cachedContents/c"),
        ("files", ""),
        ("models/veo-3", ""),
    ],
)
def test_objects_of_gemini_are_known_by_their_paths(path: str, id: str) -> None:
    assert get("gemini").passed.object_id(path) == id


FORM = "multipart/form-data; boundary=b"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"--b",
        b"x--b\r\n",
        b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nm',
        b'--b\ncontent-disposition: form-data; name="model"\n\nm\n--b--',
        b'--b\r\ncontent-disposition: form-data; name="a"; name="model"\r\n\r\nm\r\n--b--',
        b"--b\r\ncontent-disposition: form-data; name*=UTF-8''model\r\n\r\nm\r\n--b--",
        b"--b\r\n" + b"x: y\r\n" * 5000 + b"\r\n",
        b'--b\r\ncontent-disposition: form-data; name="a"\r\n\r\n\r\n' * 2000 + b"--b--",
        b'--b\r\ncontent-disposition: form-data; name="a"\r\n\r\n' + b"x" * 70_000 + b"\r\n--b--",
    ],
)
def test_a_form_that_servers_could_read_differently_is_refused(body: bytes) -> None:
    with pytest.raises(GatewayRefusal, match="form data"):
        read_form(FORM, body)


@pytest.mark.law
@given(st.lists(st.tuples(st.sampled_from(["model", "purpose", "n"]), st.binary(max_size=50)), max_size=8))
def test_a_form_is_read_as_it_was_written(parts: list[tuple[str, bytes]]) -> None:
    parts = [(name, value.replace(b"--b", b"")) for name, value in parts]
    data = b"".join(
        b'--b\r\nContent-Disposition: form-data; name="' + name.encode() + b'"\r\n\r\n' + value + b"\r\n"
        for name, value in parts
    )
    if not parts:
        data = b""
    found = read_form(FORM, data + b"--b--\r\n")
    assert [(each.name, bytes(each.value)) for each in found] == parts


@pytest.mark.law
@given(st.binary(max_size=200))
def test_no_bytes_break_the_readers_of_replies_and_files(data: bytes) -> None:
    counts = counted_tokens(data)
    assert counts is None or any(counts.values())
    assert models_of_requests(data) is None or data
