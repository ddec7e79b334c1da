"""The probes, one file a subject: what is asked of an endpoint, and what its answer means."""
