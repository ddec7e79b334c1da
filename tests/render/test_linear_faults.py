"""Law 9 for requests that are full of faults: n of them cost about n times as much as one, for every class and target.

Work is counted, not timed. The suite tries each fault on three targets with some hundreds of it, `make soak` on all of
them with thousands.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from itertools import cycle, islice

import pytest

import toolglot
from support.counted_work import is_linear
from support.law_examples import IS_SOAK
from support.translate.many_faults import FAULTS
from toolglot import profiles

TARGETS = profiles.names()
SIZE, TARGETS_EACH = (int(os.environ.get("SOAK_FAULTS", "1000")), len(TARGETS)) if IS_SOAK else (40, 3)
POLICY = toolglot.Policy(server_tools="drop")


def _cases() -> list[tuple[str, str]]:
    targets = cycle(TARGETS)
    return [(fault, target) for fault in FAULTS for target in islice(targets, TARGETS_EACH)]


@pytest.mark.law
@pytest.mark.parametrize(("fault", "target"), _cases())
def test_n_faults_cost_n_times_the_work_of_one(fault: str, target: str) -> None:
    source, body_with = FAULTS[fault]

    def converting(n: int) -> Callable[[], object]:
        data = json.dumps(body_with(n)).encode()

        def convert() -> str:
            try:
                converted = toolglot.convert(data, source=source, target=target, policy=POLICY)
            except toolglot.RefusedError as refusal:
                return str(refusal)
            assert converted.data
            assert converted.report.ids.format
            return str(converted.report)

        return convert

    converting(2)()  # what is only done once is done
    assert is_linear(converting, SIZE, slack=1.25)
