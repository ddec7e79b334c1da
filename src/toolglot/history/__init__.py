"""The write boundary: turns enter a conversation with canonical ids, and every call is paired with its result."""
