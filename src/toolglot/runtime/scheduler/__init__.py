"""Runs the calls of a model: checked, approved, limited, cancelled, each exactly once."""
