"""Calls, results and tool definitions written as text, for models without tools of their own."""
