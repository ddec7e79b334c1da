"""The real SDKs as witnesses of the wire formats: what they send, and what they understand."""
