"""Tools that a session can run: functions, definitions, and the box that holds them under their names."""
