"""The independent judge: a wire body and a profile → what the target would refuse, in its own words."""
