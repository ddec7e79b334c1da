"""aider: `.aider.chat.history.md` in the folder of a project.

Markdown: `#### ` is the user, `> ` is what aider itself printed, anything else is the answer. There are no tool calls:
edits are in the text of the answers. Read only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from toolglot.agent_files.base import AgentFormat, AgentHome
from toolglot.agent_files.checks.read_only import examine_with
from toolglot.agent_files.json_lines import FileLine
from toolglot.agent_files.reading import ReadingLog, describe_with, first_prompt
from toolglot.agent_files.rendered_turns import issuer_of
from toolglot.agent_files.times import seconds_of
from toolglot.agent_files.values import AgentSession
from toolglot.agent_files.whole_files import no_lines, read_bytes
from toolglot.conversation import Conversation, Text, Turn

NAME: Final = "aider"
HISTORY: Final = ".aider.chat.history.md"
_START: Final = "# aider chat started at "
_MODELS: Final = ("> Main model: ", "> Model: ")
_MAX_PARENTS: Final = 40


def find(home: AgentHome) -> Iterator[Path]:
    """The history of the folder that the user is in, and that of the home folder: aider keeps no list."""
    named = home.environ.get("AIDER_CHAT_HISTORY_FILE", "")
    here = [home.directory, *home.directory.parents][:_MAX_PARENTS] if home.directory is not None else []
    top = next((index for index, folder in enumerate(here) if (folder / ".git").exists()), 0)
    files = [
        *([Path(named).expanduser()] if named else ()),
        *(folder / HISTORY for folder in (*here[: top + 1], home.folder)),
    ]
    yield from (path for path in dict.fromkeys(files) if path.is_file())


def recognises(path: Path, lines: Sequence[FileLine]) -> bool:
    """Whether it begins a chat."""
    return path.suffix == ".md" and any(line.data.startswith(_START.encode()) for line in lines)


# --- reading ----------------------------------------------------------------------------------------


def read(path: Path) -> AgentSession:
    """All chats of the file, as `aider --restore-chat-history` would continue them."""
    log = ReadingLog(path)
    turns: list[tuple[str, list[str]]] = []
    model = started = ""
    printed = 0
    for line in read_bytes(path).decode("utf-8", "replace").split("\n"):
        if line.startswith(_START):
            started = line.removeprefix(_START).strip()
            turns.append(("", []))
        elif line.startswith("> ") or line == ">":
            printed += 1
            model = next(
                (line[len(mark) :].split(" with ")[0].strip() for mark in _MODELS if line.startswith(mark)), model
            )
        else:
            is_prompt = line.startswith("#### ") or line == "####"
            role = "user" if is_prompt else "assistant"
            if not turns or (turns[-1][0] != role and (is_prompt or line.strip())):
                turns.append((role, []))
            turns[-1][1].append(line.removeprefix("####").removeprefix(" ") if is_prompt else line)
    if printed:
        log.add(f"{printed} lines that aider printed are left out", gravity="change")
    made = [_turn_of(role, "\n".join(words).strip(), model) for role, words in turns if role]
    spoken = tuple(turn for turn in made if turn.text)
    return AgentSession(
        agent=NAME,
        id=path.absolute().parent.name or "aider",
        path=str(path),
        title=first_prompt(spoken),
        directory=str(path.absolute().parent),
        model=model,
        updated=seconds_of(started),
        conversation=Conversation(spoken, model=model),
        report=log.report(),
    )


def _turn_of(role: str, text: str, model: str) -> Turn:
    if role == "user":
        return Turn("user", (Text(text),))
    return Turn("assistant", (Text(text),), issuer=issuer_of(NAME, model))


FORMAT: Final = AgentFormat(
    name=NAME,
    title="aider",
    aliases=("aider",),
    find=find,
    provider="openai",
    recognises=recognises,
    describe=describe_with(read),
    read=read,
    examine=examine_with(read),
    lines=no_lines,
)
