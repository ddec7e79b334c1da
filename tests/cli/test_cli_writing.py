"""Input and output files: nothing is lost, nothing is half written, and nothing in them makes a command fail badly."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cli.commands import chat, claude
from toolglot import InputError
from toolglot.cli.files.output import _write_data, back_up, replace_file
from toolglot.cli.main import main


def test_a_file_that_is_not_finished_never_appears(tmp_path: Path) -> None:
    def half() -> None:
        with replace_file(str(tmp_path / "out.json")) as output:
            output.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_replaced_is_whole_at_every_moment(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_bytes(b"old")
    with replace_file(str(path)) as output:
        output.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    with (
        Path("/dev/full").open("wb", buffering=0) as full,
        pytest.raises(InputError, match="cannot write file: No space left"),
    ):
        _write_data("out.json", full, b"x")


def test_a_directory_in_the_way_is_reported(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError, match="cannot write file"), replace_file(str(tmp_path / "out")) as output:
        output.write(b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_backup_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot write file"):
        back_up(str(tmp_path / "none.json"), force=False)


def test_a_named_pipe_is_read_once_and_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reader, writer = os.pipe()
    os.write(writer, json.dumps(claude(), indent=1).encode())
    os.close(writer)
    assert main(["convert", f"/dev/fd/{reader}", "--to", "openai@gpt-4.1"]) == 0
    os.close(reader)
    assert json.loads(capsys.readouterr().out)["model"] == "gpt-4.1"


def ran(data: bytes, *words: str) -> tuple[int, str]:
    """The exit code, and all that was written, for an input."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "request.json")
        file.write_bytes(data)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([words[0], str(file), *words[1:]])
    for stream in (out, err):
        stream.seek(0)
    return code, out.read() + err.read()


COMMANDS = st.sampled_from(
    [
        ("lint",),
        ("lint", "--for", "all", "--format", "sarif"),
        ("lint", "--for", "gemini,mistral", "--format", "json"),
        ("repair", "--for", "anthropic"),
        ("repair", "--in-place"),
        ("convert", "--to", "bedrock"),
        ("switch-report", "--from", "openai", "--to", "cohere"),
    ]
)


@st.composite
def inputs(draw: st.DrawFn) -> bytes:
    """Anything, and requests with something wrong in their text."""
    if draw(st.booleans()):
        return draw(st.binary(max_size=60))
    body = json.dumps(draw(st.sampled_from([chat(), claude()])), indent=draw(st.sampled_from([None, 1]))).encode()
    at = draw(st.integers(0, len(body)))
    return body[:at] + draw(st.binary(max_size=4)) + body[at + draw(st.integers(0, 30)) :]


@pytest.mark.law
@given(inputs(), COMMANDS)
def test_law_no_input_makes_a_command_raise_or_end_with_an_unknown_code(data: bytes, words: tuple[str, ...]) -> None:
    code, written = ran(data, *words)
    assert code in (0, 1, 2)
    assert code != 2 or "error: " in written
