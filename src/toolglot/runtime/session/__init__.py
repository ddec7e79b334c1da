"""A conversation that runs: the loop of model calls and tool calls, its events, limits and models."""
