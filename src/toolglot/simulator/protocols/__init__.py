"""How the simulator serves each protocol: one file per protocol, with the protocol's name."""
