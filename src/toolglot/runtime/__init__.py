"""Sessions, the scheduler and tools: what runs a conversation."""
