"""Text, thinking, media and cache markers, as the target accepts them."""
