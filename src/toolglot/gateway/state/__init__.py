"""What the gateway stores between requests: signed thinking and stored responses; and the health of the store."""
