"""The brain: a pure, deterministic function from what is known and the time to what is to be done."""
