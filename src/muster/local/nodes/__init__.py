"""Nodes of the embedded cluster: simulated ones by the thousand, and one kind that really runs commands."""
