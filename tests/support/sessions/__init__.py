"""Sessions, the tools that they run, and processes that hold one."""
