"""Pod addresses: a block per node for simulated pods, unique loopback addresses for real processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv4Network


@dataclass(slots=True)
class Addresses:
    """Hands out addresses of a network, lowest first after the last one, never one in use."""

    network: IPv4Network
    _used: set[int] = field(default_factory=set)
    _next: int = 1

    def take(self) -> str:
        """An address nobody has, or "" when there are none left."""
        size = self.network.num_addresses
        for step in range(size - 2):
            number = 1 + (self._next - 1 + step) % (size - 2)
            if number not in self._used:
                self._used.add(number)
                self._next = number + 1
                return str(self.network[number])
        return ""

    def claim(self, address: str) -> None:
        """Mark an address as used by somebody who had it before."""
        number = self._number(address)
        if number is not None:
            self._used.add(number)

    def give(self, address: str) -> None:
        number = self._number(address)
        if number is not None:
            self._used.discard(number)

    def _number(self, address: str) -> int | None:
        first = int(self.network.network_address)
        parts = address.split(".")
        if len(parts) != 4 or not all(part.isdigit() for part in parts):
            return None
        number = int.from_bytes(bytes(map(int, parts)), "big") - first
        return number if 0 < number < self.network.num_addresses else None


def node_block(number: int) -> IPv4Network:
    """The pod network of the nth node: 254 addresses of 10.0.0.0/8."""
    return IPv4Network(((10 << 24) + ((number % 65536) << 8), 24))
