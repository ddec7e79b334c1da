"""Bytes of a stream to events and back: server-sent events, JSON lines, AWS frames, and the order of events."""
