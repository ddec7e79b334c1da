"""The tools of a session: functions, definitions, and the box that holds them by name."""
