"""Replies of the simulated providers in their own protocols: valid ones, refusals, and replies with faults."""
