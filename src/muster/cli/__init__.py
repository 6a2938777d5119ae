"""The `muster` command, one module per verb."""
