"""Muster: a gang scheduler for Kubernetes, with the elastic runtime that makes the gangs bend."""

__version__ = "0.1.0"
