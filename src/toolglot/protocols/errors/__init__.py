"""Errors of providers: read from any body, named by kind, masked, and written in any protocol."""
