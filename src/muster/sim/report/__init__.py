"""Pictures of a run: one HTML file with everything in it, readable in light and dark, without a network."""
