"""The parts of a Chat Completions stream reader: chunks, calls, repeated text, fields besides the blocks."""
