"""Files that commands read and write: requests, positions in them, rules, SARIF."""
