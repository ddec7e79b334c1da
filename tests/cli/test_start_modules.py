"""What a start imports. Modules are counted, not seconds: most of the time of a start is their import."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

RUN = "import sys; from toolglot.cli.main import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
READY = (
    "import sys, toolglot.cli.main, toolglot.cli.commands.serve\n"
    "from toolglot.gateway.app import Gateway\n"
    "from toolglot.gateway.config.settings import config_from_environment\n"
    "from toolglot.gateway.http import serving\n"
    "serving.server_of(Gateway(config_from_environment({'HOME': sys.argv[1]})))\n"
    "print(*sys.modules, file=sys.stderr)"
)
"""All that `toolglot serve` needs to listen."""
UNUSED = (
    *("toolglot.simulator.app", "toolglot.simulator.providers", "toolglot.gateway.inspector.answers", "websockets"),
    *("toolglot.gateway.inspector.views", "splintr", "aiohttp", "rich", "toolglot.runtime", "toolglot.agent_files"),
    *("toolglot.bulk", "toolglot.discovery", "toolglot.dialects.known", "asyncpg", "redis", "jsonschema_rs"),
)
"""What a gateway imports when it is first needed."""


def modules(code: str, *words: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=240, check=False, cwd="/"
    )
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize(
    ("words", "limit"),
    [(["--version"], 340), (["--help"], 340), (["convert", "--help"], 420), (["lint", "--help"], 420)],
)
def test_a_command_imports_few_modules(words: list[str], limit: int) -> None:
    code = RUN.replace("main(sys.argv[1:])", "sys.argv[1:] and main(sys.argv[1:])")
    loaded = modules(code, *words)
    assert "toolglot.cli.main" in loaded
    assert len(loaded) <= limit
    assert not loaded & {"asyncio", "ssl", "rich", "jsonschema_rs", "toolglot.gateway", "toolglot.simulator.app"}


def test_a_gateway_that_is_ready_has_imported_only_what_requests_need(tmp_path: Path) -> None:
    loaded = modules(READY, str(tmp_path))
    assert "toolglot.gateway.endpoints.generate" in loaded
    assert "uvicorn" in loaded
    assert not loaded & set(UNUSED)
    assert len(loaded) <= 720


@pytest.mark.parametrize("name", ["upstream", "dialects", "gateway", "simulator", "bulk.formats"])
def test_no_name_that_is_imported_on_first_use_is_that_of_a_module(name: str) -> None:
    """Otherwise it would be the module once another import has loaded that, and what it stands for before."""
    package = importlib.import_module(f"toolglot.{name}")
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    assert not modules & set(vars(package)["_MODULES"])
