"""The simulated providers in this process."""
