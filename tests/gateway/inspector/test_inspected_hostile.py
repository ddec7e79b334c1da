"""A gateway whose clients send whatever they like: the inspector shows all of it, and shows it as text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from support.gateway.gateway_process import process
from support.inspector.inspected_gateway import API, get, request_body, rows, send, use_gateway
from support.waiting import HANG_SECONDS
from toolglot.simulator import serve

SCRIPT: Final = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"
VIEWS: Final = (
    *("", "/diff", "/timeline", "/targets", "/targets/mistral", "/code?as=curl", "/code?as=python_client"),
    *("/export?form=jsonl", "/export?form=html", "/body/request"),
)
HOSTILE: Final[dict[str, Any]] = {
    "markup": request_body(SCRIPT, system=SCRIPT, tools=[{"name": SCRIPT, "input_schema": {"type": "object"}}]),
    "half a pair": json.dumps(request_body("PAIR")).replace("PAIR", "\\ud800"),
    "control characters": request_body("\u202e\u0000\u001b[31m\u2028"),
    "a long line": request_body("x" * 5_000_000),
    "deep": '{"model": "m", "messages": ' + "[" * 50_000 + "]" * 50_000 + "}",
    "not JSON": "{" * 1000,
    "not UTF-8": b'{"model": "m\xff\xfe", "messages": []}',
    "nothing": b"",
    "numbers": "1e400",
    "a model with a path": request_body(model="../../etc/passwd\n<b>"),
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_hostile_requests_are_shown(body: Any) -> None:
    async def use(client: httpx.AsyncClient) -> list[tuple[str, int, str]]:
        id = await send(client, body)
        found = []
        for row in await rows(client):
            assert row["id"] == id
            for view in VIEWS:
                response = await client.get(f"{API}/requests/{id}{view}")
                found.append((view, response.status_code, response.headers["content-type"]))
                assert response.headers["x-content-type-options"] == "nosniff"
                if "html" not in response.headers["content-type"]:
                    assert response.headers["content-type"].startswith(("application/", "text/plain"))
                else:
                    assert "<img src=x onerror" not in response.text
                    assert "<script>alert" not in response.text
                    assert "attachment" in response.headers["content-disposition"]
        return found

    for view, status, _ in use_gateway(use):
        assert status == 200 or (status in (400, 404) and view.startswith("/code")), view


def test_ids_and_queries_that_make_no_sense_are_refused() -> None:
    async def use(client: httpx.AsyncClient) -> list[int]:
        id = await send(client)
        paths = (
            *("/requests?limit=-1", "/requests?limit=x", f"/requests/{id}?from=a", f"/requests/{id}?to=1e9"),
            *(f"/requests/{id}/export?form=exe", f"/requests/{id}/code?as=perl", f"/requests/{id}/media/0"),
            *(f"/requests/{id}/media/99999999999", f"/requests/{id}/targets/nobody", f"/requests/{id}/body/headers"),
            *(f"/requests/{id}/explain?rule=<b>", "/requests/%2e%2e%2f", "/conversations/c_0/export", "/fleet?hours=x"),
        )
        return [(await client.get(API + path)).status_code for path in paths]

    assert {*use_gateway(use)} <= {400, 404}


def test_pictures_are_pictures_and_everything_else_is_a_download() -> None:
    def image(media_type: str, data: str) -> dict[str, Any]:
        return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}

    content = [image("image/png", "iVBORw0KGgo="), image("text/html", "PGI+"), image("image/svg+xml", "PHN2Zz4=")]

    async def use(client: httpx.AsyncClient) -> list[Any]:
        id = await send(client, {**request_body(), "messages": [{"role": "user", "content": content}]})
        blocks = (await get(client, f"/requests/{id}"))["canonical"]["turns"][0]["blocks"]
        media = [await client.get(f"{API}/requests/{id}/media/{block['media']}") for block in blocks]
        return [(each.headers["content-type"], "content-disposition" in each.headers, each.content) for each in media]

    assert use_gateway(use) == [
        ("image/png", False, b"\x89PNG\r\n\x1a\n"),
        ("application/octet-stream", True, b"<b>"),
        ("application/octet-stream", True, b"<svg>"),
    ]


def test_a_gateway_process_shows_a_session_of_an_agent(tmp_path: Path) -> None:
    with (
        serve() as simulated,
        process(tmp_path, simulated) as gateway,
        httpx.Client(base_url=gateway.url, timeout=HANG_SECONDS, headers={"x-api-key": "any"}) as client,
    ):
        body = request_body("Look at the weather.", model="openai_chat/gpt-4.1")
        body["metadata"] = {"user_id": json.dumps({"session_id": "11111111-2222"})}
        ids = []
        for turn in range(3):
            response = client.post("/v1/messages", json={**body, "stream": bool(turn % 2)})
            ids.append(response.headers["x-toolglot-request"])
            body["messages"] += [{"role": "assistant", "content": f"{turn}"}, {"role": "user", "content": "more"}]
        listed = client.get(f"{API}/requests").json()["rows"]
        assert [row["id"] for row in listed] == ids[::-1]
        assert [row["parent"] for row in listed] == [ids[1], ids[0], None]
        assert len({row["conversation"] for row in listed}) == 1
        detail = client.get(f"{API}/requests/{ids[1]}").json()
        assert detail["reply_canonical"]["role"] == "assistant"
        assert detail["canonical"]["turns"][0]["sent_path"] == "$.messages[0]"
        assert client.get(f"{API}/requests/{ids[2]}/diff").json()["prefix_kept"]
        kinds = {event["kind"] for event in client.get(f"{API}/requests/{ids[1]}/timeline").json()["events"]}
        assert {"request", "upstream", "first_byte", "text", "end"} <= kinds
        exported = client.get(f"{API}/conversations/{listed[0]['conversation']}/export?form=jsonl").text
        assert [json.loads(line)["id"] for line in exported.splitlines()] == ids
