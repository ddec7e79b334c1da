"""Commands on session files of coding agents."""
