"""Answers of the simulated providers in their own protocols, right ones and broken ones."""
