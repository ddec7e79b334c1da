"""What a request that is passed through does: the model that it runs, the stored objects that it names.

    passed = describe(protocol, request)             # from the path alone
    named = read_names(passed, request, body)        # from the body: models, objects, the models in a file of requests

Law: a body that two servers could read differently names no model: it is refused to keys for which that matters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec
from msgspec import Struct

from toolglot.errors import InputError
from toolglot.gateway.accounting.estimates import BYTES_PER_TOKEN
from toolglot.gateway.http.form_data import FormField, is_form, read_form
from toolglot.gateway.http.requests import ClientRequest, GatewayRefusal, refusal
from toolglot.gateway.state.owned_objects import MAX_MODELS, is_id
from toolglot.jsontext import parse
from toolglot.limits import Limits
from toolglot.protocols.base import Protocol
from toolglot.protocols.passed_paths import SEGMENT, PassedPaths, StoredCollection

MAX_REFERENCES: Final = 1000
_READS: Final = frozenset({"GET", "HEAD"})
_WRITES: Final = frozenset({"POST", "PUT", "PATCH"})
_STEERING: Final = frozenset({"cancel", "pause", "resume"})
"""The last part of paths that steer a run and start none."""
_UNTYPED: Final = frozenset({"metadata", "attributes"})
"""Fields whose content is the client's own."""


class PassedRequest(Struct, frozen=True):
    """A request that is passed through, as its path shows it."""

    paths: PassedPaths
    method: str
    path: str
    """Below the version; empty: it is not certain that every server reads it in the same way."""
    collection: StoredCollection | None = None
    rest: tuple[str, ...] = ()
    """The path within the collection."""
    object_id: str = ""
    model: str = ""
    """The model in the path."""
    is_stateless: bool = False
    is_start: bool = False

    @property
    def is_known(self) -> bool:
        """Whether it is known what the provider stores and shows at this path."""
        if self.collection is None:
            return self.is_stateless or self.is_start
        return bool(self.rest) or self.method in ("GET", "POST")

    @property
    def is_stored(self) -> bool:
        return self.collection is not None or self.is_start

    @property
    def is_list(self) -> bool:
        return self.collection is not None and not self.rest and self.method == "GET"

    @property
    def creates(self) -> bool:
        """Whether the reply may have ids of new objects."""
        return self.is_start or (self.collection is not None and self.method == "POST")

    @property
    def shows_object(self) -> bool:
        """Whether the reply is an object of the collection."""
        return self.collection is not None and len(self.rest) == 1 and self.method == "GET"

    @property
    def is_batch(self) -> bool:
        """Whether it creates a batch."""
        collection = self.collection
        return collection is not None and bool(collection.batch) and not self.rest and self.method == "POST"

    @property
    def runs_model(self) -> bool:
        if self.method not in _WRITES or (self.rest and self.rest[-1] in _STEERING):
            return False
        return self.collection is None or self.collection.runs_model


class BodyNames(Struct, frozen=True):
    """What a body names."""

    models: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    """Ids of stored objects."""
    file_models: tuple[str, ...] | None = None
    """The models of the requests in a file for a batch; None: it is no such file, or it cannot be read."""
    file_tokens: int = 0
    problem: GatewayRefusal | None = None
    """Why it cannot be read."""


def describe(protocol: Protocol, request: ClientRequest) -> PassedRequest:
    """What the path of a request shows."""
    paths, raw = protocol.passed, request.raw_path
    path = raw.removeprefix(protocol.service_prefix)
    if path == raw or not all(SEGMENT.fullmatch(part) for part in path.split("/")):
        return PassedRequest(paths, request.method, "")
    if request.method == "POST":
        for pattern, is_start in ((paths.model_call, False), (paths.start, True)):
            if found := pattern(path):
                model = found.groupdict().get("model") or ""
                return PassedRequest(
                    paths, request.method, path, model=model, is_stateless=not is_start, is_start=is_start
                )
    collection, rest = paths.match(path) or (None, [])
    return PassedRequest(
        paths, request.method, path, collection, tuple(rest), paths.object_id(path) if collection is not None else ""
    )


# --- bodies -----------------------------------------------------------------------------------------


def read_names(passed: PassedRequest, request: ClientRequest, body: bytes, limits: Limits) -> BodyNames:
    """What a body names. A body that cannot be read names nothing, and the result says why."""
    in_path = (passed.model,) if passed.model else ()
    asked = tuple(_query_references(passed.paths, request))
    if passed.method not in _WRITES or not body:
        return BodyNames(in_path, asked)
    content_type = request.headers.get("content-type", "")
    try:
        if is_form(content_type):
            found = _read_fields(passed, read_form(content_type, body))
        else:
            found = _read_json(passed, body, limits)
    except GatewayRefusal as error:
        return BodyNames(in_path, asked, problem=error)
    return msgspec.structs.replace(found, models=(*in_path, *found.models), references=(*asked, *found.references))


def _query_references(paths: PassedPaths, request: ClientRequest) -> Iterator[str]:
    for name, value in parse_qsl(request.raw_query, keep_blank_values=True):
        if value and name.removesuffix("[]") in paths.references:
            yield value


def _read_json(passed: PassedRequest, body: bytes, limits: Limits) -> BodyNames:
    try:
        parsed = parse(body, limits=limits)
    except InputError as error:
        raise refusal("bad_request", f"cannot read the body of the request: {error}", 400) from None
    if parsed.repairs:  # a repeated key, a byte order mark, …
        raise refusal("bad_request", f"the body can be read in more than one way: {parsed.repairs[0]}", 400)
    value = parsed.value
    if not isinstance(value, dict):
        raise refusal("bad_request", "expected a JSON object as the body of the request", 400)
    models = _models_in(value)
    if passed.is_batch and passed.collection is not None and passed.collection.batch == "inline":
        models = _inline_models(value)
    return BodyNames(models, _checked(named_objects(value, passed.paths.references)))


