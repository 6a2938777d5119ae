"""The embedded cluster: an API server, its store, controllers and nodes in one process, for laptops and tests."""
