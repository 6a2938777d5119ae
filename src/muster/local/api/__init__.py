"""The API server of the embedded cluster: what kubectl and the Python clients talk to."""
