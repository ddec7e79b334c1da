"""The command line: one file a command, each loaded when it is asked for.

`main.py` finds the command and ends the process decently; `files/documents.py` reads input, `files/locations.py`
finds a JSON path in its text, `screen/terminal.py` writes for people, `targets.py` and `options.py` read what commands
share. Law: nothing here decides anything about a protocol; commands read, call the library, and show what it says.
"""
