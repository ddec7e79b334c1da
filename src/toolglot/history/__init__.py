"""The write boundary: what a conversation takes in, under canonical ids, with every call paired with its result."""
