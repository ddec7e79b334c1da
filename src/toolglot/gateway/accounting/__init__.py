"""Client keys, their limits, what was used and what it cost."""
