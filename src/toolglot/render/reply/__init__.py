"""A provider's reply as the client of another protocol takes it."""
