"""How the simulator serves each protocol: one file a protocol, named like it."""
