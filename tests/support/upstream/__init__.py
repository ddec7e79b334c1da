"""Servers that behave as upstreams do, byte by byte."""
