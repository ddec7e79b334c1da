"""Transports: requests to providers over HTTP, or to an ASGI app in this process."""
