"""The Bedrock Converse protocol."""
