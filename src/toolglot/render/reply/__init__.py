"""A provider's reply as the client accepts it."""
