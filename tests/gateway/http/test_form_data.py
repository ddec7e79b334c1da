"""Forms of requests that are passed through: what is malformed is refused, in time that grows with its length only."""

from __future__ import annotations

import pytest

from toolglot.gateway.http.form_data import read_form
from toolglot.gateway.http.requests import GatewayRefusal

TYPE = "multipart/form-data; boundary=B"


def form(head: str) -> bytes:
    return f"--B\r\n{head}\r\n\r\nv\r\n--B--\r\n".encode()


@pytest.mark.parametrize(
    "head",
    [
        "X:" + " " * 7_000 + "\x00",
        'Content-Disposition: form-data; name="a"' + " " * 7_000 + "x",
        "Content-Disposition:" + " ;" * 3_500,
        "no colon",
        ": no name",
    ],
)
def test_a_malformed_head_is_refused_at_once(head: str) -> None:
    """A pattern that goes back and forth over the blanks would take minutes."""
    with pytest.raises(GatewayRefusal):
        read_form(TYPE, form(head))


def test_blanks_around_a_value_are_no_part_of_it() -> None:
    (field,) = read_form(TYPE, form('Content-Disposition: \t form-data; name="a" \t'))
    assert (field[0], bytes(field[1])) == ("a", b"v")
