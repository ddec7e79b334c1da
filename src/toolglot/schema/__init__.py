"""Tool definitions for a target: their names, how many, and which parameters are required.

Law: nothing that the target accepts is changed, and what is changed can be told and undone.
"""

from toolglot.schema.names import Chosen, NameMap, Rename, choose_tools
from toolglot.schema.required import Filtered, Removed, filter_required

__all__ = [
    "Chosen",
    "Filtered",
    "NameMap",
    "Removed",
    "Rename",
    "choose_tools",
    "filter_required",
]
