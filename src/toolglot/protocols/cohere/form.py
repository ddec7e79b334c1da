"""How Cohere's chat protocol writes what canonical values do not tell apart.

Law: only the codecs of this folder read these structs. Everybody else asks `Form`.
"""

from __future__ import annotations

from typing import ClassVar, Final

from toolglot.protocols.fields.function_tools import FunctionToolForm

PROTOCOL: Final = "cohere"


class CohereTool(FunctionToolForm, frozen=True, tag="cohere.tool"):
    """A function tool."""

    protocol: ClassVar[str] = PROTOCOL
