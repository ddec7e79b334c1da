"""Many transcripts: rows of training data and evaluations, from any form to any form.

    from toolglot import bulk

    batch = bulk.convert_batch(rows, source="sharegpt", target="openai")
    batch.rows, batch.reports, batch.counts

docs/bulk.md shows the formats, the command line and the engines.
"""

from __future__ import annotations

from toolglot.bulk.batch import convert_batch, find_prefixes, read_example
from toolglot.bulk.engine.run import convert_files
from toolglot.bulk.engine.table_function import TableFunction
from toolglot.bulk.example import Example
from toolglot.bulk.formats import DetectedFormat, detect, known_formats
from toolglot.bulk.formats.format import Format
from toolglot.bulk.options import BulkOptions
from toolglot.bulk.report import ConvertedBatch, OutputRow, RowReport

__all__ = [
    "BulkOptions",
    "ConvertedBatch",
    "DetectedFormat",
    "Example",
    "Format",
    "OutputRow",
    "RowReport",
    "TableFunction",
    "convert_batch",
    "convert_files",
    "detect",
    "find_prefixes",
    "known_formats",
    "read_example",
]
