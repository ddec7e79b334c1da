"""Record the request bodies of real SDKs: `python scripts/record_bodies.py [SDK…]`.

Each SDK talks to a provider on loopback, in every scenario of its module in tests/sdk. The request bodies are
written to tests/recordings, beside the replies, which are written by hand; tests/translate/test_recorded_bodies.py
reads both.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from sdk.recording import FOLDER, INDEX, MODULES, load, record


def main(names: list[str], folder: Path = FOLDER) -> None:
    index_path = folder / INDEX.name
    index = json.loads(index_path.read_text("utf-8")) if index_path.exists() else {}
    for name in names or MODULES:
        sdk = load(name)
        bodies = record(sdk)
        for old in (folder / sdk.protocol).glob(f"{name}_*.request.json"):
            old.unlink()
        for path, body in bodies.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(body, "utf-8")
        index[name] = {"distribution": sdk.distribution, "version": sdk.version, "requests": len(bodies)}
        print(f"{name}: {len(bodies)} requests")
    index_path.write_text(json.dumps(index, indent=2, sort_keys=True) + "\n", "utf-8")


def _names() -> list[str]:
    parser = argparse.ArgumentParser(description="Record the request bodies of real SDKs.")
    parser.add_argument("names", nargs="*", metavar="SDK", help=f"default: {', '.join(MODULES)}")
    return list(parser.parse_args().names)


if __name__ == "__main__":
    main(_names())
