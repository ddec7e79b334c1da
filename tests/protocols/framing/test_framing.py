"""Frames out of bytes: the same however the bytes are cut, and bounded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolglot.errors import LimitError
from toolglot.protocols.framing.text_frames import Frame, Framer, LineFramer, SseFramer

FRAMERS = (SseFramer, LineFramer)


def frames_of(framer: Framer, data: bytes, cuts: list[int] | None = None) -> list[Frame]:
    found: list[Frame] = []
    start = 0
    for end in (*sorted(cuts or []), len(data)):
        found += framer.feed(data[start:end])
        start = end
    return found + framer.finish()


def data_of(data: bytes) -> list[tuple[str, bytes]]:
    """The name and the data of each frame, blank lines left out."""
    return [(frame.name, frame.data) for frame in frames_of(SseFramer(), data) if frame.raw.strip()]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_may_end_in_lf_crlf_or_cr(end: bytes) -> None:
    data = end.join([b"event: a", b"data: 1", b"", b"data: 2", b"", b""])
    assert data_of(data) == [("a", b"1"), ("", b"2")]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (b"data:1\n\n", [("", b"1")]),
        (b"data:  1\n\n", [("", b" 1")]),
        (b"data: 1\ndata: 2\n\n", [("", b"1\n2")]),
        (b"data\n\n", [("", b"")]),
        (b": a comment\n\n", [("", b"")]),
        (b"\xef\xbb\xbfdata: 1\n\n", [("", b"1")]),
        (b"id: 7\nretry: 10\ndata: 1\n\n", [("", b"1")]),
        (b"event:x\ndata: 1\n\n", [("x", b"1")]),
        (b"data: 1\n\n\n\n\ndata: 2\n\n", [("", b"1"), ("", b"2")]),
        (b"data: 1", [("", b"1")]),
        (b"data: 1\n", [("", b"1")]),
        (b"", []),
        (b"\n\n", []),
        (b"unknown: 1\ndata: 2\n\n", [("", b"2")]),
    ],
)
def test_server_sent_events_are_read_by_the_standard(written: bytes, meant: list[tuple[str, bytes]]) -> None:
    assert data_of(written) == meant


def test_a_keep_alive_is_a_frame_without_data_that_can_be_forwarded() -> None:
    (frame,) = frames_of(SseFramer(), b": ping\n\n")
    assert (frame.data, frame.raw) == (b"", b": ping\n\n")


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_the_raw_bytes_of_all_frames_are_the_stream(end: bytes) -> None:
    data = b'event: a\ndata: {"x":1}\n\n: hi\n\ndata: [DONE]\n\n'.replace(b"\n", end)
    for cuts in ([], list(range(len(data)))):
        assert b"".join(frame.raw for frame in frames_of(SseFramer(), data, cuts)) == data


@pytest.mark.parametrize(
    "data",
    [
        b"\n\n\n\ndata: 1\n\n\n\n\ndata: 2\n\n\n",
        b"data: 1\r\n\r\n\r\ndata: 2\r\n\r\n\r\n\r\n",
        b"data: 1\r\rdata: 2\r\n\n\rdata: 3\n\r\n\r",
        b": hi\n\n\ndata: 1\r\n\n",
    ],
)
def test_blank_lines_and_mixed_line_ends_stay_as_they_came_at_every_cut(data: bytes) -> None:
    for cuts in ([], list(range(len(data))), *([cut, cut] for cut in range(len(data)))):
        assert b"".join(frame.raw for frame in frames_of(SseFramer(), data, cuts)) == data


def test_an_empty_piece_between_cr_and_lf_adds_nothing() -> None:
    framer = SseFramer()
    pieces = (b"data: 1\r", b"", b"\n\r", b"", b"", b"\ndata: 2\r\n\r\n")
    frames = [frame for piece in pieces for frame in framer.feed(piece)] + framer.finish()
    assert [(frame.data, frame.raw) for frame in frames] == [
        (b"1", b"data: 1\r\n\r\n"),
        (b"2", b"data: 2\r\n\r\n"),
    ]


EXAMPLE = '\ufeff: hi\n\nevent: a\r\ndata:x\r\ndata: y\r\n\r\ndata: {"z":1}\n\n\n\ndata: é\r\rdata: last'.encode()
LINES = '{"a":1}\n\n \r\n{"b":"é"}\r\n{"c":3}'.encode()


@pytest.mark.parametrize(("framer", "data"), [(SseFramer, EXAMPLE), (LineFramer, LINES)])
def test_law_8_every_cut_gives_the_same_frames(framer: type[SseFramer | LineFramer], data: bytes) -> None:
    whole = frames_of(framer(), data)
    for position in range(len(data) + 1):
        assert frames_of(framer(), data, [position]) == whole
    assert frames_of(framer(), data, list(range(len(data)))) == whole


pieces = st.lists(
    st.sampled_from([b"data", b":", b" ", b"\n", b"\r", b"\r\n", b"event: x", b"{}", b"\xef\xbb\xbf", b"\xff", b"\n\n"])
)


@pytest.mark.law
@given(pieces, st.data(), st.sampled_from(FRAMERS))
def test_law_8_arbitrary_bytes_cut_anywhere_give_the_same_frames(
    written: list[bytes], data: st.DataObject, framer: type[SseFramer | LineFramer]
) -> None:
    whole = b"".join(written)
    cuts = data.draw(st.lists(st.integers(0, len(whole))))
    assert frames_of(framer(), whole, cuts) == frames_of(framer(), whole)


@pytest.mark.parametrize("framer", FRAMERS)
def test_a_frame_that_never_ends_is_refused(framer: type[SseFramer | LineFramer]) -> None:
    endless = framer(100)
    endless.feed(b"data: " + b"x" * 90)
    with pytest.raises(LimitError, match="100 bytes"):
        endless.feed(b"x" * 10)


def test_a_huge_event_in_small_pieces_is_put_together_once() -> None:
    framer = SseFramer()
    piece = b"x" * 1000
    framer.feed(b"data: ")
    for _ in range(10_000):
        assert framer.feed(piece) == []
    (frame,) = framer.feed(b"\n\n")
    assert len(frame.data) == 10_000_000
