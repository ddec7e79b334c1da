"""Stores, the servers behind them, and one that fails on request."""
