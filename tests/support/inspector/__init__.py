"""What tests of the inspector share: a real browser, and conversations to look at."""
