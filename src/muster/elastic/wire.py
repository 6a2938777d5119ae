"""Frames between the processes of one job over TCP, for members of that job alone.

Both sides prove that they know the job's secret before anything else is read. A frame is a JSON head and a
payload whose CRC-32 travels in the head, so that what arrives is what was sent. Standard library only.
"""

import contextlib
import hmac
import json
import os
import secrets
import socket
import struct
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any
from zlib import crc32

_HEAD = struct.Struct("!IQ")
_NONCE = 16
MOST_HEAD = 64 << 20


class WireError(OSError):
    """The other side is gone, is not of this job, or sent something damaged."""


def job_secret() -> bytes:
    """The secret of this job, from the file the launcher or the cluster put next to the process."""
    path = os.environ.get("MUSTER_ELASTIC_SECRET_FILE")
    if not path:
        raise WireError("MUSTER_ELASTIC_SECRET_FILE is not set: start the script with muster.elastic.launch")
    secret = Path(path).read_bytes().strip()
    if len(secret) < 16:
        raise WireError(f"{path}: the job's secret is shorter than 16 bytes")
    return secret


def proof(secret: bytes, *parts: bytes) -> bytes:
    return hmac.new(secret, b"\0".join(parts), sha256).digest()


def split_address(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


class Wire:
    """One authenticated connection; used by one thread at a time."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, head: dict[str, Any], payload: Sequence[memoryview | bytes] = ()) -> None:
        size = sum(len(p) for p in payload)
        crc = 0
        for part in payload:
            crc = crc32(part, crc)
        text = json.dumps(head | {"crc": crc}).encode()
        self.sock.sendall(_HEAD.pack(len(text), size) + text)
        for part in payload:
            self.sock.sendall(part)

    def head(self) -> tuple[dict[str, Any], int]:
        """The next frame's head and the size of the payload that must be taken next."""
        length, size = _HEAD.unpack(self._exactly(_HEAD.size))
        if length > MOST_HEAD:
            raise WireError(f"a frame head of {length} bytes is not one of ours")
        return json.loads(self._exactly(length)), size

    def take(self, into: memoryview, crc: int) -> None:
        """The payload, straight into place; damage on the way is found here."""
        at = 0
        while at < len(into):
            got = self.sock.recv_into(into[at:])
            if not got:
                raise WireError("the connection ended inside a payload")
            at += got
        if crc32(into) != crc:
            raise WireError("a payload arrived damaged: its checksum differs")

    def call(self, head: dict[str, Any], payload: Sequence[memoryview | bytes] = ()) -> dict[str, Any]:
        """Send and wait for an answer without payload; an `error` in it is raised."""
        self.send(head, payload)
        answer, size = self.head()
        if size:
            raise WireError("an answer carries bytes nobody asked for")
        return checked(answer)

    def fetch(self, head: dict[str, Any], into: memoryview) -> dict[str, Any]:
        """Send and receive a payload of exactly the size of `into`."""
        self.send(head)
        answer, size = self.head()
        checked(answer)
        if size != len(into):
            raise WireError(f"asked for {len(into)} bytes, offered {size}")
        self.take(into, answer["crc"])
        return answer

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            got = self.sock.recv(size - len(data))
            if not got:
                raise WireError("the connection ended")
            data += got
        return bytes(data)


def checked(answer: dict[str, Any]) -> dict[str, Any]:
    if "error" in answer:
        raise WireError(str(answer["error"]))
    return answer


def connect(address: str, secret: bytes, timeout: float = 10.0) -> Wire:
    """Dial a member of this job and prove to each other that both are."""
    sock = socket.create_connection(split_address(address), timeout=timeout)
    wire, mine = Wire(sock), secrets.token_bytes(_NONCE)
    try:
        theirs = wire._exactly(_NONCE)
        sock.sendall(mine + proof(secret, b"dial", theirs, mine))
        claim = wire._exactly(32)
    except BaseException:
        sock.close()
        raise
    if not hmac.compare_digest(claim, proof(secret, b"answer", mine, theirs)):
        sock.close()
        raise WireError(f"{address} does not know this job's secret")
    return wire


def answer(sock: socket.socket, secret: bytes, timeout: float = 10.0) -> Wire:
    """The accepting side of `connect`."""
    sock.settimeout(timeout)
    wire, mine = Wire(sock), secrets.token_bytes(_NONCE)
    sock.sendall(mine)
    theirs, claim = wire._exactly(_NONCE), wire._exactly(32)
    if not hmac.compare_digest(claim, proof(secret, b"dial", mine, theirs)):
        raise WireError("a stranger was refused: it does not know this job's secret")
    sock.sendall(proof(secret, b"answer", theirs, mine))
    sock.settimeout(None)
    return wire
