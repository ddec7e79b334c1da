"""Which compactions are toolglot's own, and how a summary is written for a model that has no compactions.

Law: values only. The mark is meaningless to every provider; who made the summary keeps it, as
`gateway/state/summaries.py` does.
"""

from __future__ import annotations

from typing import Final

from toolglot.conversation.values import Compaction

OWN_MARK: Final = "toolglot.compaction."
"""How the encrypted form of a compaction begins that no provider made."""
SUMMARY_HEAD: Final = "Summary of the conversation so far, which stands for the messages that are not shown:"


def is_own(block: Compaction) -> bool:
    """Whether toolglot made a compaction, so that no provider can read its encrypted form."""
    return block.data is not None and block.data.startswith(OWN_MARK)


def summary_text(summary: str) -> str:
    """A summary as the user's words."""
    return f"{SUMMARY_HEAD}\n\n{summary}"
