"""The command line. `main.py` finds the command and runs it; `commands/` has one file per command.

- `files/` reads and writes request files: JSON, JSONL, SARIF.
- `screen/` writes for people: colours, tables, Markdown, the transcript of a chat.
- `session/` runs the sessions of `chat` and `run`.
- `options.py`, `targets.py` and `store_access.py` parse what several commands share.

Law: nothing here decides anything about a protocol. Commands read input, call the library, and print its result.
"""
