"""One file a command: `configure(parser)` adds its options, `run(arguments, terminal)` returns its exit code."""
