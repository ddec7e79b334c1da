"""SECURITY.md names tests for what it claims: they are there, and every attacker has some."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "SECURITY.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", PAGE)))
ATTACKERS = (
    *(
        "A client",
        "Another key holder",
        "An upstream, or a man in the middle",
        "Model text",
        "A tool, or an MCP server",
    ),
    *("A web page on the same machine", "A package"),
)


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_each_test_that_is_named_exists(file: str, test: str) -> None:
    text = (ROOT / file).read_text()
    assert f"def {test}(" in text if test else "def test_" in text


def test_every_attacker_has_a_table_whose_rows_all_name_where_they_are_checked() -> None:
    sections = dict(re.findall(r"^### (.+?)\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))
    assert tuple(sections) == ATTACKERS
    for name, text in sections.items():
        rows = [line for line in text.splitlines() if line.startswith("|")][2:]
        assert rows, name
        assert [row for row in rows if not re.search(r"`(tests/\S+\.py|Makefile)", row.rsplit("|", 2)[1])] == []


def test_reports_go_where_they_are_private_and_the_readme_leads_here() -> None:
    assert "Report a vulnerability" in PAGE
    assert not re.search(r"[\w.]+@[\w.]+|https?://", PAGE)
    assert "(SECURITY.md)" in (ROOT / "README.md").read_text()
