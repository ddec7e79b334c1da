"""What the gateway keeps between requests: signed thoughts, stored responses, and the store's health."""
