"""The batch function for engines that hand over tables: Ray Data, `datasets.map` and Spark.

    dataset.map_batches(TableFunction(target="openai"), batch_format="pyarrow")        # Ray Data
    dataset.map(TableFunction(target="openai"), batched=True, remove_columns=…)        # datasets
    frame.mapInArrow(TableFunction(target="openai").batches, schema)                   # Spark

Law: a row that is set aside stays as a row that has nothing but its reason, in `toolglot_error`, so that no engine
loses it without a word. Every table has the same schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from toolglot.bulk import formats
from toolglot.bulk.batch import AUTO, convert_batch
from toolglot.bulk.engine.files import extra
from toolglot.bulk.engine.tables import Columns, row_of, schema_of, table_of
from toolglot.bulk.options import DEFAULT_OPTIONS, BulkOptions

ERROR: Final = "toolglot_error"
"""The column with the reason why a row was set aside."""


class TableFunction:
    """A function from tables to tables that can be sent to another process.

    target, source: the formats of the rows.
    options: settings (`BulkOptions`).
    columns: how objects are written: as `json`, or messages as `struct`.
    """

    def __init__(
        self, *, target: str, source: str = AUTO, options: BulkOptions = DEFAULT_OPTIONS, columns: Columns = "json"
    ) -> None:
        self.target = target
        self.source = source
        self.options = options
        self.columns: Columns = columns

    @property
    def schema(self) -> Any:
        """The Arrow schema of the tables."""
        arrow = extra("pyarrow")
        return schema_of(formats.get(self.target), self.columns).append(arrow.field(ERROR, arrow.large_string()))

    def __call__(self, batch: Any) -> Any:
        """Convert a table, a batch of records, or columns as lists by name; the result is of the same kind."""
        if isinstance(batch, Mapping):  # datasets hands over one of its own, which is no dict
            names = list(batch)
            rows = [dict(zip(names, values, strict=True)) for values in zip(*batch.values(), strict=True)]
            return self._table(rows).to_pydict()
        return self._table(batch.to_pylist())

    def batches(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Convert batches of records one by one, as Spark wants it."""
        for batch in batches:
            yield from self._table(batch.to_pylist()).to_batches()

    def _table(self, rows: list[dict[str, Any]]) -> Any:
        given = [row_of(row) for row in rows]
        made = convert_batch(given, source=self.source, target=self.target, options=self.options)
        target = formats.get(self.target)
        table = table_of([output.as_row() for output in made.outputs], target, self.columns, self.schema)
        errors = [{ERROR: report.reason} for report in made.reports if report.fate == "set_aside"]
        if not errors:
            return table
        arrow = extra("pyarrow")
        return arrow.concat_tables([table, arrow.Table.from_pylist(errors, schema=self.schema)]).combine_chunks()
