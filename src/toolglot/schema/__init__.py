"""Tool definitions for a target: their names, how many, which parameters are required, and their schemas.

Law: nothing that the target accepts is changed, and every change is reported and can be undone.
"""

from toolglot.schema.lower import Loss, Lowered, lower
from toolglot.schema.names import Chosen, NameMap, Rename, choose_tools
from toolglot.schema.nulls import without_introduced_nulls
from toolglot.schema.required import Filtered, Removed, filter_required

__all__ = [
    "Chosen",
    "Filtered",
    "Loss",
    "Lowered",
    "NameMap",
    "Removed",
    "Rename",
    "choose_tools",
    "filter_required",
    "lower",
    "without_introduced_nulls",
]
