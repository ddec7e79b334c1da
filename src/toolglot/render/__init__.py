"""A conversation as one that a target accepts: ordered pure passes, and a report of what each changed.

The renderer knows targets only by their profiles, and no field names of any protocol. A pass that has nothing to
change returns the same object.
"""

from toolglot.render.rendering import Rendered, render
from toolglot.render.tools.tool_table import EmittedTool, ToolTable

__all__ = ["EmittedTool", "Rendered", "ToolTable", "render"]
