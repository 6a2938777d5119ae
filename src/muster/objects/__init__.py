"""Kubernetes objects as the scheduler reads them: plain data and the arithmetic Kubernetes defines on it."""
