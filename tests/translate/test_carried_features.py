"""Nothing is lost in silence: each feature, from each protocol to each other, is carried or reported."""

from __future__ import annotations

import itertools

import pytest

from support.translate.carried_features import (
    FEATURES,
    PROTOCOLS,
    REPLY_FEATURES,
    WIRE_FEATURES,
    WIRE_REPLIES,
    Feature,
    ReplyFeature,
    WireFeature,
    is_reported,
    reply_outcome,
    request_outcome,
    wire_outcome,
)

PAIRS = [pair for pair in itertools.product(PROTOCOLS, PROTOCOLS) if pair[0] != pair[1]]


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_law_10_each_feature_of_a_request_is_carried_or_reported(feature: Feature) -> None:
    for source, target in PAIRS:
        outcome = request_outcome(feature, source, target)
        assert outcome.cell != "lost" or is_reported(feature.words, outcome.report), f"{source} → {target}"


@pytest.mark.parametrize("feature", REPLY_FEATURES, ids=lambda feature: feature.name)
def test_law_10_each_feature_of_a_reply_is_carried_or_reported(feature: ReplyFeature) -> None:
    for source, target in PAIRS:
        outcome = reply_outcome(feature, source, target)
        assert outcome.cell != "lost" or is_reported(feature.words, outcome.report), f"{source} → {target}"


@pytest.mark.parametrize("feature", [*WIRE_FEATURES, *WIRE_REPLIES], ids=lambda feature: feature.name)
def test_law_10_what_only_some_protocols_have_is_carried_or_reported(feature: WireFeature) -> None:
    for source, target in PAIRS:
        outcome = wire_outcome(feature, source, target)
        assert outcome.cell != "lost" or is_reported(feature.words, outcome.report), f"{source} → {target}"


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_law_3_in_one_protocol_every_feature_is_carried_but_for_what_the_model_refuses(feature: Feature) -> None:
    for protocol in PROTOCOLS:
        outcome = request_outcome(feature, protocol, protocol)
        assert outcome.cell != "lost" or is_reported(feature.words, outcome.report), protocol


def test_every_feature_can_be_expressed_by_some_protocol() -> None:
    for feature in FEATURES:
        assert {request_outcome(feature, source, "openai_chat").cell for source in PROTOCOLS} != {"–"}, feature.name
    for reply in REPLY_FEATURES:
        assert {reply_outcome(reply, source, "openai_chat").cell for source in PROTOCOLS} != {"–"}, reply.name
