"""The live loop: what the API says → what the brain plans → what is done about it."""
