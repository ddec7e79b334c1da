"""Streams written by hand, one file a protocol."""
