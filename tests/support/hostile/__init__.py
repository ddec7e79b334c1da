"""What attacks gateways, sessions and stores, and what checks the outcome."""
