"""Checks a session file, and replaces it with a healed one.

Law: a check never raises for what a file holds. The file that is written is the old one or the new one, whenever the
process ends; the old one is kept outside the agent's folders. Healing goes on until nothing is left that can be fixed;
if it does not come to an end, nothing is written.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from toolglot.agent_files.base import AgentFormat
from toolglot.agent_files.checks.shared_checks import examine_lines
from toolglot.agent_files.edits import Examination
from toolglot.agent_files.json_lines import FileLine
from toolglot.agent_files.values import SessionFault
from toolglot.errors import InputError

MAX_ROUNDS: Final = 8


class HealedFile(Struct, frozen=True, kw_only=True):
    """What a file would be if it were healed.

    before: its lines.
    after: the lines of the healed file.
    faults: what was found, in the order of the file.
    left: what is still wrong afterwards.
    """

    before: tuple[bytes, ...]
    after: tuple[bytes, ...]
    faults: tuple[SessionFault, ...]
    left: tuple[SessionFault, ...]

    @property
    def is_changed(self) -> bool:
        return self.before != self.after


def examine_file(format: AgentFormat, path: Path, *, includes_holes: bool = False) -> tuple[SessionFault, ...]:
    """What is wrong in a file."""
    if format.examine is None:
        return ()
    lines, broken = _whole_lines(path, list(format.lines(path)))
    return _sorted([*broken, *format.examine(path, lines, includes_holes).located(lines)])


def heal(format: AgentFormat, path: Path, *, includes_holes: bool = False, rewind: int = 0) -> HealedFile:
    """The healed lines of a file. Nothing is written.

    includes_holes: also fix what may be on purpose.
    rewind: first remove the last prompts of the user, and all that follows them.
    """
    if format.examine is None:
        hint = "it can be read, converted and handed over, not changed"
        raise InputError(f"the files of {format.title} are not checked", path=str(path), hint=hint)
    lines = list(format.lines(path))
    skipped = next((line for line in lines if line.is_skipped), None)
    if skipped is not None:
        hint = "hand the session over: that leaves out what cannot be read"
        raise InputError(f"line {skipped.number} cannot be kept: {skipped.problem}", path=str(path), hint=hint)
    before = tuple(line.data for line in lines)
    if rewind:
        lines = _rewound(format, path, lines, rewind)
    healed = _healed(format, path, lines, before, includes_holes, splits=True)
    if format.copy is None and healed.is_changed and _lost_results(format, path, lines, healed):
        # What was saved of a broken line took the place of something else: without it, nothing is lost.
        whole = _healed(format, path, lines, before, includes_holes, splits=False)
        return _only_lines(path, lines, healed) if _lost_results(format, path, lines, whole) else whole
    return healed


def _only_lines(path: Path, lines: list[FileLine], healed: HealedFile) -> HealedFile:
    """The file without the lines that nobody can read, where everything else would lose a result."""
    kept, _ = _whole_lines(path, lines, splits=False)
    message = "the rest cannot be fixed without losing results; --rewind N goes back to a sound point"
    left = (*healed.faults, SessionFault(kind="not-healed", message=message))
    return HealedFile(before=healed.before, after=tuple(line.data for line in kept), faults=healed.faults, left=left)


def _healed(
    format: AgentFormat,
    path: Path,
    lines: list[FileLine],
    before: tuple[bytes, ...],
    includes_holes: bool,
    *,
    splits: bool,
) -> HealedFile:
    """The lines once nothing is left that can be fixed. splits: whether to save whole objects of broken lines."""
    assert format.examine is not None  # noqa: S101 - checked by the caller
    lines, broken = _whole_lines(path, lines, splits=splits)
    examination = format.examine(path, lines, includes_holes)
    found = _sorted([*broken, *examination.located(lines)])
    for _ in range(MAX_ROUNDS):
        if not examination.has_edits:
            after = tuple(line.data for line in lines)
            return HealedFile(before=before, after=after, faults=found, left=_sorted(examination.faults))
        lines = examination.apply(lines)
        examination = format.examine(path, lines, includes_holes)
    raise InputError("the file cannot be healed: the fixes contradict each other", path=str(path), hint="use --rewind")


def _lost_results(format: AgentFormat, path: Path, lines: Sequence[FileLine], healed: HealedFile) -> bool:
    """Whether a call that had a result has none any more."""
    with tempfile.TemporaryDirectory(prefix="toolglot-") as folder:
        copy = Path(folder) / path.name.removesuffix(".zst")
        copy.write_bytes(b"".join(line.data for line in lines))
        had = _answered_calls(format, copy)
        copy.write_bytes(b"".join(healed.after))
        return _answered_calls(format, copy) < had


def _answered_calls(format: AgentFormat, path: Path) -> int:
    """How many calls have a real result."""
    turns = format.read(path).conversation.turns
    answered = {result.call_id for turn in turns for result in turn.results if not result.is_error}
    return sum(call.id in answered for turn in turns for call in turn.calls)


def _whole_lines(
    path: Path, lines: list[FileLine], *, splits: bool = True
) -> tuple[list[FileLine], list[SessionFault]]:
    """The lines that can be read, which everything else is judged by, and what was wrong with the others."""
    if not path.name.removesuffix(".zst").endswith(".jsonl"):
        return lines, []
    examination = Examination()
    examine_lines(examination, lines, splits=splits)
    if not examination.has_edits:
        return lines, examination.faults
    return examination.apply(lines), examination.located(lines)


def _rewound(format: AgentFormat, path: Path, lines: list[FileLine], count: int) -> list[FileLine]:
    """The lines before the last `count` prompts."""
    found = format.prompts(lines) if format.prompts is not None else []
    if count >= len(found):
        message = f"the session has {len(found)} prompt{'' if len(found) == 1 else 's'}, and at least one must stay"
        raise InputError(message, path=str(path), hint="--rewind with a smaller number")
    return [line for line in lines if line.number < found[-count]]


def _sorted(faults: Sequence[SessionFault]) -> tuple[SessionFault, ...]:
    return tuple(sorted(faults, key=lambda fault: fault.line))


def replace_file(path: Path, data: bytes, backups: Path, stamp: str) -> Path:
    """Put new bytes in the place of a file, and the old ones among the backups. Returns the backup."""
    target = Path(os.path.realpath(path))
    try:
        backups.mkdir(parents=True, exist_ok=True, mode=0o700)
        backup = _free_name(backups, f"{stamp}-{target.name}")
        shutil.copy2(target, backup)
        handle, name = tempfile.mkstemp(prefix=".toolglot.", suffix=".part", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            shutil.copymode(target, name)
            Path(name).replace(target)
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot write: {reason}", path=str(path), hint="check the folder") from None
    return backup


def write_new(path: Path, data: bytes) -> None:
    """Write a file that is not there yet; it appears when it is complete."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".toolglot.", suffix=".part", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            os.link(name, path)
        finally:
            Path(name).unlink(missing_ok=True)
    except FileExistsError:
        raise InputError("a session is there already", path=str(path), hint="it is not overwritten") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot write: {reason}", path=str(path), hint="check the folder") from None


def _free_name(folder: Path, name: str) -> Path:
    number = 0
    while True:
        found = folder / (name if not number else f"{number}-{name}")
        if not found.exists():
            return found
        number += 1
