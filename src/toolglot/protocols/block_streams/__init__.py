"""Streams that open, fill and close numbered blocks: what Anthropic's and Bedrock's readers and writers share."""
