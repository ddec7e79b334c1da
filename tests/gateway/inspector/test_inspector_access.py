"""Who may use the inspector: its own page, with a key that sees its own requests, or with an admin key."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from support.inspector.inspected_gateway import API, KEYED, KEYS, get, request_body, rows, send, status_of, use_gateway
from toolglot.gateway.inspector.page_files import FOLDER, TYPES, page_file, page_names

FOREIGN: Final = (
    {"origin": "http://evil.example"},
    {"origin": "http://127.0.0.1:3000"},
    {"origin": "http://localhost:8400"},
    {"origin": "null"},
    {"host": "evil.example"},
    {"host": "evil.example:8400"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
)
"""Requests of other pages, one of them with a name of its own that leads to this machine."""
PATHS: Final = (
    *("/requests", "/requests/{id}", "/requests/{id}/diff", "/requests/{id}/timeline", "/requests/{id}/targets"),
    *("/requests/{id}/targets/mistral", "/requests/{id}/code?as=curl", "/requests/{id}/export?form=jsonl"),
    *("/requests/{id}/explain?rule=mistral-id-nine", "/requests/{id}/body/request", "/fleet", "/info"),
)
PRIVATE: Final = "The word is heliotrope."


@pytest.mark.parametrize("headers", FOREIGN)
def test_other_pages_are_refused_everywhere(headers: dict[str, str]) -> None:
    async def use(client: httpx.AsyncClient) -> list[int]:
        id = await send(client)
        found = [await status_of(client, path.format(id=id), **headers) for path in (*PATHS, "/events")]
        found.append(await status_of(client, "/requests", method="DELETE", **headers))
        replay = await client.post(f"{API}/requests/{id}/replay", headers=headers, json={"model": "x"})
        assert len(await rows(client)) == 1
        return [*found, replay.status_code]

    assert set(use_gateway(use)) == {403}


@pytest.mark.parametrize("headers", [headers for headers in FOREIGN if "host" not in headers])
def test_other_pages_are_refused_with_a_key_too(headers: dict[str, str]) -> None:
    async def use(client: httpx.AsyncClient) -> list[int]:
        return [await status_of(client, "/requests", KEYS["KEY_ADMIN"], **headers)]

    assert use_gateway(use, keys=KEYED) == [403]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://127.0.0.1:8400", "sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
        {"host": "localhost:8400", "origin": "http://localhost:8400"},
    ],
)
def test_its_own_page_and_programs_are_served(headers: dict[str, str]) -> None:
    async def use(client: httpx.AsyncClient) -> int:
        return await status_of(client, "/requests", **headers)

    assert use_gateway(use) == 200


def test_a_key_sees_its_own_requests_and_an_admin_key_all() -> None:
    async def use(client: httpx.AsyncClient) -> dict[str, Any]:
        own = await send(client, request_body(PRIVATE), key=KEYS["KEY_A"])
        await send(client, key=KEYS["KEY_B"])
        seen = {name: [row["client"] for row in await rows(client, key)] for name, key in KEYS.items()}
        foreign = []
        for path in PATHS[1:-3]:
            response = await client.get(API + path.format(id=own), headers={"x-api-key": KEYS["KEY_B"]})
            foreign.append((response.status_code, PRIVATE in response.text))
        replay = await client.post(
            f"{API}/requests/{own}/replay", headers={"x-api-key": KEYS["KEY_B"]}, json={"model": "x"}
        )
        (row,) = [row for row in await rows(client, KEYS["KEY_ADMIN"]) if row["id"] == own]
        conversation = f"/conversations/{row['conversation']}/export?form=jsonl"
        return {
            "seen": seen,
            "foreign": foreign,
            "replay": replay.status_code,
            "conversation": [await status_of(client, conversation, key) for key in KEYS.values()],
            "admins": (await get(client, f"/requests/{own}", KEYS["KEY_ADMIN"]))["canonical"]["turns"][0]["blocks"],
            "is_admin": [(await get(client, "/info", key))["is_admin"] for key in KEYS.values()],
        }

    found = use_gateway(use, 'keep = "bodies"', keys=KEYED)
    assert found["seen"] == {"KEY_A": ["alice"], "KEY_B": ["bob"], "KEY_ADMIN": ["bob", "alice"]}
    assert found["foreign"] == [(404, False)] * len(PATHS[1:-3])
    assert found["replay"] == 404
    assert found["conversation"] == [200, 404, 200]
    assert found["admins"][0]["text"] == PRIVATE
    assert found["is_admin"] == [False, False, True]


def test_a_key_purges_its_own_requests_and_an_admin_key_all() -> None:
    async def use(client: httpx.AsyncClient) -> list[Any]:
        for key in (KEYS["KEY_A"], KEYS["KEY_B"], KEYS["KEY_B"]):
            await send(client, key=key)
        purged = []
        for key in (KEYS["KEY_A"], KEYS["KEY_ADMIN"]):
            response = await client.delete(f"{API}/requests", headers={"x-api-key": key})
            purged.append(response.json()["purged"])
        return [*purged, await rows(client, KEYS["KEY_ADMIN"])]

    assert use_gateway(use, keys=KEYED) == [1, 2, []]


def test_the_same_key_rules_hold_for_the_list_of_requests() -> None:
    async def use(client: httpx.AsyncClient) -> list[int]:
        await send(client, key=KEYS["KEY_A"])
        counts = []
        for key in KEYS.values():
            response = await client.get("/toolglot/requests", headers={"x-api-key": key})
            counts.append(len(response.json()["requests"]))
        return counts

    assert use_gateway(use, keys=KEYED) == [1, 0, 1]


def test_without_a_key_only_the_page_is_served() -> None:
    async def use(client: httpx.AsyncClient) -> dict[str, int]:
        page = await client.get("/inspector")
        script = await client.get("/inspector/static/main.js")
        statuses = {path: (await client.get(API + path.format(id="tg_1"))).status_code for path in (*PATHS, "/events")}
        return {"page": page.status_code, "script": script.status_code, **statuses}

    found = use_gateway(use, keys=KEYED)
    assert found.pop("page") == found.pop("script") == 200
    assert set(found.values()) == {401}


# --- the page ---------------------------------------------------------------------------------------


def test_a_browser_is_led_to_the_page_and_a_program_gets_json() -> None:
    async def use(client: httpx.AsyncClient) -> tuple[httpx.Response, httpx.Response]:
        return await client.get("/", headers={"accept": "text/html,*/*;q=0.8"}), await client.get("/")

    browser, program = use_gateway(use)
    assert (browser.status_code, browser.headers["location"]) == (302, "/inspector")
    assert program.json()["name"] == "toolglot"


def test_the_page_may_load_nothing_but_its_own_files() -> None:
    async def use(client: httpx.AsyncClient) -> httpx.Response:
        return await client.get("/inspector")

    response = use_gateway(use)
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    "name", ["../settings.py", "..%2fsettings.py", "/etc/passwd", "nothing.js", "__init__.py", "vendor"]
)
def test_only_files_of_the_page_are_served(name: str) -> None:
    async def use(client: httpx.AsyncClient) -> int:
        return (await client.get(f"/inspector/static/{name}")).status_code

    assert use_gateway(use) == 404


def test_every_file_of_the_page_is_served_with_its_type_and_tag() -> None:
    names = page_names()
    assert "index.html" in names
    for name in names:
        found = page_file(name)
        assert found is not None
        assert (found.status, found.headers["content-type"]) == (200, TYPES[Path(name).suffix])
        again = page_file(name, found.headers["etag"])
        assert again is not None
        assert (again.status, again.data) == (304, b"")


def test_a_link_out_of_the_folder_is_no_file_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "index.html").write_text("page", encoding="utf-8")
    (tmp_path / "link.txt").symlink_to(FOLDER.parent / "settings.py")
    monkeypatch.setattr("toolglot.gateway.inspector.page_files.FOLDER", tmp_path)
    assert [*page_names()] == ["index.html"]
