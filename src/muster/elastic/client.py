"""An agent's side of the authority's HTTP: one thread listens for documents, another one speaks.

The authority may be gone for a while; nothing here gives up, and training goes on meanwhile.
"""

import http.client
import json
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from muster.elastic.protocol import Ack, Document, Status, decode, encode
from muster.elastic.wire import proof, split_address

PAUSE = 0.1


class Unreachable(OSError):
    """No answer from the authority."""


class NotOurs(RuntimeError):
    """The authority refuses us for good: another secret, another job."""


def ask(address: str, secret: bytes, path: str, body: dict[str, Any], timeout: float) -> tuple[int, dict[str, Any]]:
    """One request on a connection of its own."""
    connection = http.client.HTTPConnection(*split_address(address), timeout=timeout)
    try:
        data = json.dumps(body).encode()
        sign = proof(secret, path.encode(), data).hex()
        connection.request("POST", path, data, {"X-Muster-Proof": sign, "Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Unreachable(f"{address}: {error}") from None
    finally:
        connection.close()


@dataclass(slots=True)
class Line:
    """The connection to the authority. `status` is asked for whenever something is sent."""

    address: str
    secret: bytes
    job: str
    status: Callable[[], tuple[Status, dict[str, Any]]]
    deliver: Callable[[Document], None]
    beat: float
    refused: Callable[[str], None]
    seen: tuple[int, int] = (0, 0)  # (term, version)
    outbox: "queue.SimpleQueue[Ack | None]" = field(default_factory=queue.SimpleQueue)

    def start(self) -> None:
        threading.Thread(target=self._listen, daemon=True, name="listen").start()
        threading.Thread(target=self._speak, daemon=True, name="speak").start()

    def tell(self, ack: Ack | None = None) -> None:
        """Say the current status now, with an acknowledgement if there is one."""
        self.outbox.put(ack)

    def _listen(self) -> None:
        while True:
            self._sync(None, self.beat)

    def _speak(self) -> None:
        while True:
            ack = self.outbox.get()
            while ack is None and not self.outbox.empty():
                ack = self.outbox.get()
            while not self._sync(ack, 0.0) and ack is not None:
                time.sleep(PAUSE)

    def _sync(self, ack: Ack | None, wait: float) -> bool:
        """One exchange; False if nobody answered. What was refused needs no repeating."""
        status, account = self.status()
        body = {"status": encode(status), "seen": self.seen[1], "wait": wait, "account": account}
        if ack:
            body["ack"] = encode(ack)
        try:
            code, data = ask(self.address, self.secret, f"/v1/jobs/{self.job}/sync", body, wait + 5.0)
        except Unreachable:
            time.sleep(PAUSE)
            return False
        if code == 200:
            self._hear(decode(Document, data))
        elif code == 409 and data.get("stale"):
            time.sleep(PAUSE if wait else 0.0)
        else:
            self.refused(str(data.get("error", code)))
        return True

    def _hear(self, document: Document) -> None:
        at = (document.term, document.version)
        if at > self.seen:
            self.seen = at
            self.deliver(document)
