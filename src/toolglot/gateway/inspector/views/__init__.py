"""What the inspector shows of one request: pure functions of captures."""
