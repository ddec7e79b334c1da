"""What the gateway keeps of requests, for people who want to look at them."""
