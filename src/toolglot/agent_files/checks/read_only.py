"""What is wrong in a session whose file is only read: said, and not fixed.

Its agent repairs what it can when it resumes; a session that is handed over is complete in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from toolglot.agent_files.edits import Examination
from toolglot.agent_files.json_lines import FileLine
from toolglot.agent_files.values import AgentSession
from toolglot.errors import InputError

Examine = Callable[[Path, Sequence[FileLine], bool], Examination]


def examine_with(read: Callable[[Path], AgentSession]) -> Examine:
    """The examination of the sessions that `read` reads."""

    def examine(path: Path, _lines: Sequence[FileLine], includes_holes: bool) -> Examination:
        examination = Examination(includes_holes=includes_holes)
        try:
            session = read(path)
        except InputError as error:
            examination.add("broken-file", error.message)
            return examination
        if not session.conversation.turns:
            examination.add("no-messages", f"{path.name} has no messages")
        for entry in session.report:
            if entry.gravity == "loss":
                line = entry.path.rpartition(":")[2]
                examination.add("broken-line", entry.reason, int(line) if line.isdecimal() else 0)
        _examine_pairs(examination, session)
        return examination

    return examine


def _examine_pairs(examination: Examination, session: AgentSession) -> None:
    turns = session.conversation.turns
    calls = [call.id for turn in turns for call in turn.calls]
    results = {result.call_id for turn in turns for result in turn.results}
    for id in calls:
        if id not in results:
            examination.add("dangling-call", f"the call {id[:60]!r} has no result")
    for id in sorted(results - {*calls}):
        examination.add("orphan-result", f"a result for {id[:60]!r}, which no call has")
