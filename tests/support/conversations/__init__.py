"""Conversations and histories: generated, broken, and short ones written by hand."""
