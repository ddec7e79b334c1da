"""`toolglot inspect`: the gateway's inspector, on files."""

from __future__ import annotations

import argparse
import contextlib
import webbrowser
from typing import Any, Final

from toolglot import profiles
from toolglot.cli import targets
from toolglot.cli.files.captured_files import CaptureReader
from toolglot.cli.files.output import open_output, refuse_existing
from toolglot.cli.options import add_profiles, add_quiet
from toolglot.cli.screen.terminal import Terminal, plural
from toolglot.errors import InputError

_DESCRIPTION: Final = """\
Look at requests in the browser: what the client sent, what a provider is sent, what is changed and why, and the same
request on every target. It is the inspector of 'toolglot serve', on files: a request, JSONL of requests, captures of a
gateway ('curl GATEWAY/toolglot/requests?format=jsonl'), a session ('toolglot sessions export'), or the session file of
a coding agent ('toolglot sessions list --agent all --format json' has the paths).

The page is served on this machine only, on a free port, until Ctrl-C. The address is written to stdout. With --export,
nothing is served: the page and the requests are written into one HTML file that can be passed on. Whatever looks like
a key is masked."""

_EPILOG: Final = """\
examples:
  toolglot inspect request.json --open
  toolglot inspect captures.jsonl
  toolglot inspect request.json --to mistral@mistral-large-latest --export request.html

exit codes: 0 stopped, as with Ctrl-C, or exported; 2 unreadable input, or the port is in use
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    parser.add_argument("files", metavar="FILE", nargs="+", help="what to look at; '-' is stdin")
    parser.add_argument(
        "--from", dest="source", metavar="PROTOCOL", default="", help="the protocol of requests (default: detect it)"
    )
    parser.add_argument(
        "--to",
        dest="target",
        metavar="TARGET[@MODEL]",
        help="the target that requests are shown for (default: their own)",
    )
    parser.add_argument("--port", type=int, default=0, help="the port (default: 0, which picks a free one)")
    parser.add_argument("--open", action="store_true", help="open the page in the browser")
    parser.add_argument("--export", metavar="OUT.html", help="write the page into a file instead of serving it")
    parser.add_argument("--force", action="store_true", help="overwrite existing files")
    add_profiles(parser)
    add_quiet(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    if arguments.export:
        refuse_existing(arguments.export, force=arguments.force)
    overrides = targets.read_overrides(arguments)
    source = (
        profiles.find(arguments.source, overrides=overrides, kind="source", path="--from") if arguments.source else ""
    )
    target = targets.parse_target(arguments.target, "--to", overrides) if arguments.target else None
    reader = CaptureReader(source, target, overrides)
    found: list[dict[str, Any]] = []
    for name in arguments.files:
        found += reader.read(name)
    from toolglot.gateway.inspector.file_inspector import FileInspector, grouped  # noqa: PLC0415 - needs the gateway

    captures = grouped(_with_own_ids(found), overrides)
    if arguments.export:
        from toolglot.gateway.inspector.exporting import exported_page  # noqa: PLC0415 - the same

        with open_output(arguments.export, terminal, force=arguments.force) as output:
            output.write(exported_page(captures, overrides))
        if not arguments.quiet:
            terminal.note(f"{plural(len(captures), 'request')} in {arguments.export}")
        return 0
    return _serve(FileInspector(captures, overrides), len(captures), arguments, terminal)


def _with_own_ids(captures: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Captures with ids of their own: two files may hold the same."""
    taken: set[str] = set()
    found = []
    for captured in captures:
        id = name = str(captured.get("id") or "request")
        number = 1
        while id in taken:
            number += 1
            id = f"{name}~{number}"
        taken.add(id)
        found.append({**captured, "id": id})
    return found


def _serve(app: Any, count: int, arguments: argparse.Namespace, terminal: Terminal) -> int:
    from toolglot.simulator.serving import LOOPBACK, listen, server_of  # noqa: PLC0415 - needs uvicorn

    server = server_of(app)
    try:
        opened = listen(arguments.port)
    except InputError as error:
        raise InputError(error.message, path="--port", hint=error.hint) from None
    with opened as sock:
        address = f"http://{LOOPBACK}:{sock.getsockname()[1]}/inspector"
        terminal.out.line(address)
        terminal.out.stream.flush()
        if not arguments.quiet:
            terminal.note(f"{plural(count, 'request')}; Ctrl-C ends it")
            terminal.err.stream.flush()
        if arguments.open:
            webbrowser.open(address)
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[sock])
    return 0
