"""Streams of the Bedrock Converse protocol, both ways: events in the binary frames of AWS."""

from __future__ import annotations

from typing import Final

from toolglot.protocols.bedrock.stream_reader import Decoder
from toolglot.protocols.bedrock.stream_writer import Encoder
from toolglot.protocols.framing.aws_frames import AwsFramer

__all__ = ["Decoder", "Encoder", "framer"]

framer: Final = AwsFramer
