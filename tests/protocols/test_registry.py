"""The registry of protocols: one record each, found by name, and a public way to add one."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from toolglot import InputError
from toolglot.protocols import base

_FILES = ("endpoint", "request", "reply", "stream_reader", "stream_writer", "errors", "form")
_NAMES = {
    "request": ("decode", "encode"),
    "reply": ("decode", "encode"),
    "stream_reader": ("framer", "Decoder"),
    "stream_writer": ("Encoder",),
    "errors": ("decode", "encode", "headers_of"),
}
"""What the modules of a protocol must have."""
_TOY = """
from toolglot.protocols.base import MessageForm, ModelList, Protocol

PROTOCOL = Protocol(
    name="{name}",
    package=__package__,
    provider="openai",
    path="/toy",
    models=ModelList(path="/toys"),
    turns="lines",
    messages=MessageForm(roles=frozenset({{"user"}})),
    reply_marks={{"toy": list}},
)
"""


@pytest.mark.parametrize("name", base.names())
def test_every_protocol_has_the_same_files_and_a_record_of_its_own_name(name: str) -> None:
    for file in _FILES:
        importlib.import_module(f"toolglot.protocols.{name}.{file}")
    assert base.get(name).name == name
    assert base.get(name).codec is base.codec(name)


def test_an_unknown_protocol_is_an_error_with_the_closest_name() -> None:
    with pytest.raises(InputError, match="unknown protocol 'antropic'") as caught:
        base.get("antropic")
    assert "'anthropic'" in (caught.value.hint or "")


def test_a_package_registers_a_protocol(tmp_path: Path) -> None:
    folder = tmp_path / "toy_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "endpoint.py").write_text(_TOY.format(name="toy"))
    for file, wanted in _NAMES.items():
        (folder / f"{file}.py").write_text("".join(f"{name} = None\n" for name in wanted))
    (tmp_path / "toys.toml").write_text('[profiles.toys]\nprotocol = "toy"\n')
    program = (
        "from toolglot import profiles\n"
        "from toolglot.protocols import base\n"
        "from toolglot.protocols.reply_detection import protocol_of_reply\n"
        "base.register('toy_package')\n"
        "mine = profiles.read_overrides('toys.toml')\n"
        "print(base.get('toy').turns, base.names()[-1], protocol_of_reply({'toy': []}))\n"
        "print(profiles.get('toys', overrides=mine).protocol)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["lines", "toy", "toy", "toy"]


@pytest.mark.parametrize("missing", [*_NAMES])
def test_a_package_that_lacks_a_codec_or_one_of_its_names_is_refused_when_it_is_registered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    for package, content in (("lacking_file", None), ("lacking_name", "")):
        folder = tmp_path / f"{package}_{missing}"
        folder.mkdir()
        (folder / "__init__.py").write_text("")
        (folder / "endpoint.py").write_text(_TOY.format(name="lacking"))
        for file, wanted in _NAMES.items():
            text = "".join(f"{name} = None\n" for name in wanted) if file != missing else content
            if text is not None:
                (folder / f"{file}.py").write_text(text)
        with pytest.raises(InputError, match=f"{package}_{missing}.{missing}") as caught:
            base.register(f"{package}_{missing}")
        assert _NAMES[missing][0] in (caught.value.hint or "")
    assert "lacking" not in base.names()


def test_a_package_cannot_take_the_name_of_another_protocol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "taking_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "endpoint.py").write_text(_TOY.format(name="gemini"))
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match="the protocol 'gemini' is that of"):
        base.register("taking_package")
    assert base.get("gemini").package == "toolglot.protocols.gemini"


def test_a_missing_package_or_one_without_a_record_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty_package").mkdir()
    (tmp_path / "empty_package" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match="there is no module 'no_such_package'"):
        base.register("no_such_package")
    with pytest.raises(InputError, match=r"there is no module 'empty_package\.endpoint'"):
        base.register("empty_package")
    (tmp_path / "empty_package" / "endpoint.py").write_text("")
    importlib.invalidate_caches()
    with pytest.raises(InputError, match="expected a Protocol, got None"):
        base.register("empty_package")
