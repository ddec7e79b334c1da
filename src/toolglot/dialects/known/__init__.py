"""The dialects that come with toolglot: a file for each, or for those that differ in a word. `DIALECTS` lists them."""
