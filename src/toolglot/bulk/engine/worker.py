"""A process that converts shards: tasks come as lines of JSON on stdin, what happens goes out as lines on stdout.

    {"task": "convert", "index": 3, "folder": "out.jsonl.work"}   →   {"rows": 1000, "bytes": 4194304} … {"done": 3}

It ends when stdin does, so also when the process that started it is killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec

from toolglot.bulk.engine.local import run_task
from toolglot.bulk.engine.plan import Plan, read_plan
from toolglot.errors import InputError


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the process that started it, which ends this one
    with contextlib.suppress(BrokenPipeError):  # it is gone
        _work()


def _work() -> None:
    plans: dict[str, Plan] = {}
    for line in sys.stdin.buffer:
        task = msgspec.json.decode(line)
        folder = Path(task["folder"])
        try:
            if task["folder"] not in plans:
                plan = read_plan(folder)
                if plan is None:
                    raise InputError("the run has no plan", path=str(folder))  # noqa: TRY301 - it is reported like others
                plans[task["folder"]] = plan
            run_task(plans[task["folder"]], task["task"], task["index"], folder, _report)
            _write({"done": task["index"]})
        except InputError as error:
            _write({"error": error.message, "path": error.path, "hint": error.hint})
        except BrokenPipeError:
            raise
        except OSError as error:
            _write({"error": error.strerror or str(error), "path": str(error.filename or folder), "hint": ""})


def _report(rows: int, size: int) -> None:
    _write({"rows": rows, "bytes": size})


def _write(event: dict[str, Any]) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(event) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
    os._exit(0)  # what is still in the pipe has no reader
