"""`toolglot completion`: a script that completes commands, options, targets and choices in bash, zsh or fish.

The script is generated from the argument parsers. Completing runs no Python.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from toolglot import dialects, profiles
from toolglot.cli.screen.terminal import Terminal

_DESCRIPTION: Final = """\
Print a script that completes the commands, options and targets of toolglot in your shell."""

_EPILOG: Final = """\
examples:
  bash   toolglot completion bash > ~/.local/share/bash-completion/completions/toolglot
  zsh    toolglot completion zsh > "${fpath[1]}/_toolglot"
  fish   toolglot completion fish > ~/.config/fish/completions/toolglot.fish

  or for this shell only: eval "$(toolglot completion bash)"
"""

_TARGET_OPTIONS: Final = ("--for", "--to", "--from")


class Option(Struct, frozen=True):
    """An option: its names, its help, and its possible values."""

    names: tuple[str, ...]
    help: str
    values: tuple[str, ...] = ()
    takes_value: bool = False


class CompletionCommand(Struct, frozen=True):
    name: str
    help: str
    options: tuple[Option, ...]
    words: tuple[str, ...] = ()
    """The choices of the positional argument. Empty: it is a file."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    parser.add_argument("shell", choices=tuple(_SCRIPTS), help="the shell")


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    terminal.write_data(_SCRIPTS[arguments.shell](_commands()).encode())
    return 0


def _commands() -> list[CompletionCommand]:
    from toolglot.cli.main import COMMANDS, build_parser  # noqa: PLC0415 - it imports this module

    parser = build_parser(list(COMMANDS))
    (subparsers,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))  # noqa: SLF001
    return [_command(name, COMMANDS[name], sub) for name, sub in subparsers.choices.items()]


def _command(name: str, summary: str, parser: argparse.ArgumentParser) -> CompletionCommand:
    actions = parser._actions  # noqa: SLF001 - argparse has no public way to list them
    options = tuple(_option(action) for action in actions if action.option_strings)
    words = tuple(str(word) for action in actions if not action.option_strings for word in (action.choices or ()))
    return CompletionCommand(name, summary, options, words)


def _option(action: argparse.Action) -> Option:
    values = tuple(str(choice) for choice in action.choices or ())
    if not values and any(name in _TARGET_OPTIONS for name in action.option_strings):
        values = profiles.names()
    if "--dialect" in action.option_strings:
        values = ("auto", *dialects.names())
    return Option(tuple(action.option_strings), action.help or "", values, action.nargs != 0)


# --- scripts ----------------------------------------------------------------------------------------


def _bash(commands: list[CompletionCommand]) -> str:
    cases = "\n".join(
        f"        {command.name})\n"
        f'            options="{" ".join(name for option in command.options for name in option.names)}"\n'
        f'            words="{" ".join(command.words)}"\n'
        f'            case "$previous" in\n{_bash_values(command)}'
        "            esac\n            ;;"
        for command in commands
    )
    names = " ".join(command.name for command in commands)
    return f"""\
# bash completion for toolglot
_toolglot() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
    local command="" options="--help --version --color" words="" word
    COMPREPLY=()
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$word" in -*) ;; *) command="$word"; break ;; esac
    done
    case "$command" in
{cases}
        *) words="{names}" ;;
    esac
    if [[ "$current" == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$current"))
    elif [[ -n "$words" ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$current"))
    else
        COMPREPLY=($(compgen -f -- "$current"))
    fi
}}
complete -o filenames -F _toolglot toolglot
"""


def _bash_values(command: CompletionCommand) -> str:
    return "".join(
        f"                {'|'.join(option.names)})"
        f' COMPREPLY=($(compgen -W "{" ".join(option.values)}" -- "$current")); return ;;\n'
        for option in command.options
        if option.values
    )


def _zsh(commands: list[CompletionCommand]) -> str:
    names = "\n".join(f"        {_quote(f'{command.name}:{_plain_help(command.help)}')}" for command in commands)
    cases = "\n".join(_zsh_case(command) for command in commands)
    return f"""\
#compdef toolglot
# zsh completion for toolglot
_toolglot() {{
    local -a commands
    commands=(
{names}
    )
    if (( CURRENT == 2 )); then
        _describe 'command' commands
        return
    fi
    local command="$words[2]"
    shift words
    (( CURRENT-- ))
    case "$command" in
{cases}
    esac
}}
if [ "$funcstack[1]" = "_toolglot" ]; then
    _toolglot "$@"
else
    compdef _toolglot toolglot
fi
"""


def _zsh_case(command: CompletionCommand) -> str:
    lines = []
    for option in command.options:
        action = f"({' '.join(option.values)})" if option.values else "_files"
        value = f":value:{action}" if option.takes_value else ""
        lines += [f"            {_quote(f'{name}[{_plain_help(option.help)}]{value}')}" for name in option.names]
    rest = f"'*:word:({' '.join(command.words)})'" if command.words else "'*:file:_files'"
    listed = " \\\n".join([*lines, f"            {rest}"])
    return f"        {command.name})\n            _arguments \\\n{listed}\n            ;;"


def _fish(commands: list[CompletionCommand]) -> str:
    lines = ["# fish completion for toolglot", "complete -c toolglot -f -n __fish_use_subcommand -l version -l help"]
    for command in commands:
        lines.append(
            f"complete -c toolglot -f -n __fish_use_subcommand -a {command.name} -d {_quote(_plain_help(command.help))}"
        )
        seen = f"-n '__fish_seen_subcommand_from {command.name}'"
        if command.words:
            lines.append(f"complete -c toolglot -f {seen} -a {_quote(' '.join(command.words))}")
        lines += [_fish_option(option, seen) for option in command.options]
    return "\n".join(lines) + "\n"


def _fish_option(option: Option, seen: str) -> str:
    names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
    values = f" -x -a {_quote(' '.join(option.values))}" if option.values else " -r" if option.takes_value else ""
    return f"complete -c toolglot {seen} {names}{values} -d {_quote(_plain_help(option.help))}"


def _plain_help(text: str) -> str:
    """A help text without characters that are special in shells."""
    kept = text.replace("'", "").replace("[", "(").replace("]", ")").replace(":", " -")
    return kept.partition(";")[0].strip()


def _quote(text: str) -> str:
    return f"'{text}'"


_SCRIPTS: Final[dict[str, Callable[[list[CompletionCommand]], str]]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
