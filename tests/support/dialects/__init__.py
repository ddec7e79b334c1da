"""Texts with and without tool calls, and a toy dialect."""
