"""Every code block of README.md and docs/ does what its page says.

`support/docs/code_blocks.py` says how a block is marked.

Python is run, and what it prints is compared. Commands are parsed by the real parser; those that end by themselves and
need no network are run on the files of `docs_files/`. TOML, JSON and YAML are loaded by what reads them in real life.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

import toolglot
from support.docs.code_blocks import CONTINUES, ROOT, Block, blocks_of, find_blocks, is_one_session, pages
from support.docs.run_python_blocks import matches
from toolglot.cli.main import COMMANDS, build_parser
from toolglot.gateway.config.settings import read_config
from toolglot.simulator import script_of
from toolglot.upstream.providers import PROVIDERS

TESTS: Final = Path(__file__).parent
EXTRAS: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]

GATEWAY: Final = "http://127.0.0.1:8400"
ENDLESS: Final = {
    "chat": "a terminal to talk in",
    "serve": "runs until it is stopped",
    "simulate": "runs until it is stopped",
    "probe": "needs an endpoint",
    "inspect": "runs until it is stopped",
}
"""Commands that are parsed and not run, and why. `probe --dry-run` calls no endpoint."""

ID: Final = r"\b(?:call_|tg_|resp_|toolu_)?[0-9a-f]{12,}\b"
VARIES: Final = (
    (r"tgk_[\w-]{8,}", "tgk_KEY"),
    (r"tgk_[\w-]+…", "tgk_KEY…"),
    (ID, "ID"),
    (r"\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT", "NOW"),
    (r"\b\d{4}-\d\d-\d\d\b", "DATE"),
    (r"\b\d{8}-\d{6}-[0-9a-f]{8}\b", "SESSION"),
    (r"(?:/[\w.-]+)+/toolglot/", "/STATE/toolglot/"),
    (r"\b[\d.]+ m?s\b", "TIME"),
)
"""What differs from one run to the next, and what it is compared as."""

Ended = subprocess.CompletedProcess[str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the blocks of a page run."""
    home = tmp_path / "page"
    home.mkdir()
    return home


def lay_out(blocks: list[Block], folder: Path) -> None:
    """The files that commands of the docs name, and those that the page shows."""
    shutil.copytree(TESTS / "docs_files", folder, dirs_exist_ok=True)
    for block in blocks:
        if block.marker == "file":
            (folder / block.value).write_text(block.code, encoding="utf-8")


