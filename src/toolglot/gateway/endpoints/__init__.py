"""What the gateway serves: its table of endpoints, and what each of them answers."""
