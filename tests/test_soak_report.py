"""The table of a soak: what its parts did, and whether anything was wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "scripts"))

import fuzz
import fuzz_decoders
import soak_report
from soak_report import BEGIN, END, Part, main, write_page, write_part
from support.runs.soak_counts import examples_in
from toolglot.protocols import base

FUZZED = Part("decoders fuzzed", "python scripts/fuzz.py --seed 1", 600.0, 0, inputs=5, bytes=1_000_000_007, at=1.0)
KILLED = Part("sessions killed", "python scripts/soak_sessions.py", 59.0, 0, kills=1_000, seed="7", at=2.0)
SERVED = Part(
    "gateway with faults", "", 900.0, 0, requests=4_321, kills=20, warm_mb=100.0, end_mb=104.0, warm_seconds=400, at=3.0
)


def written(folder: Path, *parts: Part) -> list[str]:
    for part in parts:
        write_part(part, folder)
    return ["--folder", str(folder)]


def test_the_table_has_every_part_and_their_sums(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(written(tmp_path, SERVED, FUZZED, KILLED)) == 0
    head, fuzzed, killed, served, together = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["part", "time"]
    assert "1,000,000,007" in fuzzed
    assert "10.0 min" in fuzzed
    assert "59 s" in killed
    assert "100.0 → 104.0 MB (+4.0%)" in served
    assert {"1,000,000,007", "4,321", "1,020"} <= set(together.split())


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (
            KILLED.__class__(**{**vars(KILLED), "wrong": 2}),
            "WRONG: sessions killed: 2 times; again: python scripts/soak_s",
        ),
        (SERVED.__class__(**{**vars(SERVED), "end_mb": 105.1}), "memory grew by 5.1% after warm-up, more than 5%"),
    ],
    ids=["a wrong answer", "memory that grows"],
)
def test_what_is_wrong_is_reported_and_fails(
    part: Part, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(written(tmp_path, FUZZED, part)) == 1
    assert message in capsys.readouterr().out


def test_memory_is_not_judged_while_caches_fill(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = SERVED.__class__(**{**vars(SERVED), "end_mb": 120.0, "warm_seconds": 60.0})
    assert main(written(tmp_path, short)) == 0
    assert "(+20.0%), not judged: warm for 60 s" in capsys.readouterr().out


def test_a_part_that_left_nothing_is_missed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = written(tmp_path, FUZZED, KILLED)
    assert main([*where, "--parts", "3"]) == 1
    assert "has 2 parts of a soak, not 3" in capsys.readouterr().out
    assert main([*where, "--clear"]) == 0
    assert main(where) == 1


def test_the_page_gets_the_table_and_keeps_the_rest(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    for _ in range(2):
        write_page([FUZZED, KILLED], page)
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert text.count("| decoders fuzzed |") == 1
    assert "old" not in text
    assert "python scripts/soak_sessions.py" in text


def test_the_page_of_the_docs_has_a_section_for_it() -> None:
    text = soak_report.PAGE.read_text()
    assert text.index(BEGIN) < text.index(END)


def test_examples_are_those_that_hypothesis_says() -> None:
    statistics = "  - during generate phase (0.1 s):\n    - 90 passing, 0 failing, 10 invalid\n  - Stopped"
    assert examples_in(statistics) == 100


def test_the_fuzz_knows_every_protocol_and_the_words_of_every_decoder() -> None:
    assert set(fuzz.PROTOCOLS) == set(base.names())
    for name in fuzz.NAMES:
        assert fuzz_decoders.decoder(name, fuzz.PROTOCOLS).words
