"""Fuzzes every decoder: whatever the bytes, only an `InputError` may come out, and not late.

    python scripts/fuzz.py --minutes 10            every decoder, the time split evenly
    python scripts/fuzz.py --only gemini.reply     one of them
    python scripts/fuzz.py --replay FILE --only …  one input again, with its traceback

Coverage-guided with atheris, which is installed under .venv-fuzz the first time; where there is no atheris for this
Python the same mutations run blind, and the output says so. What is found is made small, written to build/fuzz and
shown; the exit code is then 1. Each decoder has a process of its own, so that a hang or a crash of one is a finding
too and does not end the others.
"""

from __future__ import annotations

import argparse
import importlib
import math
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from fuzz_decoders import Hunt

ROOT: Final = Path(__file__).resolve().parent.parent
FOUND: Final = ROOT / "build" / "fuzz"
PLACE: Final = ROOT / ".venv-fuzz" / f"python{sys.version_info.major}.{sys.version_info.minor}"
ATHERIS: Final = "atheris>=3.0"

PROTOCOLS: Final = tuple(sorted(path.parent.name for path in (ROOT / "src/toolglot/wire").glob("*/request.py")))
OTHERS: Final = ("load", "arguments", "overrides")
NAMES: Final = (*(f"{protocol}.{kind}" for protocol in PROTOCOLS for kind in ("request", "reply")), *OTHERS)

LARGEST: Final = 256 * 1024
POOL: Final = 500
GRACE_SECONDS: Final = 60


def hunt_for(name: str) -> Hunt:
    """A hunt, ready to begin. Imports toolglot only now: atheris must be there before it."""
    decoders = importlib.import_module("fuzz_decoders")
    made: Hunt = decoders.Hunt(name, decoders.decoder(name, PROTOCOLS), FOUND)
    return made


# --- engines ----------------------------------------------------------------------------------------


def imported_atheris() -> Any:
    """The module atheris, or None."""
    sys.path.insert(0, str(PLACE))
    importlib.invalidate_caches()
    try:
        return importlib.import_module("atheris")
    except ImportError:
        return None
    finally:
        sys.path.remove(str(PLACE))


def install_atheris() -> str:
    """Makes atheris ready; gives back why it is not, or nothing."""
    if imported_atheris() is not None:
        return ""
    print(f"==> installing {ATHERIS} into {PLACE} (once)", flush=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:"]
    done = subprocess.run(  # noqa: S603 - a fixed command
        [*command, "--target", str(PLACE), ATHERIS], capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("WARNING")]
        return lines[-1] if lines else f"pip ended with {done.returncode}"
    return "" if imported_atheris() is not None else "it was installed but cannot be imported"


def hunt_guided(atheris: Any, name: str, seconds: int) -> None:
    """Fuzzes one decoder with atheris, which ends the process when the time is over."""
    with atheris.instrument_imports(include=["toolglot"]):
        hunt = hunt_for(name)
    mutate = hunt.decoder.mutation()

    def mutated(data: bytes, max_size: int, seed: int) -> bytes:
        if seed % 8:
            made = mutate(data, seed)
            if made is not None and len(made) <= max_size:
                return made
        return bytes(atheris.Mutate(data, max_size))

    corpus = FOUND / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(hunt.decoder.seeds):
        (corpus / f"seed-{number}").write_bytes(seed)
    options = [f"-max_total_time={seconds}", f"-max_len={LARGEST}", "-timeout=20", "-rss_limit_mb=2048"]
    options += [f"-artifact_prefix={FOUND}/{name}-", "-verbosity=0", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], hunt.try_one, custom_mutator=mutated)
    atheris.Fuzz()


