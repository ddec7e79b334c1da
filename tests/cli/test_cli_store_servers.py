"""The commands on a store that is a server: they find what is kept there, and show no password."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.store import servers
from toolglot.store import display_location


@pytest.fixture(params=["postgres", "redis"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    made = {"postgres": servers.postgres_url, "redis": servers.redis_url}[request.param]
    return made(tmp_path)


def toolglot(folder: Path, where: str, *words: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "HOME": str(folder), "TEAM_STORE": where}
    command = [sys.executable, "-m", "toolglot", *words]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=120)


def test_keys_usage_doctor_and_serve_use_the_server_and_do_not_show_its_password(tmp_path: Path, where: str) -> None:
    secret = where.partition("://")[2].rpartition("@")[0].partition(":")[2]
    assert len(secret) > 3
    (tmp_path / "toolglot.toml").write_text('[gateway]\nport = 0\nstore = "env:TEAM_STORE"\n')
    added = toolglot(tmp_path, where, "keys", "add", "laptop")
    listed = toolglot(tmp_path, where, "keys", "list", "--format", "json")
    used = toolglot(tmp_path, where, "usage")
    looked = toolglot(tmp_path, where, "doctor", "--no-network", "--format", "json")
    for ended in (added, listed, used, looked):
        assert secret not in ended.stdout + ended.stderr, ended.args
    assert (added.returncode, listed.returncode, used.returncode) == (0, 0, 0)
    assert '"laptop"' in listed.stdout
    reported = [finding for finding in json.loads(looked.stdout)["checks"] if finding["part"] == "store"]
    assert [finding["state"] for finding in reported] == ["ok"]
    assert reported[0]["said"].startswith(display_location(where))

    away = where.replace(secret, "not-the-password")
    refused = toolglot(tmp_path, away, "serve")
    assert refused.returncode == 2
    assert display_location(where) in refused.stderr or "password" in refused.stderr
    assert "not-the-password" not in refused.stdout + refused.stderr
    assert "Traceback" not in refused.stderr
