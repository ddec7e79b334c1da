"""From the model that a client names to the upstream that is called, with retries and failover."""