def environment(folder: Path) -> dict[str, str]:
    """No key, no proxy, no configuration of the user's, and a guard in every Python that is started."""
    kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "SYSTEMROOT") if name in os.environ}
    return {
        **kept,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "XDG_STATE_HOME": str(folder / ".state"),
        "DOCS_FOLDER": str(folder),
        "PYTHONPATH": str(TESTS / "docs_guard"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "COLUMNS": "120",
    }


def run(command: list[str], folder: Path, **options: Any) -> Ended:
    return subprocess.run(
        command, cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=300, **options
    )


# --- pages ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [page for page in pages() if blocks_of(page)])
def test_every_block_of_a_page_does_what_the_page_says(page: str, folder: Path) -> None:
    blocks = blocks_of(page)
    lay_out(blocks, folder)
    run_python(blocks, folder)
    for block in blocks:
        if block.marker in ("not run", "output") or block.language == "python":
            continue
        check = CHECKS.get(block.language)
        assert check is not None, f"{block.position}: nothing runs {block.language!r}; say why: <!-- not run: … -->"
        lay_out(blocks, folder)
        check(block, folder)


def run_python(blocks: list[Block], folder: Path) -> None:
    """The Python blocks of a page: one session where it says so, otherwise each on its own."""
    chosen: list[tuple[str, int, str, str | None]] = []
    for block, after in zip(blocks, [*blocks[1:], None], strict=True):
        if block.language == "python" and not block.marker:
            output = after.code if after is not None and after.marker == "output" else None
            chosen.append((block.position, block.line, block.code, output))
    together = [chosen] if blocks and is_one_session(blocks[0].page) else [[one] for one in chosen]
    for session in together:
        listed = folder.parent / "blocks.json"
        listed.write_text(json.dumps(session), encoding="utf-8")
        ended = run(
            [sys.executable, "-W", "error", str(TESTS / "support" / "docs" / "run_python_blocks.py"), str(listed)],
            folder,
        )
        assert ended.returncode == 0, f"{session[0][0]}:\n{ended.stdout}{ended.stderr}"


# --- languages --------------------------------------------------------------------------------------


def check_shell(block: Block, folder: Path) -> None:
    """`sh`: a command a line."""
    for line in joined_lines(block.code.splitlines()):
        words = shlex.split(line, comments=True)
        if not words or words[0] == "export":
            continue
        if words[0] == "make":
            shown = subprocess.run([*words, "--dry-run"], cwd=ROOT, capture_output=True, text=True)
            assert shown.returncode == 0, f"{block.position}: {line}: {shown.stderr}"
        elif words[:2] == ["pip", "install"]:
            check_install(block, words[2])
        elif words[0] == "pytest":
            ended = run([sys.executable, "-m", *words, "-q", "-p", "no:cacheprovider"], folder)
            assert ended.returncode == 0, f"{block.position}: {ended.stdout}"
        else:
            assert "toolglot" in words, f"{block.position}: nothing runs {line!r}; say why: <!-- not run: … -->"
            if is_run(words):
                ended = run(["bash", "-c", line], folder, stdin=subprocess.DEVNULL)
                assert ended.returncode in (0, 1), f"{block.position}: {line}\n{ended.stdout}{ended.stderr}"
                assert "Traceback" not in ended.stderr, f"{block.position}: {line}\n{ended.stderr}"


def check_install(block: Block, what: str) -> None:
    """From a clone: there is no package index that has toolglot."""
    found = re.fullmatch(r"\.(?:\[([\w,-]+)\])?", what)
    assert found is not None, f"{block.position}: toolglot is not on a package index: pip install '.[EXTRA]'"
    assert {*filter(None, (found[1] or "").split(","))} <= {*EXTRAS}, f"{block.position}: {what}"


def check_transcript(block: Block, folder: Path) -> None:
    """No language: `$ command` and what it writes."""
    commands = re.split(r"^\$ ", block.code, flags=re.MULTILINE)
    assert len(commands) > 1, f"{block.position}: this is no transcript; say what it is: <!-- not run: … -->"
    with gateway(folder) if GATEWAY in block.code else nullcontext(("", "")) as (address, banner):
        real: dict[str, str] = {}
        """Ids that the page shows, and those that were made now: a later command may name one."""
        for text in commands[1:]:
            line, expected = split_transcript(text)
            written = (
                banner if line == "make serve" else run_line(block, replaced(line, {**real, GATEWAY: address}), folder)
            )
            shown = written.replace(address, GATEWAY) if address else written
            assert matches(comparable(expected), comparable(shown)), f"{block.position}: {line}\n{shown}"
            real |= dict(zip(re.findall(ID, expected), re.findall(ID, shown), strict=False))


def run_line(block: Block, line: str, folder: Path) -> str:
    assert shlex.split(line)[0] in ("curl", "toolglot"), f"{block.position}: nothing runs {line!r}; say why"
    return run(["bash", "-c", f"({line}) 2>&1"], folder, stdin=subprocess.DEVNULL).stdout


def replaced(text: str, words: dict[str, str]) -> str:
    for old, new in words.items():
        text = text.replace(old, new)
    return text


def split_transcript(text: str) -> tuple[str, str]:
    """A command, with the lines that its quotes and backslashes go on in, and what it writes."""
    lines = text.splitlines()
    for end in range(1, len(lines) + 1):
        command = "\n".join(lines[:end])
        try:
            shlex.split(command)
        except ValueError:  # a quote that is still open
            continue
        if not command.endswith("\\"):
            return command, "\n".join(lines[end:])
    raise AssertionError(f"no command: {text}")


@contextmanager
def gateway(folder: Path) -> Iterator[tuple[str, str]]:
    """A gateway as `make serve` starts it without a configuration, on a free port: its address, and what it wrote."""
    if shutil.which("curl") is None:
        pytest.skip("there is no curl here")
    command = [str(Path(sys.executable).parent / "toolglot"), "serve", "--port", "0"]
    log = folder / "gateway.log"
    with (
        log.open("w") as written,
        subprocess.Popen(
            command, cwd=folder, env=environment(folder), stdout=subprocess.PIPE, stderr=written, text=True
        ) as server,
    ):
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            assert address.startswith("http://127.0.0.1:"), log.read_text()
            yield address, f"{log.read_text()}{address}\n"
        finally:
            server.terminate()


def check_toml(block: Block, folder: Path) -> None:
    """The gateway's configuration, with a key in every variable that it may name."""
    path = folder / "block.toml"
    path.write_text(block.code, encoding="utf-8")
    named = {variable for provider in PROVIDERS.values() for variable in provider.key_env}
    named |= {*re.findall(r'"(?:env:)?([A-Z_]+_KEY\w*)"', block.code)}
    assert read_config(str(path), {**dict.fromkeys(named, "k" * 32), "HOME": str(folder)}).origin


def check_json(block: Block, folder: Path) -> None:
    read = json.loads(block.code)
    if read.get("format") == "toolglot.conversation":
        assert toolglot.load(block.code.encode()).turns


def check_yaml(block: Block, folder: Path) -> None:
    read = yaml.safe_load(block.code)
    if "rules" in read:
        assert script_of(read).rules
    else:
        assert {*read} <= {"scrape_configs", "groups"}, f"{block.position}: no reader knows this"


CHECKS: Final = {
    "sh": check_shell,
    "": check_transcript,
    "toml": check_toml,
    "json": check_json,
    "yaml": check_yaml,
}


# --- commands ---------------------------------------------------------------------------------------


def joined_lines(lines: list[str]) -> Iterator[str]:
    """Lines that end with a backslash go on in the next one."""
    held = ""
    for line in lines:
        if line.endswith("\\"):
            held += line[:-1]
            continue
        yield held + line
        held = ""


def is_run(words: list[str]) -> bool:
    if "toolglot" not in words:
        return False
    command = next((word for word in words[words.index("toolglot") :] if word in COMMANDS), "")
    return command not in ENDLESS or (command == "probe" and "--dry-run" in words)


def comparable(text: str) -> str:
    for pattern, name in VARIES:
        text = re.sub(pattern, name, text)
    return re.sub(r" +$", "", re.sub(r"(?<=\S) {2,}", "  ", text), flags=re.MULTILINE)


def toolglot_commands() -> Iterator[tuple[str, list[str]]]:
    """Every `toolglot …` of every block, marked or not, with its arguments."""
    for page in pages():
        for block in blocks_of(page):
            if block.language not in ("sh", ""):
                continue
            for line in joined_lines(block.code.splitlines()):
                command = line.removeprefix("$ ") if not block.language else line
                if (block.language or line.startswith("$ ")) and "toolglot" in command:
                    yield from ((f"{block.position}: {line}", words) for words in arguments_of(command))


def arguments_of(line: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    before = ""
    for word in [*lexer, ";"]:
        if not set(word) <= set("();<>|&"):
            words.append(word)
            continue
        programs = [index for index, one in enumerate(words) if Path(one).name == "toolglot" and "=" not in one]
        if programs and not before.startswith(">") and all("=" in one or one == "sudo" for one in words[: programs[0]]):
            yield words[programs[0] + 1 :]
        words, before = [], word


LINES: Final = list(toolglot_commands())


@pytest.mark.parametrize(("where", "words"), LINES, ids=[where.partition(": ")[0] for where, _ in LINES])
def test_every_command_line_of_the_docs_is_one_that_there_is(
    where: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = next((word for word in words if word in COMMANDS), "")
    try:
        parsed: argparse.Namespace | None = build_parser([chosen]).parse_args(words)
    except SystemExit:
        parsed = None
    assert parsed is not None, f"{where}\n{capsys.readouterr().err}"
    assert parsed.command == chosen


# --- the tests themselves ---------------------------------------------------------------------------


def test_every_block_is_run_or_says_why_not() -> None:
    """The list of the reasons is printed (`pytest -rP`)."""
    every = [block for page in pages() for block in blocks_of(page)]
    reasons = {block.position: block.value for block in every if block.marker == "not run"}
    sys.stdout.write(f"{len(every) - len(reasons)} of {len(every)} blocks are run\n")
    for position, reason in reasons.items():
        sys.stdout.write(f"{position}: {reason}\n")
        assert len(reason) > 10, position
        assert all((ROOT / named).exists() for named in re.findall(r"tests/[\w/]+\.py", reason)), reason
    assert len(reasons) * 4 < len(every)
    assert not [block.position for block in every if block.language in ("py", "python3", "pycon", "bash", "console")]


@pytest.mark.parametrize("page", pages())
def test_every_link_within_the_docs_leads_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([\w./#:-]+)\)", re.sub(r"`[^`\n]*`", "", _without_code(text)))
    assert [link for link in links if not re.match(r"\w+:", link) and not _leads_somewhere(page, link)] == []


def _leads_somewhere(page: str, link: str) -> bool:
    name, _, anchor = link.partition("#")
    file = (ROOT / page).parent / name if name else ROOT / page
    return file.exists() and (not anchor or file.suffix != ".md" or anchor in _anchors(file))


def _without_code(text: str) -> str:
    return re.sub(r"^ *(`{3,}).*?^ *\1", "", text, flags=re.DOTALL | re.MULTILINE)


@lru_cache
def _anchors(file: Path) -> frozenset[str]:
    """The anchors of a page: those of its headings, as GitHub makes them, and its own."""
    text = file.read_text(encoding="utf-8")
    found = set(re.findall(r'<a (?:id|name)="([^"]+)"', text))
    for heading in re.findall(r"^#+ (.*)", _without_code(text), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        base = anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        count = 0
        while anchor in found:
            count += 1
            anchor = f"{base}-{count}"
        found.add(anchor)
    return frozenset(found)


def test_a_link_that_leads_nowhere_is_noticed() -> None:
    links = {"caching.md": True, "caching.md#what-breaks-it": True, "cli.md": False, "caching.md#no-such-part": False}
    assert {link: _leads_somewhere("docs/keys.md", link) for link in links} == links


def test_a_block_that_prints_something_else_is_noticed(folder: Path) -> None:
    for code, problem in (
        ("print(1)  # 2", "prints '1', not '2'"),
        ("print(1)", "which the page does not show"),
        ("for n in (1, 2):\n    print(n)\n    # 1\n    # 3", "prints '1\\n2', not '1\\n3'"),
        ("if len('a') > 1:\n    print(1)  # 1", "was never run"),
        ("1 + 1  # 3: a sum", "is 2, not 3"),
        ("open('/tmp/elsewhere', 'w')", "may not write outside"),
        ("import socket\nsocket.create_connection(('example.com', 80))", "may not use the network"),
    ):
        (block,) = find_blocks("page.md", f"```python\n{code}\n```\n")
        listed = folder.parent / "blocks.json"
        listed.write_text(json.dumps([(block.position, block.line, block.code, None)]), encoding="utf-8")
        ended = run([sys.executable, str(TESTS / "support" / "docs" / "run_python_blocks.py"), str(listed)], folder)
        assert ended.returncode == 1
        assert problem in ended.stderr, code


def test_a_block_that_prints_what_it_says_passes(folder: Path) -> None:
    code = "for n in (1, 2):\n    print(n, 'x')\n    # 1 x\n    # 2…\n\n[n]  # [2]: the last\nn  # a number\n"
    listed = folder.parent / "blocks.json"
    listed.write_text(json.dumps([("page.md:2", 2, code, None)]), encoding="utf-8")
    ended = run([sys.executable, str(TESTS / "support" / "docs" / "run_python_blocks.py"), str(listed)], folder)
    assert ended.returncode == 0, ended.stderr


def test_pages_that_are_one_session_have_more_than_one_block_of_python() -> None:
    for page in pages():
        blocks = [block for block in blocks_of(page) if block.language == "python" and not block.marker]
        if is_one_session(page):
            assert len(blocks) > 1, f"{page} says {CONTINUES!r}"


# --- examples ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("example", sorted(path.name for path in (ROOT / "examples").glob("*.py")))
def test_an_example_runs(example: str, folder: Path) -> None:
    """Without a key of any provider: simulated models answer."""
    ended = run([sys.executable, "-W", "error", str(ROOT / "examples" / example)], folder)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout
