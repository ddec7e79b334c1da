"""The files of the inspector's page: what is vendored is unmodified, no text becomes HTML, one file can hold all."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from toolglot.gateway.inspector import export_page as exporter
from toolglot.gateway.inspector.export_page import FOLDER, export_page, joined_modules

VENDOR: Final = FOLDER / "vendor"
MODULES: Final = sorted(FOLDER.glob("*.js"))
FORBIDDEN: Final = (
    *(
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "dangerouslySetInnerHTML",
        "document.write",
        "eval(",
        "Function(",
    ),
    *("setAttribute('style'", "srcdoc", "javascript:", "createContextualFragment", "DOMParser", "http://", "https://"),
)
HOSTILE: Final = "</script><script>alert(1)</script><!-- \u2028"


def test_what_is_vendored_is_as_its_packages_have_it() -> None:
    recorded: dict[str, Any] = json.loads((VENDOR / "vendored.json").read_text("utf-8"))
    assert {path.name for path in VENDOR.iterdir()} == {*recorded, "vendored.json"}
    for name, about in recorded.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == about["sha256"], name
        assert all(about[field] for field in ("package", "version", "file", "licence")), name
    packages = {about["package"] for about in recorded.values()}
    assert packages == {name.split(".")[1].lower() for name in recorded if name.startswith("LICENSE.")}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_no_module_makes_html_or_code_of_text(path: Path) -> None:
    text = path.read_text("utf-8")
    assert [word for word in FORBIDDEN if word in text] == []


def test_the_page_has_no_script_and_no_style_of_its_own() -> None:
    text = (FOLDER / "index.html").read_text("utf-8")
    assert re.findall(r"<script(?![^>]* src=)", text) == []
    assert "<style" not in text
    assert re.findall(r"\s(?:style|on\w+)=", text) == []
    assert {*re.findall(r'(?:src|href)="([^"]+)"', text)} == {
        "data:,",
        "/inspector/static/style.css",
        "/inspector/static/main.js",
    }


def test_an_exported_page_is_one_file_that_its_data_cannot_leave() -> None:
    text = export_page({"info": {"mode": "export"}, "rows": [{"title": HOSTILE}], "details": {}})
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", text, re.DOTALL)
    assert [words for words, _ in scripts] == [' type="application/json" id="toolglot-data"', ' type="module"']
    assert json.loads(scripts[0][1])["rows"][0]["title"] == HOSTILE
    (policy,) = re.findall(r'http-equiv="content-security-policy" content="([^"]+)"', text)
    digest = base64.b64encode(hashlib.sha256(scripts[1][1].encode()).digest()).decode()
    assert policy.startswith(f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'sha256-")
    assert "connect-src" not in policy  # so it is none
    assert "unsafe" not in policy
    assert re.findall(r'(?:src|href)="(?!data:|#)', text.replace(scripts[1][1], "")) == []


def test_the_modules_are_one_module_in_an_exported_page(tmp_path: Path) -> None:
    joined = joined_modules()
    assert not re.search(r"^(import|export) ", joined, re.MULTILINE)
    for path in MODULES:
        assert path.read_text("utf-8").splitlines()[-2] in joined
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node here, which reads the module")
    file = tmp_path / "joined.mjs"
    file.write_text(joined, "utf-8")
    checked = subprocess.run([node, "--check", file], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr


def test_modules_that_declare_a_name_twice_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "main.js").write_text("import { a } from './other.js';\nconst same = a;\n")
    (tmp_path / "other.js").write_text("export const a = 1;\nfunction same() {}\n")
    monkeypatch.setattr(exporter, "FOLDER", tmp_path)
    with pytest.raises(ValueError, match="'same'"):
        joined_modules.__wrapped__()
