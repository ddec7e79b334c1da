"""Chains and load balancing: the order of the upstreams of a model that several of them serve."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolglot import Conversation, Text, Turn
from toolglot.gateway.config.file import ConfigText
from toolglot.gateway.config.settings import ConfigError, parse_config
from toolglot.upstream.routing.load_balancing import Rotation, conversation_key, order_by_key
from toolglot.upstream.routing.router import Router
from toolglot.upstream.routing.routes import Route

ENV = {"HOME": "/home/user", "OPENAI_API_KEY": "k1", "MISTRAL_API_KEY": "k2", "GROQ_API_KEY": "k3"}
UPSTREAMS = "[upstreams.openai]\n[upstreams.mistral]\n[upstreams.groq]\n[models]\n"


def router(models: str) -> Router:
    return Router(parse_config(ConfigText("t.toml", UPSTREAMS + models), ENV))


def names(routes: list[Route]) -> list[str]:
    return [f"{route.upstream_name}/{route.model}" for route in routes]


def test_a_list_is_a_chain_in_its_order() -> None:
    route = router('fast = ["groq/llama", "mistral/small", "openai/gpt-4.1"]').route("fast")
    assert names(order_by_key(route, "any key")) == ["groq/llama", "mistral/small", "openai/gpt-4.1"]
    assert all(not each.others for each in order_by_key(route, "any key"))


def test_a_chain_may_keep_the_requested_model() -> None:
    route = router('"gpt-4*" = ["openai/*", "groq/*"]').route("gpt-4.1")
    assert names(order_by_key(route, "")) == ["openai/gpt-4.1", "groq/gpt-4.1"]


def test_an_element_of_a_chain_may_be_another_name() -> None:
    assert names(order_by_key(router('small = "mistral/small"\nx = ["openai/a", "small"]').route("x"), "")) == [
        "openai/a",
        "mistral/small",
    ]


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ("x = []", "expected an upstream"),
        ('x = ["openai/a", 7]', "expected an upstream"),
        ('x = ["openai/a", "openai/a"]', "lead to the same"),
        ('x = ["y"]\ny = ["openai/a", "groq/b"]', "has several targets"),
        ('x = { to = ["openai/a"], weights = [1, 2] }', "one weight for each target"),
        ('x = { to = ["openai/a", "groq/b"], weights = [0, 1] }', "one weight for each target"),
        ('x = { to = ["openai/a", "groq/b"], weights = [true, 1] }', "one weight for each target"),
        ("x = { to = [] }", "expected an upstream"),
        ("x = { weights = [1] }", "need several targets"),
        ('x = { to = "openai/a", each = "request" }', "need several targets"),
        ('x = { to = [{ to = "openai/a", weights = [1] }] }', "weights"),
        ("x = { to = [{ retries = 1 }] }", "expected an upstream"),
        ('x = { two = ["openai/a"] }', "two"),
        ('x = { to = ["openai/a", "groq/b"], each = "turn" }', "each ="),
        (f"x = {[f'openai/{n}' for n in range(21)]}", "more than 20"),
    ],
)
def test_what_makes_no_sense_is_reported_when_the_file_is_read(models: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        router(models)


def test_weights_say_how_many_conversations_each_gets() -> None:
    route = router('x = { to = ["openai/a", "groq/b"], weights = [3, 1] }').route("x")
    counts = Counter(names(order_by_key(route, f"conversation {n}"))[0] for n in range(4000))
    assert 2.6 < counts["openai/a"] / counts["groq/b"] < 3.4


@given(st.text(max_size=40), st.lists(st.floats(0.01, 1000), min_size=2, max_size=6))
def test_a_conversation_stays_and_one_upstream_less_moves_only_its_own(key: str, weights: list[float]) -> None:
    routes = [Route(upstream_name=f"u{n}", model="m") for n in range(len(weights))]
    whole = Route(upstream_name="u0", model="m", others=tuple(routes[1:]), weights=tuple(weights))
    first = names(order_by_key(whole, key))
    assert first == names(order_by_key(whole, key))
    assert sorted(first) == sorted(names(routes))
    if len(routes) > 2:
        fewer = Route(upstream_name="u0", model="m", others=tuple(routes[1:-1]), weights=tuple(weights[:-1]))
        assert names(order_by_key(fewer, key)) == [name for name in first if name != f"u{len(weights) - 1}/m"]


def test_each_request_goes_to_the_next_one_as_often_as_its_weight_says() -> None:
    route = router('x = { to = ["openai/a", "groq/b", "mistral/c"], weights = [2, 1, 1], each = "request" }').route("x")
    rotation = Rotation()
    firsts = [names(rotation.order(route))[0] for _ in range(8)]
    assert firsts == ["openai/a", "groq/b", "mistral/c", "openai/a"] * 2
    assert sorted(names(rotation.order(route))) == ["groq/b", "mistral/c", "openai/a"]


def test_a_conversation_has_one_key_while_it_goes_on_and_another_for_another_client() -> None:
    begun = Conversation((Turn("system", (Text("s"),)), Turn("user", (Text("Hello"),))))
    grown = Conversation((*begun.turns, Turn("assistant", (Text("Hi"),)), Turn("user", (Text("More"),))))
    assert conversation_key("a", begun) == conversation_key("a", grown)
    assert conversation_key("a", begun) != conversation_key("b", begun)
    assert conversation_key("a", Conversation()) == conversation_key("a", Conversation())
