"""Fuzzes every decoder: whatever the bytes, it may only raise an `InputError`, and soon.

    python scripts/fuzz.py --minutes 10            every decoder, the time split evenly
    python scripts/fuzz.py --only gemini.reply     one of them
    python scripts/fuzz.py --seed 7                the same mutations again
    python scripts/fuzz.py --replay FILE --only …  one input again, with its traceback

Half of the time is coverage-guided, with atheris, which is installed under .venv-fuzz the first time; the other half
gives the same mutations of what that found to the decoder as users run it, which reads many times as many bytes. Where
there is no atheris for this Python, all of the time is the latter, and the output says so. A finding is made small,
written to build/fuzz and shown; the exit code is then 1. Each decoder has a process of its own, so that a hang or a
crash of one is a finding too and does not end the others; as many run at once as there are cores (`--jobs`).
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from soak_report import Part, write_part

if TYPE_CHECKING:
    from fuzz_decoders import Hunt

ROOT: Final = Path(__file__).resolve().parent.parent
FOUND: Final = ROOT / "build" / "fuzz"
ATHERIS_FOLDER: Final = ROOT / ".venv-fuzz" / f"python{sys.version_info.major}.{sys.version_info.minor}"
ATHERIS: Final = "atheris>=3.0"

PROTOCOLS: Final = tuple(sorted(path.parent.name for path in (ROOT / "src/toolglot/protocols").glob("*/request.py")))
OTHERS: Final = ("load", "arguments", "overrides")
NAMES: Final = (*(f"{protocol}.{kind}" for protocol in PROTOCOLS for kind in ("request", "reply")), *OTHERS)

MAX_BYTES: Final = 256 * 1024
POOL: Final = 500
GRACE_SECONDS: Final = 180
"""A process that runs for this much longer than its time hangs: an instrumented start takes long on a busy machine."""
PHASES: Final = {"both": ("guided", "blind"), "guided": ("guided",), "blind": ("blind",)}
"""By engine: what is done with a decoder, one after the other, for the same time each."""


def hunt_for(name: str) -> Hunt:
    """A hunt, ready to begin. Imports toolglot only now: atheris must be there before it."""
    decoders = importlib.import_module("fuzz_decoders")
    made: Hunt = decoders.Hunt(name, decoders.decoder(name, PROTOCOLS), FOUND, counts_of(name))
    return made


def corpus_of(name: str) -> Path:
    """The inputs for which atheris saw new coverage."""
    return FOUND / "corpus" / name


def counts_of(name: str) -> Path:
    """The file in which a hunt counts its inputs: a process that libFuzzer ends prints nothing at its end."""
    return FOUND / f"{name}.counts"


# --- engines ----------------------------------------------------------------------------------------


def import_atheris() -> Any:
    """The module atheris, or None."""
    sys.path.insert(0, str(ATHERIS_FOLDER))
    importlib.invalidate_caches()
    try:
        return importlib.import_module("atheris")
    except ImportError:
        return None
    finally:
        sys.path.remove(str(ATHERIS_FOLDER))


def install_atheris() -> str:
    """Install atheris if it is missing. Returns why it cannot be used; empty: it can."""
    if import_atheris() is not None:
        return ""
    print(f"==> installing {ATHERIS} into {ATHERIS_FOLDER} (once)", flush=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:"]
    done = subprocess.run(  # noqa: S603 - a fixed command
        [*command, "--target", str(ATHERIS_FOLDER), ATHERIS], capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("WARNING")]
        return lines[-1] if lines else f"pip ended with {done.returncode}"
    return "" if import_atheris() is not None else "it was installed but cannot be imported"


def hunt_guided(atheris: Any, name: str, seconds: int, seed: int) -> None:
    """Fuzzes one decoder with atheris, which ends the process when the time is over."""
    with atheris.instrument_imports(include=["toolglot"]):
        hunt = hunt_for(name)
    mutate = hunt.decoder.mutation()

    def mutate_once(data: bytes, max_size: int, draw: int) -> bytes:
        if draw % 8:
            made = mutate(data, draw)
            if made is not None and len(made) <= max_size:
                return made
        return bytes(atheris.Mutate(data, max_size))

    corpus = corpus_of(name)
    corpus.mkdir(parents=True, exist_ok=True)
    for number, example in enumerate(hunt.decoder.seeds):
        (corpus / f"seed-{number}").write_bytes(example)
    options = [f"-max_total_time={seconds}", f"-max_len={MAX_BYTES}", "-timeout=20", "-rss_limit_mb=2048"]
    options += [f"-seed={seed + 1}", "-len_control=20"]  # 0 would be a random one; longer bodies soon
    options += [f"-artifact_prefix={FOUND}/{name}-", "-verbosity=0", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], hunt.try_one, custom_mutator=mutate_once)
    atheris.Fuzz()


def hunt_blind(name: str, seconds: int, seed: int) -> None:
    """The same without coverage: mutations of seeds, of what atheris found, and of some mutations."""
    hunt = hunt_for(name)
    begun_with = [*hunt.decoder.seeds, *(path.read_bytes() for path in sorted(corpus_of(name).glob("*")))]
    mutate = hunt.decoder.mutation()
    draw = random.Random(f"{seed}/{name}")  # noqa: S311 - not for a secret
    end = time.monotonic() + seconds
    pool = list(begun_with)
    while time.monotonic() < end:
        data = draw.choice(pool)
        made = mutate(data, draw.getrandbits(32)) if draw.random() < 0.9 else None
        made = made if made is not None else _change_bytes(data, draw)
        if len(made) > MAX_BYTES:
            continue
        hunt.try_one(made)
        if hunt.tried % 50 == 0:  # some mutations are mutated further
            pool.append(made)
            if len(pool) > len(begun_with) + POOL:
                pool = list(begun_with)
    hunt.write_counts()
    print(f"stat::number_of_executed_units: {hunt.tried}", flush=True)


def _change_bytes(data: bytes, draw: random.Random) -> bytes:
    at, size = draw.randint(0, len(data)), draw.choice((0, 1, 1, 4, 64))
    return data[:at] + draw.randbytes(draw.choice((0, 1, 2, 8))) + data[at + size :]


# --- runs -------------------------------------------------------------------------------------------


class HuntResult(NamedTuple):
    """What came of fuzzing one decoder."""

    found: int
    inputs: int = 0
    bytes: int = 0


def run_one(name: str, seconds: float, engine: str, seed: int) -> HuntResult:
    """Fuzzes a decoder in all phases of an engine."""
    phases = PHASES[engine]
    done = [run_phase(name, max(1, math.floor(seconds / len(phases))), phase, seed) for phase in phases]
    return HuntResult(*map(sum, zip(*done, strict=True)))


def run_phase(name: str, seconds: int, engine: str, seed: int) -> HuntResult:
    """Fuzzes a decoder in a process of its own."""
    command = [sys.executable, __file__, "--engine", engine, "--inside", str(seconds), "--only", name]
    command += ["--seed", str(seed)]
    counts_of(name).unlink(missing_ok=True)
    try:
        done = subprocess.run(  # noqa: S603 - this script
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds + GRACE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        print(f"{name:<26}{engine:<7}FOUND: it did not end in {seconds + GRACE_SECONDS} s")
        return HuntResult(1)
    lines = done.stdout.decode(errors="replace").splitlines()
    tried = next((line.split()[-1] for line in lines if "number_of_executed_units" in line), "?")
    shown = _finding_lines(lines)
    found = sum(line.startswith("FOUND") for line in lines)
    if done.returncode or tried == "?":
        found += 1
        shown += [f"  the process ended with {done.returncode}:", *(f"  {line}" for line in lines[-25:])]
    inputs, size = json.loads(counts_of(name).read_text()) if counts_of(name).exists() else (0, 0)
    text = f"{name:<26}{engine:<7}{tried:>10} inputs {size:>13,} bytes  {found} found\n"
    print(text + "".join(f"  {line}\n" for line in shown), end="", flush=True)
    return HuntResult(found, inputs, size)


def _finding_lines(lines: list[str]) -> list[str]:
    """The findings among the lines that a process printed: each is four lines."""
    starts = [number for number, line in enumerate(lines) if line.startswith("FOUND")]
    return [line for start in starts for line in lines[start : start + 4]]


def run_all(names: tuple[str, ...], minutes: float, engine: str, seed: int, jobs: int) -> int:
    begun = time.monotonic()
    FOUND.mkdir(parents=True, exist_ok=True)
    reason = "as requested" if engine == "blind" else install_atheris()
    chosen = "blind" if reason else engine
    seconds = minutes * 60 / math.ceil(len(names) / jobs)
    method = f"blind mutation, no coverage ({reason})" if reason else " and ".join(PHASES[engine])
    print(f"==> fuzzing {len(names)} decoders, {seconds:.0f} s each, {jobs} at once, seed {seed}: {method}", flush=True)
    with ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(lambda name: run_one(name, seconds, chosen, seed), names))
    spent = time.monotonic() - begun
    size = sum(one.bytes for one in results)
    inputs, wrong = sum(one.inputs for one in results), sum(one.found for one in results)
    print(f"{'together':<33}{inputs:>10} inputs {size:>13,} bytes, {size / spent:,.0f} a second")
    again = f"python scripts/fuzz.py --minutes {minutes:g} --engine {chosen} --seed {seed} --jobs {jobs}"
    write_part(Part("decoders fuzzed", again, spent, wrong, inputs=inputs, bytes=size, seed=str(seed)))
    return int(wrong > 0)


def inside(name: str, seconds: int, engine: str, seed: int) -> None:
    atheris = import_atheris() if engine == "guided" else None
    if atheris is None:
        hunt_blind(name, seconds, seed)
    else:
        hunt_guided(atheris, name, seconds, seed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0, help="for all decoders together")
    parser.add_argument("--only", action="append", choices=NAMES, help="this decoder; can be repeated")
    parser.add_argument("--engine", choices=[*PHASES], default="both")
    parser.add_argument("--seed", type=int, default=0, help="other numbers, other mutations")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="decoders that are fuzzed at once")
    parser.add_argument("--replay", type=Path, help="give this input to the decoder of --only")
    parser.add_argument("--inside", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = tuple(options.only or NAMES)
    if options.replay is not None:
        for name in names:
            hunt_for(name).decoder.run(options.replay.read_bytes())
        return 0
    if options.inside is not None:
        inside(names[0], options.inside, options.engine, options.seed)
        return 0
    return run_all(names, options.minutes, options.engine, options.seed, options.jobs)


if __name__ == "__main__":
    sys.exit(main())
