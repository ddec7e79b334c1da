"""`dedupe_prefix` over a whole run: rows that are the beginning of a longer row, wherever that row is.

First each shard writes a hash of every row, and hashes of its proper beginnings. Then the hashes of all shards are
compared, a part of them at a time, and each shard gets the list of its rows that are merged.

Law: the result does not depend on the shards; memory depends on `HELD_ROWS`, not on the input.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from toolglot.bulk import formats
from toolglot.bulk.batch import PREFIX_REASON, SAME_REASON, read_example
from toolglot.bulk.engine.plan import Plan
from toolglot.bulk.engine.shard import Progress, write_atomically
from toolglot.bulk.engine.tables import read_batches
from toolglot.bulk.meaning import prefix_hashes
from toolglot.errors import InputError

HELD_ROWS: Final = 2_000_000
"""How many rows are compared at a time."""
_HASH: Final = 16
_ROW: Final = 4
_READ: Final = 65_536
_NAMES: Final = ("whole", "begins", "merged")


def hash_shard(
    plan: Plan,
    index: int,
    folder: Path,
    *,
    progress: Progress = lambda _rows, _bytes: None,
    limit: int | None = None,
) -> int:
    """Write the hashes of the rows of a shard, or of the first ones; how many rows these are."""
    paths = [_path(folder, name, index) for name in _NAMES[:2]]
    if limit is None and all(path.exists() for path in paths):
        return 0
    paths[0].parent.mkdir(exist_ok=True)
    shard = plan.shards[index]
    file = plan.inputs[shard.file]
    whole, begins = bytearray(), bytearray()
    number = 0
    framing = formats.get(plan.source).framing
    for batch, size in read_batches(file.path, file.kind, shard.start, shard.end, framing=framing):
        for row in batch if limit is None else batch[: max(limit - number, 0)]:
            try:
                hashes = prefix_hashes(read_example(row, plan.source, plan.options)[0])
            except (InputError, RecursionError):
                hashes = []
            if hashes:
                whole += hashes[-1] + number.to_bytes(_ROW, "big")
                begins += b"".join(hashes[:-1])
            number += 1
        progress(0, size)
        if limit is not None and number >= limit:
            break
    for path, data in zip(paths, (whole, begins), strict=True):
        write_atomically(path, bytes(data))
    return number


def find_merged(plan: Plan, folder: Path, indexes: Sequence[int] | None = None) -> None:
    """Compare the hashes of shards, of all of them by default, and write which rows of each are merged."""
    shards = plan.shards if indexes is None else [plan.shards[index] for index in indexes]
    count = sum(_path(folder, "whole", shard.index).stat().st_size // (_HASH + _ROW) for shard in shards)
    groups = max(-(-count // HELD_ROWS), 1)
    found: dict[int, dict[str, str]] = {shard.index: {} for shard in shards}
    for group in range(groups):
        first: dict[bytes, tuple[int, int]] = {}
        for shard in shards:
            for entry in _entries(_path(folder, "whole", shard.index), _HASH + _ROW, group, groups):
                row = int.from_bytes(entry[_HASH:], "big")
                if first.setdefault(entry[:_HASH], (shard.index, row)) != (shard.index, row):
                    found[shard.index][str(row)] = SAME_REASON
        for shard in shards:
            for entry in _entries(_path(folder, "begins", shard.index), _HASH, group, groups):
                place = first.pop(entry, None)
                if place is not None:
                    found[place[0]][str(place[1])] = PREFIX_REASON
    for index, rows in found.items():
        write_atomically(_path(folder, "merged", index), msgspec.json.encode(rows))


def merged_rows(folder: Path, index: int) -> dict[int, str] | None:
    """The rows of a shard that are merged; None if nothing is known of them."""
    try:
        known = msgspec.json.decode(_path(folder, "merged", index).read_bytes(), type=dict[str, str])
    except FileNotFoundError:
        return None
    return {int(row): reason for row, reason in known.items()}


def _path(folder: Path, name: str, index: int) -> Path:
    return folder / "prefixes" / f"{name}-{index:05}"


def _entries(path: Path, size: int, group: int, groups: int) -> Iterator[bytes]:
    with path.open("rb") as stream:
        while data := stream.read(size * _READ):
            for start in range(0, len(data), size):
                if groups == 1 or int.from_bytes(data[start : start + 4], "big") % groups == group:
                    yield data[start : start + size]
