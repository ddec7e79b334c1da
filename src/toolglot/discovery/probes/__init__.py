"""The probes, one file per subject: what is sent to an endpoint, and what its response means."""
