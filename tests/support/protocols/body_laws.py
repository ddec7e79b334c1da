"""What the tests of all codecs share: equality of documents and values, and malformed bodies."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from support.conversations.strategies import json_values

Fields = dict[str, Any]


def same_json(one: object, other: object) -> bool:
    """Equal documents, 1 and 1.0 and true being different."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def without_form(value: Any) -> Any:
    """A block or another value without unknown fields and the codec's form."""
    dropped = ("extra", "form")
    return type(value)(**{name: getattr(value, name) for name in value.__struct_fields__ if name not in dropped})


@st.composite
def malformed(draw: st.DrawFn, bodies: st.SearchStrategy[Fields]) -> Any:
    """A body with one part replaced, removed or of another type."""
    body = json.loads(json.dumps(draw(bodies)))
    holder, steps = body, draw(st.integers(0, 6))
    for _ in range(steps):
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        inner = [key for key in keys if isinstance(holder[key], dict | list) and holder[key]]
        if not inner:
            break
        holder = holder[draw(st.sampled_from(inner))]
    keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    if keys:
        key = draw(st.sampled_from(keys))
        if draw(st.booleans()):
            holder[key] = draw(json_values)
        else:
            del holder[key]
    return body
