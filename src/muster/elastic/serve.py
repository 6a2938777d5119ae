"""The authority over HTTP: agents long-poll the document, say what they are, and acknowledge epochs.

The state machine is in `authority`; here are its clock, its record and its listeners. Whoever started it may
stop it at any time: another one continues from the record, and training does not notice.
"""

import hmac
import json
import select
import socket
import sys
import threading
import time
from dataclasses import asdict, dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from muster.elastic.authority import Authority, Record, Terms, inherit, summary
from muster.elastic.ledger import Account
from muster.elastic.picture import drawn, metrics, report
from muster.elastic.protocol import Ack, Document, Phase, Refused, Stale, Status, decode, encode
from muster.elastic.record import RecordFile
from muster.elastic.wire import proof

TICK = 0.1
LINGER = 0.5  # seconds a broken connection has to come back before the agent counts as lost


@dataclass(slots=True)
class Hub:
    """One authority shared by all connections; every change is saved before anybody sees it."""

    record: RecordFile
    authority: Authority
    saved: Record
    changed: threading.Condition = field(default_factory=threading.Condition)
    speeds: dict[int, float] = field(default_factory=dict)
    accounts: dict[str, Account] = field(default_factory=dict)
    public: Document = field(default_factory=Document)

    def act(self, event: Any) -> Document:
        """Apply one event; the outcome is published only once its record is safe."""
        with self.changed:
            try:
                event(self.authority, time.monotonic())
            finally:
                self._publish()
            return self.public

    def _publish(self) -> None:
        if self.authority.record != self.saved:
            self.record.swap(self.saved, self.authority.record)
            self.saved = self.authority.record
        if self.authority.version != self.public.version:
            self.public = self.authority.document()
            self.changed.notify_all()

    def sync(self, body: dict[str, Any], peer: socket.socket) -> Document:
        status = decode(Status, body["status"])
        self.act(lambda a, now: a.hear(status, now))
        self._learn(status, body.get("account"))
        if ack := body.get("ack"):
            self.act(lambda a, now: a.ack(status.member.id, decode(Ack, ack), now))
        until = time.monotonic() + min(float(body.get("wait", 0.0)), 30.0)
        with self.changed:
            while self.public.version <= body.get("seen", 0) and (left := until - time.monotonic()) > 0:
                self.changed.wait(min(left, TICK))
                if hung_up(peer):
                    self._doubt(status.member.id)
                    raise ConnectionError("the agent hung up")
            return self.public

    def _doubt(self, who: str) -> None:
        known = self.authority.peers.get(who)
        if known:
            known.heard = min(known.heard, time.monotonic() - self.authority.terms.silence + LINGER)

    def _learn(self, status: Status, account: dict[str, Any] | None) -> None:
        with self.changed:
            if status.speed > 0 and self.authority.phase() is Phase.COMMIT:
                self.speeds[len(self.authority.record.members)] = status.speed
            if account:
                self.accounts[status.member.id] = decode(Account, account)

    def tick(self) -> None:
        while True:
            time.sleep(TICK)
            self.act(lambda a, now: a.step(now))

    def describe(self) -> dict[str, Any]:
        with self.changed:
            accounts = list(self.accounts.values())
            return {**summary(self.authority, self.speeds), "goodput": report(accounts)}


def hung_up(sock: socket.socket) -> bool:
    try:
        readable, _, _ = select.select([sock], [], [], 0)
        return bool(readable) and not sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except OSError:
        return True


class Handler(BaseHTTPRequestHandler):
    """Routes; a request that does not prove the job's secret learns nothing."""

    hub: Hub
    secret: bytes
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if not self._known(body):
            return self._reply(403, {"error": "this is not the secret of this job"})
        try:
            self._reply(200, self._post(json.loads(body)))
        except Stale as error:
            self._reply(409, {"error": str(error), "stale": True})
        except Refused as error:
            self._reply(409, {"error": str(error)})
        except (ValueError, KeyError, TypeError) as error:
            self._reply(400, {"error": f"malformed request: {error}"})
        except ConnectionError:
            self.close_connection = True
        return None

    def _post(self, body: dict[str, Any]) -> dict[str, Any]:
        job = self.hub.authority.terms.job
        if self.path == f"/v1/jobs/{job}/sync":
            return encode(self.hub.sync(body, self.connection))
        if self.path == f"/v1/jobs/{job}/resize":
            return self._resize(int(body["target"]), body.get("seconds"))
        raise Refused(f"{self.path} is not served here; this is job {job}")

    def _resize(self, target: int, seconds: float | None) -> dict[str, Any]:
        need = 0.0

        def ask(authority: Authority, now: float) -> None:
            nonlocal need
            need = authority.resize(target, None if seconds is None else now + seconds, now)

        self.hub.act(ask)
        return {"accepted": True, "seconds": need}

    def do_GET(self) -> None:
        job = self.hub.authority.terms.job
        with self.hub.changed:
            accounts = list(self.hub.accounts.values())
        if self.path == f"/v1/jobs/{job}":
            self._reply(200, self.hub.describe())
        elif self.path == "/metrics":
            self._text(metrics(job, accounts, self.hub.describe()), "text/plain; version=0.0.4")
        elif self.path == f"/v1/jobs/{job}/ledger.svg":
            self._text(drawn(job, accounts), "image/svg+xml")
        elif self.path == f"/v1/jobs/{job}/ledger":
            self._reply(200, {"accounts": [asdict(a) for a in accounts]})
        else:
            self._reply(404, {"error": f"{self.path} is not served here; this is job {job}"})

    def _known(self, body: bytes) -> bool:
        claim = self.headers.get("X-Muster-Proof", "")
        return hmac.compare_digest(claim, proof(self.secret, self.path.encode(), body).hex())

    def _reply(self, code: int, data: dict[str, Any]) -> None:
        self._text(json.dumps(data), "application/json", code)

    def _text(self, text: str, kind: str, code: int = 200) -> None:
        data = text.encode()
        try:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except ConnectionError:
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the base class's name
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Agents die and connections with them; that is this server's business, not its operator's."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def begin(terms: Terms, record: RecordFile, secret: bytes, host: str, port: int) -> tuple[Server, Hub]:
    """Take over the job's record and listen; the term it takes shuts older authorities out."""
    found = record.read()
    authority = inherit(terms, replace(found, done=False) if found.done else found, time.monotonic())
    record.swap(found, authority.record)
    hub = Hub(record, authority, authority.record)
    hub.public = authority.document()
    bound = type("BoundHandler", (Handler,), {"hub": hub, "secret": secret})
    return Server((host, port), bound), hub
