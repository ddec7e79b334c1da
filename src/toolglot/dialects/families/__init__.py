"""Readers of calls that several dialects share, or that are too long for the file of their dialect in `known/`."""
