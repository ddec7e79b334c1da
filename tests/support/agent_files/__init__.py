"""Sessions of coding agents for tests."""
