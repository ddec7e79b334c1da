"""Tools, calls and the tool choice, as the target accepts them."""
