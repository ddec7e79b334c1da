"""Rows of datasets, written by hand, and conversations for the laws of bulk conversion."""
