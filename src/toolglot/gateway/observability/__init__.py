"""What the people who run a gateway see: the request log, metrics, traces, checks."""
