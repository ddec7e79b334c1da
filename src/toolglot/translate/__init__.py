"""Requests, replies and streams from one protocol to another: protocols, history, dialects and render joined."""
