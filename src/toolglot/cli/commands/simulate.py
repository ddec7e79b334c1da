"""`toolglot simulate`: simulated providers, as strict as the real ones, on a local port."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import textwrap
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from toolglot.cli.options import add_quiet
from toolglot.cli.screen.terminal import Terminal, clean
from toolglot.errors import InputError
from toolglot.simulator import FAULTS, PROVIDERS, RecordedRequest, Script, Simulator, read_script, script_of, url_of
from toolglot.simulator.app import Log
from toolglot.simulator.responder import FAULT_HEADER
from toolglot.simulator.serving import LOOPBACK, listen, server_of

_MAIN: Final = ("anthropic", "openai", "gemini", "mistral", "deepseek", "kimi", "bedrock", "cohere", "ollama")
"""Providers whose addresses are printed; the others are listed by name."""

_OPTIONS: Final = {"keys": "key"}
"""Options that have another name than the script field that they set."""
_MAX_REASON: Final = 140
"""Characters of a refusal in a log line."""

_DESCRIPTION: Final = """\
Start simulated providers that are as strict as the real ones: Anthropic, OpenAI (Chat Completions and Responses),
Gemini, Mistral, DeepSeek, Kimi, Bedrock, Cohere, Ollama and others. Each request is checked as the provider would,
and refused with the provider's error. Replies come from a script, or from the default script, which calls the first
suitable tool and then quotes its result. Each request is logged as a line on stderr: its path, the status, and which
reply it got.

Any API key that is not empty is accepted. The server needs uvicorn: pip install '.[simulator]' in a clone. The
simulator has its own port: 8400 is the port of 'toolglot serve', the gateway."""


def _epilog() -> str:
    faults = "\n".join(f"  {name:<20} {description}" for name, description in FAULTS.items() if not name.isdigit())
    return f"""\
examples:
  toolglot simulate --port 8080
  toolglot simulate --script answers.yaml --pace 0.05 --chunk 4
  toolglot simulate --fault 429,retry_after=2 --fault reset,after=3
  ANTHROPIC_BASE_URL=http://127.0.0.1:8080/anthropic ANTHROPIC_API_KEY=any claude

faults, each for one request, in the order of the options:
  {", ".join(name for name in FAULTS if name.isdigit())}
{faults}

A request can set its own with a header: 'x-simulate: fault=reset, after=2', also chunk=, pace=, bytes=, calls=.

exit codes: 0 stopped, as with Ctrl-C; 2 the script or an option is invalid, or the port is in use
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _epilog()
    parser.add_argument(
        "--host", default=LOOPBACK, help="the address to listen on (default: 127.0.0.1, this machine only)"
    )
    parser.add_argument("--port", type=int, default=0, help="the port (default: 0, which picks a free one)")
    parser.add_argument("--script", metavar="FILE", help="the replies: JSON, .toml or .yaml (see docs/simulator.md)")
    parser.add_argument("--seed", type=int, metavar="N", help="the seed for ids and signatures")
    parser.add_argument("--chunk", type=int, metavar="N", help="characters per delta (default: 24)")
    parser.add_argument("--pace", type=float, metavar="SECONDS", help="time between the events of a stream")
    parser.add_argument("--bytes", type=int, metavar="N", help="send streams in pieces of N bytes")
    parser.add_argument("--key", action="append", metavar="KEY", help="accept only this API key; may be repeated")
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="FAULT",
        help="a fault to inject into a request; may be repeated",
    )
    add_quiet(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    simulator = Simulator(_script(arguments), log=None if arguments.quiet else _log(terminal))
    for fault in arguments.fault:
        with _naming_option("--fault"):
            simulator.fault(fault)
    server = server_of(simulator)
    with _naming_option("--"):
        opened = listen(arguments.port, arguments.host)
    with opened as sock:
        root = f"http://{_url_host(arguments.host)}:{sock.getsockname()[1]}"
        if not arguments.quiet:
            _print_addresses(root, terminal)
            for note in simulator.notes:
                terminal.note(note)
            terminal.err.stream.flush()
        terminal.out.line(root)
        terminal.out.stream.flush()
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[sock])
    return 0


@contextlib.contextmanager
def _naming_option(name: str) -> Iterator[None]:
    """Errors name the option. `--`: the option that sets the field of the script."""
    try:
        yield
    except InputError as error:
        field = error.path.removeprefix("$.").partition("[")[0]
        path = name if name != "--" else f"--{_OPTIONS.get(field, field)}"
        raise InputError(error.message, path=path, hint=error.hint) from None


def _log(terminal: Terminal) -> Log:
    """Writes a line for each request."""

    def write(recorded: RecordedRequest, seconds: float) -> None:
        words = clean(f"{recorded.method} {recorded.path} {recorded.status} {_describe_reply(recorded)}")
        terminal.err.line(f"{words} {seconds * 1000:.0f} ms")
        terminal.err.stream.flush()

    return write


def _describe_reply(recorded: RecordedRequest) -> str:
    """The reply that a request got, for the log."""
    if recorded.answered_by == "refused":
        why = ": ".join(filter(None, (recorded.rule, recorded.error)))
        return textwrap.shorten(f"refused: {why}", _MAX_REASON, placeholder=" …")
    if not recorded.fault:
        return recorded.answered_by
    is_all = recorded.answered_by in ("injected", FAULT_HEADER)
    return (
        f"fault {recorded.fault} ({recorded.answered_by})"
        if is_all
        else f"{recorded.answered_by}, fault {recorded.fault}"
    )


def _url_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _script(arguments: argparse.Namespace) -> Script:
    script = read_script(arguments.script) if arguments.script else Script()
    options: dict[str, Any] = {name: getattr(arguments, name) for name in ("seed", "chunk", "pace", "bytes")}
    options["keys"] = tuple(arguments.key) if arguments.key else None
    changed = msgspec.structs.replace(script, **{name: value for name, value in options.items() if value is not None})
    with _naming_option("--"):
        return script_of(changed)


def _print_addresses(root: str, terminal: Terminal) -> None:
    """Print the base address for each SDK."""
    terminal.err.line("base URLs:")
    for name in _MAIN:
        terminal.err.line(f"  {name:<10} {url_of(root, name)}")
    others = itertools.filterfalse(_MAIN.__contains__, PROVIDERS)
    terminal.err.line(f"  also       {', '.join(others)}")