def hunt_blind(name: str, seconds: int) -> None:
    """The same without coverage: mutations of seeds, and of some mutations."""
    hunt = hunt_for(name)
    mutate = hunt.decoder.mutation()
    draw = random.Random(0)  # noqa: S311 - no secret hangs on it
    end = time.monotonic() + seconds
    pool = list(hunt.decoder.seeds)
    while time.monotonic() < end:
        data = draw.choice(pool)
        made = mutate(data, draw.getrandbits(32)) if draw.random() < 0.9 else None
        made = made if made is not None else _bytes_changed(data, draw)
        if len(made) > LARGEST:
            continue
        hunt.try_one(made)
        if hunt.tried % 50 == 0:  # some mutations are mutated further
            pool.append(made)
            if len(pool) > POOL:
                pool = list(hunt.decoder.seeds)
    print(f"stat::number_of_executed_units: {hunt.tried}", flush=True)


def _bytes_changed(data: bytes, draw: random.Random) -> bytes:
    at, size = draw.randint(0, len(data)), draw.choice((0, 1, 1, 4, 64))
    return data[:at] + draw.randbytes(draw.choice((0, 1, 2, 8))) + data[at + size :]


# --- runs -------------------------------------------------------------------------------------------


def run_one(name: str, seconds: int, engine: str) -> bool:
    """Fuzzes a decoder in a process of its own; says whether nothing was found."""
    command = [sys.executable, __file__, "--engine", engine, "--inside", str(seconds), "--only", name]
    try:
        done = subprocess.run(  # noqa: S603 - this script
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds + GRACE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        print(f"{name:<26}FOUND: it did not end in {seconds + GRACE_SECONDS} s")
        return False
    lines = done.stdout.decode(errors="replace").splitlines()
    tried = next((line.split()[-1] for line in lines if "number_of_executed_units" in line), "?")
    shown = _shown(lines)
    found = sum(line.startswith("FOUND") for line in lines)
    if done.returncode or tried == "?":
        found += 1
        shown += [f"  the process ended with {done.returncode}:", *(f"  {line}" for line in lines[-25:])]
    print(f"{name:<26}{tried:>10} inputs  {found} found", flush=True)
    print("".join(f"  {line}\n" for line in shown), end="", flush=True)
    return found == 0


def _shown(lines: list[str]) -> list[str]:
    """The findings among the lines that a process printed: each is four lines."""
    starts = [number for number, line in enumerate(lines) if line.startswith("FOUND")]
    return [line for start in starts for line in lines[start : start + 4]]


def run_all(names: tuple[str, ...], minutes: float, engine: str) -> int:
    FOUND.mkdir(parents=True, exist_ok=True)
    reason = "as asked" if engine == "blind" else install_atheris()
    chosen = "blind" if reason else "guided"
    seconds = max(1, math.floor(minutes * 60 / len(names)))
    said = f"blind mutation, no coverage ({reason})" if reason else "atheris, coverage-guided"
    print(f"==> fuzzing {len(names)} decoders, {seconds} s each: {said}", flush=True)
    clean = [run_one(name, seconds, chosen) for name in names]
    return 0 if all(clean) else 1


def inside(name: str, seconds: int, engine: str) -> None:
    atheris = imported_atheris() if engine == "guided" else None
    if atheris is None:
        hunt_blind(name, seconds)
    else:
        hunt_guided(atheris, name, seconds)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--minutes", type=float, default=10.0, help="for all decoders together")
    options.add_argument("--only", action="append", choices=NAMES, help="this decoder; may be given again")
    options.add_argument("--engine", choices=("guided", "blind"), default="guided")
    options.add_argument("--replay", type=Path, help="give this input to the decoder of --only")
    options.add_argument("--inside", type=int, help=argparse.SUPPRESS)
    given = options.parse_args()
    names = tuple(given.only or NAMES)
    if given.replay is not None:
        for name in names:
            hunt_for(name).decoder.run(given.replay.read_bytes())
        return 0
    if given.inside is not None:
        inside(names[0], given.inside, given.engine)
        return 0
    return run_all(names, given.minutes, given.engine)


if __name__ == "__main__":
    sys.exit(main())
