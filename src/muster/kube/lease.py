"""Leader election on a Lease of coordination.k8s.io: `election` decides, this reads and writes.

It has a connection of its own, so that a thousand binds in flight never delay a renewal. Whoever acts as the
leader passes `valid_until` to what he sends; the transport then sends nothing whose time-out lies later.
"""

import asyncio
import math
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from muster.kube.access import Access
from muster.kube.backoff import Backoff
from muster.kube.election import Election, Read, Record, Write
from muster.kube.errors import ApiError, KubeError
from muster.kube.paths import LEASES
from muster.kube.requests import Client
from muster.kube.transport import Reply, Transport
from muster.objects.decode import Decoded
from muster.objects.owners import ObjectMeta


class _Spec(Decoded, frozen=True):
    holder_identity: str = ""
    lease_duration_seconds: float = 0.0
    renew_time: str = ""
    acquire_time: str = ""
    lease_transitions: int = 0


class _Lease(Decoded, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: _Spec = _Spec()


@dataclass(slots=True)
class Lease:
    """One contender for one Lease, kept going by `run`."""

    client: Client
    namespace: str
    name: str
    election: Election
    backoff: Backoff = field(default_factory=lambda: Backoff(0.2, 2.0))
    trouble: str = ""  # why the last call failed, while it does
    _failures: int = 0
    _turn: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def valid_until(self) -> float:
        """Until when (on the transport's clock) what the leader sends must have been answered or given up."""
        return self.election.valid_until if self.election.valid_from <= self._now else -math.inf

    @property
    def leads(self) -> bool:
        """Whether we lead, for certain."""
        return self.election.leads(self._now)

    @property
    def holder(self) -> str:
        """Who holds the lease as far as we know."""
        return self.election.seen.holder if self.election.seen is not None else ""

    async def run(self) -> None:
        """Contend until cancelled; then give up what we hold."""
        try:
            while True:
                await self._step()
        finally:
            await self._release()

    async def acquired(self) -> None:
        """Return once we lead."""
        while not self.leads:
            await self._wait(self.election.valid_from)

    async def lost(self) -> None:
        """Return once we no longer lead."""
        while self.leads:
            await self._wait(self.election.valid_until)

    async def _wait(self, until: float) -> None:
        """Until something changed, or that moment came."""
        self._turn.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(None if math.isinf(until) else max(0.0, until - self._now)):
                await self._turn.wait()

    async def _step(self) -> None:
        match self.election.next(self._now):
            case Read():
                await self._do(None)
            case Write() as write:
                await self._do(write)
            case wait:
                await asyncio.sleep(max(0.0, wait.until - self._now))
        self._turn.set()

    async def _do(self, write: Write | None) -> None:
        try:
            reply = await (self._read() if write is None else self._write(write))
        except ApiError as error:
            self._heard_no(error, write)
        except KubeError as error:
            self._heard_nothing(error)
        else:
            self._failures, self.trouble = 0, ""
            self.election.observed(_record(reply.to(_Lease)), self._now)

    def _heard_no(self, error: ApiError, write: Write | None) -> None:
        if write is None and error.is_missing:
            self._failures, self.trouble = 0, ""
            self.election.observed(None, self._now)
        elif write is not None and (error.is_conflict or error.is_missing):
            self.election.refused(self._now)
        else:
            self._heard_nothing(error)

    def _heard_nothing(self, error: KubeError) -> None:
        self._failures += 1
        self.trouble = f"lease {self.namespace}/{self.name}: {error}"
        self.election.unknown(self._now, self.backoff.pause(self._failures, getattr(error, "retry_after", None)))

    async def _read(self) -> Reply:
        return await self.client.get(self._path)

    async def _write(self, write: Write) -> Reply:
        body, renewed = self._body(write)
        self.election.sent(write, renewed, self._now)
        if write.version:
            return await self.client.patch(self._path, body)
        return await self.client.create(LEASES.path(self.namespace), body)

    def _body(self, write: Write) -> tuple[dict[str, object], str]:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec: dict[str, object] = {
            "holderIdentity": write.holder,
            "leaseDurationSeconds": round(self.election.duration) if write.holder else 1,
            "renewTime": now,
            "leaseTransitions": write.transitions,
        }
        if write.takes:
            spec["acquireTime"] = now
        metadata = {"name": self.name, "namespace": self.namespace}
        if write.version:
            metadata["resourceVersion"] = write.version
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": spec,
        }, now

    async def _release(self) -> None:
        write = self.election.release(self._now)
        self._turn.set()
        if write is not None:
            with suppress(KubeError):  # then it runs out by itself
                await self.client.patch(self._path, self._body(write)[0])

    @property
    def _path(self) -> str:
        return LEASES.path(self.namespace, self.name)

    @property
    def _now(self) -> float:
        return self.client.transport.clock()


def contend(access: Access, namespace: str, name: str, identity: str, duration: int = 5) -> Lease:
    """A contender with a connection of its own; `identity` must differ with every process."""
    election = Election(identity, float(duration))
    client = Client(Transport(access, limit=1), timeout=election.period, attempts=1)
    return Lease(client, namespace, name, election)


def _record(lease: _Lease) -> Record:
    spec = lease.spec
    return Record(
        spec.holder_identity,
        spec.lease_duration_seconds,
        spec.renew_time,
        spec.acquire_time,
        spec.lease_transitions,
        lease.metadata.resource_version,
    )
