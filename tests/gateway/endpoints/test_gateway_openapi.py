"""The gateway's own OpenAPI document: it is what the doors are, and the gateway does what it says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import Case
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.specs.openapi import checks

from support.gateway.http_client import ask
from support.gateway.served_gateway import Served, gateway
from toolglot.conversation import Failure
from toolglot.gateway.endpoints.openapi import OPEN, document, document_bytes, templates
from toolglot.gateway.endpoints.table import find, known_paths
from toolglot.protocols.base import records
from toolglot.simulator import serve
from toolglot.translate.requests import error_for

KEYS = {"CLIENT_A": "key-of-client-a-0123456789"}
SETTINGS = 'client_keys = ["env:CLIENT_A"]\nsimulate = true'
DOCUMENT = document(is_demanded=True)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serve() as simulated, gateway(simulated, settings=SETTINGS, environ=KEYS) as running:
        yield running


# --- it is what the doors are -----------------------------------------------------------------------


def filled(path: str) -> str:
    """An address of a template."""
    return re.sub(r"\{\w+\}", "something", path)


def test_every_door_is_described_with_its_methods_and_nothing_else_is() -> None:
    described = {path: {method.upper() for method in methods} for path, methods in DOCUMENT["paths"].items()}
    expected = {path: {*known.endpoint.methods} for known in known_paths() for path in templates(known.path)}
    assert described == expected
    for path, methods in described.items():
        for method in methods:
            endpoint = find(method, filled(path), {}, {})
            assert endpoint is not None
            assert method in endpoint.methods


def test_a_pattern_with_choices_stands_for_an_address_each() -> None:
    assert templates("/a") == ["/a"]
    assert templates("/v1(?:beta|alpha)?/(?:models/)?(?P<model>.+):x") == [
        "/v1beta/models/{model}:x",
        "/v1beta/{model}:x",
        "/v1alpha/models/{model}:x",
        "/v1alpha/{model}:x",
        "/v1/models/{model}:x",
        "/v1/{model}:x",
    ]
    assert not [path for path in DOCUMENT["paths"] if set("()?|\\[]+") & {*path}]


def test_the_document_is_served_to_everybody_and_says_who_needs_a_key(served: Served) -> None:
    got = ask(served, "/openapi.json", key=None)
    assert got.status == 200
    assert got.headers["content-type"] == "application/json"
    assert got.data == document_bytes(is_demanded=True)
    assert got.body["openapi"] == "3.1.0"
    ids = [operation["operationId"] for methods in DOCUMENT["paths"].values() for operation in methods.values()]
    assert len(ids) == len({*ids})
    free = document(is_demanded=False)["paths"]
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            endpoint = find(method.upper(), filled(path), {}, {})
            assert endpoint is not None
            assert operation.get("security") == ([] if endpoint.action in OPEN else None)
            without = ask(served, filled(path), b"{}" if method == "post" else None, method=method.upper(), key=None)
            assert (without.status == 401) == (endpoint.action not in OPEN), path
            assert ({} in free[path][method]["security"]) == (endpoint.action not in OPEN)


def test_errors_have_the_shape_that_is_described() -> None:
    kinds: tuple[Any, ...] = ("bad_request", "auth", "not_found", "too_large", "rate_limit", "overloaded", "server")
    for protocol, schema in ((record.name, dict(record.error_schema)) for record in records()):
        source = {"openai_chat": "openai"}.get(protocol, protocol)
        for kind in kinds:
            body = json.loads(error_for(Failure(kind, "no", param="x"), target=source).data)
            jsonschema_rs.validate(schema, body)


def test_a_wrong_method_is_reported_with_the_right_ones(served: Served) -> None:
    got = ask(served, "/v1/messages", method="GET", key=KEYS["CLIENT_A"])
    assert (got.status, got.headers["allow"]) == (405, "POST")


# --- the gateway does what it says ------------------------------------------------------------------

load_all_checks()
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]


def one_address_each() -> dict[str, Any]:
    """The document with one path of each endpoint, and without keys: made-up ones lead nowhere. Events have no end."""
    first: dict[int, str] = {}
    for known in known_paths():
        first.setdefault(id(known.endpoint), templates(known.path)[0])
    ending = {path: methods for path, methods in DOCUMENT["paths"].items() if not path.endswith("/events")}
    paths = {path: methods for path, methods in ending.items() if path in first.values()}
    components = {name: part for name, part in DOCUMENT["components"].items() if name != "securitySchemes"}
    return {**DOCUMENT, "paths": paths, "components": components, "security": []}


schema = schemathesis.openapi.from_dict(one_address_each())


@schema.parametrize()
@settings(max_examples=12, phases=[Phase.explicit, Phase.generate], suppress_health_check=[*HealthCheck])
def test_whatever_is_requested_is_answered_as_the_document_says(case: Case[Any], served: Served) -> None:
    case.call_and_validate(
        base_url=served.url, headers={"authorization": f"Bearer {KEYS['CLIENT_A']}"}, checks=CHECKS, timeout=30
    )
