"""The package as users get it: its wheel, its imports, its commands and its generated pages."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = {"cli", "clients", "gateway", "mcp", "runtime", "simulator", "otel", "postgres", "redis", "bulk", "ray", "dev"}


def run(
    *command: str | Path, cwd: Path = ROOT, environ: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, env=environ)


def test_the_built_wheel_installs_and_imports_in_an_empty_environment(tmp_path: Path) -> None:
    built = run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert run(sys.executable, "-m", "venv", tmp_path / "env").returncode == 0
    python = tmp_path / "env" / "bin" / "python"
    installed = run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    assert installed.returncode == 0, installed.stderr
    code = (
        "import json, toolglot, importlib.metadata as m\n"
        "assert len(toolglot.profiles.names()) == 23\n"
        "assert toolglot.arguments.validate({'a': 1}, {'properties': {'a': {'type': 'string'}}})\n"
        "assert m.version('toolglot') == toolglot.__version__\n"
        "print(json.dumps([d.metadata['Name'].lower().replace('_', '-') for d in m.distributions()]))"
    )
    used = run(python, "-W", "error", "-c", code, cwd=tmp_path)
    assert used.returncode == 0, used.stderr
    base = {"toolglot", "msgspec", "jiter", "jsonschema-rs", "pip", "setuptools"}
    assert set(json.loads(used.stdout)) <= base
    shown = run(python, "-W", "error", "-m", "toolglot", "demo", cwd=tmp_path)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "Accepted by 5 of 5 through toolglot." in shown.stdout


def test_the_base_install_is_three_packages_and_everything_else_is_an_extra() -> None:
    names = {requirement.split(">")[0] for requirement in PROJECT["dependencies"]}
    assert names == {"msgspec", "jiter", "jsonschema-rs"}
    assert set(PROJECT["optional-dependencies"]) == EXTRAS


def test_importing_toolglot_imports_no_extra_and_no_validator() -> None:
    code = "import sys, toolglot; print(' '.join(sorted({name.split('.')[0] for name in sys.modules})))"
    loaded = set(run(sys.executable, "-c", code).stdout.split())
    extras = {
        "rich",
        "uvicorn",
        "aiohttp",
        "anyio",
        "docstring_parser",
        "mcp",
        "asyncpg",
        "redis",
        "ray",
        "hypothesis",
        "pytest",
    }
    assert "toolglot" in loaded
    assert not loaded & (extras | {"jsonschema_rs", "asyncio", "ssl", "http"})


def test_importing_toolglot_takes_little_work() -> None:
    """Counted in calls, which are the same on every machine: 160,000 of them take some 90 ms."""
    code = (
        "import sys; calls = 0\n"
        "def count(frame, event, arg): global calls; calls += event in ('call', 'c_call')\n"
        "sys.setprofile(count); import toolglot; sys.setprofile(None); print(calls)"
    )
    assert int(run(sys.executable, "-c", code).stdout) < 200_000


def test_importing_toolglot_loads_no_dialect_before_one_is_requested() -> None:
    code = (
        "import sys, toolglot; before = sorted(name for name in sys.modules if name.startswith('toolglot.dialects'))\n"
        "assert before == ['toolglot.dialects'], before\n"
        "assert 'hermes' in toolglot.dialects.names()\n"
        "assert all(getattr(toolglot.dialects, name) is not None for name in toolglot.dialects.__all__)\n"
        "assert toolglot.parse_text is toolglot.dialects.parse_text\n"
        "assert {'parse_text', 'Turn'} <= {*dir(toolglot)} and 'names' in dir(toolglot.dialects)\n"
        "assert not hasattr(toolglot, 'nonsense') and not hasattr(toolglot.dialects, 'nonsense')"
    )
    answered = run(sys.executable, "-c", code)
    assert answered.returncode == 0, answered.stderr


def test_the_public_surface_is_flat_sorted_and_complete() -> None:
    import toolglot  # noqa: PLC0415

    assert list(toolglot.__all__) == sorted(toolglot.__all__)
    assert all(hasattr(toolglot, name) for name in toolglot.__all__)
    for module in (toolglot, toolglot.dialects):
        assert {*module.__all__} <= {*dir(module)}
    assert toolglot.__version__ == PROJECT["version"]


def test_the_generated_pages_are_what_the_code_says() -> None:
    checked = run(sys.executable, "scripts/generate_docs.py", "--check")
    assert checked.returncode == 0, checked.stderr


def test_a_stale_page_is_noticed(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; sys.path.insert(0, 'scripts'); import generate_docs\n"
        f"generate_docs.DOCS = pathlib.Path({str(tmp_path)!r}); sys.argv = ['x', '--check']\n"
        "sys.exit(generate_docs.main())"
    )
    assert run(sys.executable, "-c", code).returncode == 1


def test_make_serve_is_toolglot_serve() -> None:
    shown = run("make", "--no-print-directory", "--dry-run", "serve", "ARGS=--port 0")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines()[-1].endswith("bin/toolglot serve --port 0")
