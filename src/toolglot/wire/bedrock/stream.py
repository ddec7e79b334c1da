"""Streams of the Bedrock Converse protocol, both ways: events in the binary frames of AWS."""

from __future__ import annotations

from typing import Final

from toolglot.wire.aws_frames import AwsFramer
from toolglot.wire.bedrock.stream_reading import Decoder
from toolglot.wire.bedrock.stream_writing import Encoder

__all__ = ["CONTENT_TYPE", "Decoder", "Encoder", "framer"]

CONTENT_TYPE: Final = "application/vnd.amazon.eventstream"
framer: Final = AwsFramer
