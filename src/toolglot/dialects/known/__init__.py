"""The dialects that come with toolglot: one file for each, or for those that differ in a word. `DIALECTS` lists them."""
