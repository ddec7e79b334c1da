"""Gateways to test, clients of them, and their requests."""
