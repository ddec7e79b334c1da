"""The readers of the referee against judges from outside: the definitions of the providers' own SDKs.

A reader is right about the form of a body when it finds nothing wrong with those that the definitions accept, and
something with those that they refuse. Every kind of body about which they differ is listed, with the reason.
"""

from __future__ import annotations

import importlib
import re
from typing import Final, NamedTuple

import pytest
from google.genai import types

from support.referee.mutated_bodies import PROTOCOLS, Body, Mutant, good, mutants, recorded
from support.referee.sdk_judges import refuses
from toolglot.referee.view import View

LEAST_AGREEMENT: Final = 0.98
LEAST_BODIES: Final = 200


class Difference(NamedTuple):
    stricter: str
    """Who refuses: the reader or the judge."""
    what: str
    """A pattern of what was done to the body."""
    reason: str


DIFFERENCES: Final[dict[str, tuple[Difference, ...]]] = {
    "openai_responses": (
        Difference(
            "judge", r"delete input\[\*\]\.content\[\*\]\.annotations", "the API takes output_text without them"
        ),
        Difference("judge", r"delete input\[\*\]\.(content|output)\[\*\]\.detail", "the API takes auto for granted"),
        Difference(
            "judge",
            r"delete input\[\*\]\.(id|status|type)",
            "the API takes an assistant message without them, and encrypted reasoning without an id",
        ),
        Difference(
            "judge", r"delete (input\[\*\]\.)?tools\[\*\]\.strict", "left out, the server decides (strict-unset)"
        ),
        Difference(
            "judge",
            r"delete (input\[\*\]\.)?tools\[\*\]\.parameters",
            "a rule of the profile: tools.parameters_required",
        ),
        Difference("reader", r"type tools\[\*\]\.filters\.filters", "a text is an iterable to the definition"),
        Difference("reader", r"type tools\[\*\]\.tools\[\*\]\.parameters", "a schema; the definition takes any value"),
    ),
    "gemini": (
        Difference("reader", r"type .*\.fps", "pydantic takes true for a number"),
        Difference(
            "judge",
            r"type .*\.(threshold|category|level|thinking_level|mode|language|outcome|behavior)",
            "the API takes the number of a value, as protocol buffers do",
        ),
    ),
    "bedrock": (Difference("reader", r"type .*\.(temperature|start|end)", "botocore takes true for a number"),),
    "cohere": (
        Difference("reader", r"delete messages\[\*\]\.content\[\*\]\.type", "a union of one has no mark in the SDK"),
    ),
    "ollama": (),
}


def reader_refuses(protocol: str, body: Body) -> list[str]:
    """Everything that a reader has against the form of a body."""
    view: View = importlib.import_module(f"toolglot.referee.readers.{protocol}").read(body)
    found = [f"{shape.path}: {shape.message}" for shape in view.shapes] + [*view.extra_fields, *view.extra_paths]
    found += [name for message in view.messages for name in message.extra_fields]
    messages = (*view.messages, *((view.system,) if view.system else ()))
    found += [name for message in messages for item in message.items for name in item.extra_fields]
    return found + [name for tool in view.tools or () for name in tool.extra_fields]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_reader_and_definitions_accept_every_good_body(protocol: str) -> None:
    bodies = good(protocol, 250)
    assert len(bodies) >= LEAST_BODIES
    assert [reader_refuses(protocol, body) for body in bodies if reader_refuses(protocol, body)] == []
    assert [refuses(protocol, body) for body in bodies if refuses(protocol, body)] == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_reader_and_definitions_refuse_the_same_mutants(protocol: str) -> None:
    made = mutants(protocol)
    judged = [
        (mutant, bool(reader_refuses(protocol, mutant.body)), bool(refuses(protocol, mutant.body))) for mutant in made
    ]
    refused = [mutant for mutant, by_reader, by_judge in judged if by_reader or by_judge]
    assert len(refused) >= LEAST_BODIES
    differing = [
        ("reader" if by_reader else "judge", mutant) for mutant, by_reader, by_judge in judged if by_reader != by_judge
    ]
    assert 1 - len(differing) / len(made) >= LEAST_AGREEMENT
    # As strict: of those that either refuses, so that harmless changes do not count as agreement.
    assert 1 - len(differing) / len(refused) >= LEAST_AGREEMENT - 0.01
    assert [(who, mutant.what) for who, mutant in differing if _listed(protocol, who, mutant) is None] == []
    used = {_listed(protocol, who, mutant) for who, mutant in differing}
    assert used == set(DIFFERENCES[protocol]), "a difference that does not occur any more"


def _listed(protocol: str, who: str, mutant: Mutant) -> Difference | None:
    known = DIFFERENCES[protocol]
    return next((one for one in known if one.stricter == who and re.fullmatch(one.what, mutant.what)), None)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_fields_that_an_sdk_does_not_know_are_listed_and_are_no_wrong_shapes(protocol: str) -> None:
    unknown = [body for name, body in recorded(protocol) if name.endswith(("unknown_fields", "as_dictionary"))]
    for body in unknown:
        view: View = importlib.import_module(f"toolglot.referee.readers.{protocol}").read(body)
        assert view.shapes == ()
        assert view.extra_fields or view.extra_paths
    assert len(unknown) == (0 if protocol == "bedrock" else 1)


def test_the_definition_of_a_part_still_documents_what_the_judge_enforces() -> None:
    assert "Exactly one field within a Part should be set" in (types.Part.__doc__ or "")
    assert "Must be either 'user' or 'model'" in (types.Content.model_fields["role"].description or "")
