"""The HTTP side of the gateway: connections, requests, limits, workers, graceful shutdown."""
