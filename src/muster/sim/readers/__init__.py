"""Readers of traces, one module per format; `formats` is the table of them and tells them apart."""