def _models_in(value: dict[str, Any]) -> tuple[str, ...]:
    odd = [name for name in value if name != "model" and name.lower() == "model"]
    model = value.get("model")
    if odd or not isinstance(model, str | None):
        raise refusal("bad_request", "expected the model in one field, `model`, as a string", 400)
    return (model,) if model else ()


def _inline_models(value: dict[str, Any]) -> tuple[str, ...]:
    """The models of the requests of a batch."""
    requests = value.get("requests")
    found: dict[str, None] = {}
    for each in requests if isinstance(requests, list) else ():
        params = each.get("params") if isinstance(each, dict) else None
        models = _models_in(params) if isinstance(params, dict) else ()
        if not models:
            raise refusal("bad_request", "a request of the batch names no model", 400)
        found[models[0]] = None
    return _few(found)


def named_objects(value: Any, fields: frozenset[str]) -> Iterator[str]:
    """The ids in the fields of these names, wherever they are; but not in what is the client's own data."""
    waiting: list[tuple[bool, Any]] = [(False, value)]
    while waiting:
        is_named, held = waiting.pop()
        if isinstance(held, dict):
            for name, inner in held.items():
                if name not in _UNTYPED:
                    waiting.append((name in fields or (is_named and name == "id"), inner))
        elif isinstance(held, list):
            waiting += [(is_named, inner) for inner in held]
        elif is_named and isinstance(held, str) and held:
            yield held


def _checked(found: Iterator[str]) -> tuple[str, ...]:
    ids: dict[str, None] = {}
    for id in found:
        ids[id] = None
        if len(ids) > MAX_REFERENCES:
            raise refusal("bad_request", f"the request names more than {MAX_REFERENCES} stored objects", 400)
    return tuple(ids)


def _few(models: dict[str, None]) -> tuple[str, ...]:
    if len(models) > MAX_MODELS:
        raise refusal("bad_request", f"the requests of the batch name more than {MAX_MODELS} models", 400)
    return tuple(models)


# --- forms ------------------------------------------------------------------------------------------


def _read_fields(passed: PassedRequest, fields: list[FormField]) -> BodyNames:
    models: list[str] = []
    purposes: list[str] = []
    references: list[str] = []
    files: list[memoryview] = []
    for name, value, is_file in fields:
        if is_file:
            files.append(value)
            if name.lower() == "model":
                raise refusal("bad_request", "the model is a file", 400)
            continue
        text = bytes(value).decode("utf-8", "replace")
        if name.lower() == "model":
            models.append(text)
        elif name == "purpose":
            purposes.append(text)
        elif any(part in passed.paths.references for part in name.replace("]", "").split("[")):
            references.append(text)
    if len(models) > 1 or len(purposes) > 1:
        raise refusal("bad_request", "the form names its model or its purpose more than once", 400)
    named = BodyNames(tuple(filter(None, models)), _checked(iter(references)))
    collection = passed.collection
    if collection is None or not collection.holds_requests or purposes != ["batch"] or len(files) != 1:
        return named
    requests = bytes(files[0])
    fields_of_objects = passed.paths.references | _STORED_HISTORY
    return msgspec.structs.replace(
        named,
        references=_checked(chain(references, _objects_of_requests(requests, fields_of_objects))),
        file_models=models_of_requests(requests),
        file_tokens=len(requests) // BYTES_PER_TOKEN,
    )


_STORED_HISTORY: Final = frozenset({"previous_response_id", "conversation"})
"""Fields of a request in a batch that name what the provider has stored."""


def _lines(data: bytes) -> Iterator[bytes]:
    """The lines of a file that are not blank, one after the other."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        line = data[start:end].strip()
        start = end + 1
        if line:
            yield line


def _objects_of_requests(data: bytes, fields: frozenset[str]) -> Iterator[str]:
    """The ids of stored objects that the requests in a file of JSON lines name."""
    for line in _lines(data):
        try:
            value = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise refusal("bad_request", "a line of the file is not JSON", 400) from None
        yield from named_objects(value, fields)


class _LineBody(Struct):
    model: str


class _Line(Struct):
    body: _LineBody


_line = msgspec.json.Decoder(_Line)


def models_of_requests(data: bytes) -> tuple[str, ...] | None:
    """The models of the requests in a file of JSON lines; None: a line names none, or there are too many."""
    found: dict[str, None] = {}
    for line in _lines(data):
        try:
            found[_line.decode(line).body.model] = None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        if len(found) > MAX_MODELS:
            return None
    return tuple(found) or None


def as_object_id(paths: PassedPaths, value: str, prefix: str) -> str:
    """The id of an object that is named by its id, its path or its address."""
    if not paths.is_named_by_path:
        return value
    path = unquote(urlsplit(value).path if "://" in value else value)
    path = _REPEATED.sub("/", _PATH_END.split(path, maxsplit=1)[0])
    path = _VERSION.sub("", path.partition(prefix)[2] if prefix in path else path).strip("/")
    return paths.object_id(path) or (value if is_id(value) else "")


_REPEATED: Final = re.compile(r"/{2,}")
_PATH_END: Final = re.compile(r"[?#;]")
_VERSION: Final = re.compile(r"^/?v\d[a-z0-9]{0,10}/")
