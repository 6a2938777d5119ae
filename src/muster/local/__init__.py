"""The embedded cluster: an API server, its store, controllers nodes, in one process for laptops and tests."""
