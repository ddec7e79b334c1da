"""Conversations on the command line: `toolglot chat` and `toolglot run`."""
