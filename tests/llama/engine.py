"""The process of the test engine: `python -m llama.engine FOLDER`. It writes the model into the folder, loads it,
prints its address and serves until its input ends.

It is a process of its own so that a crash of the engine cannot take the tests down; only it needs the engine's
packages. It lives by its standard input so that it cannot outlive the tests.
"""

from __future__ import annotations

import sys
from pathlib import Path

import xllamacpp  # type: ignore[import-untyped]

from llama.model import NAME, write_model
from llama.server import SEED


def serve(folder: Path) -> None:
    model = folder / "model.gguf"
    write_model(model)
    server = xllamacpp.Server(_params(model))
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


def _params(model: Path) -> xllamacpp.CommonParams:
    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.model_alias = {NAME}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_parallel = 4
    params.kv_unified = True
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.sampling.seed = SEED
    params.verbosity = 0
    return params


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
