"""Addresses for the pods of this machine: a slice of 127.0.0.0/8 that no other cluster here uses."""

from __future__ import annotations

import socket

_FIRST, _LAST = 64, 127
_PORT = 47064


def reserve_network() -> tuple[str, socket.socket]:
    """A network, and the socket that keeps it reserved until it is closed."""
    for number in range(_FIRST, _LAST + 1):
        claim = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            claim.bind((f"127.{number}.255.254", _PORT))
        except OSError:
            claim.close()
            continue
        return f"127.{number}.0.0/16", claim
    raise OSError(f"no free slice of loopback addresses: {_LAST - _FIRST + 1} clusters run on this machine already")
