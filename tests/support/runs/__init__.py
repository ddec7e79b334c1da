"""How a test run is run: its folder, the end of its processes, the counts of a soak."""
