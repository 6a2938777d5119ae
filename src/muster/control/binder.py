"""Binding: many requests in flight, each bounded; an answer that got lost is read, not guessed.

Until the watch shows it, a bind is assumed: the pod counts as bound. Only when the API has refused it, or the pod
turns out to be free after all, is the assumption dropped, and the gang is planned again from what is then true.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from muster.control.seating import Seat
from muster.kube.errors import ApiError, KubeError
from muster.kube.paths import PODS
from muster.kube.requests import Client, Outcome
from muster.objects.pods import Pod

log = logging.getLogger("muster.control")

Settled = Callable[[Seat, str], None]
"""A bind is over: on that node now, or on none ('') and free to be planned again."""

PAUSE = 0.2


@dataclass(slots=True)
class Binder:
    """Carries out seats. `valid_until` is the moment after which nothing may be sent: the end of the lease."""

    client: Client
    valid_until: Callable[[], float]
    settled: Settled = field(default=lambda _seat, _node: None)
    flying: set[asyncio.Task[None]] = field(default_factory=set)

    def bind(self, seats: Iterable[Seat]) -> None:
        """Send them all; returns at once."""
        for seat in seats:
            task = asyncio.create_task(self._bind(seat))
            self.flying.add(task)
            task.add_done_callback(self.flying.discard)

    async def _bind(self, seat: Seat) -> None:
        result = await self.client.bind(seat.namespace, seat.pod, seat.uid, seat.node, valid_until=self.valid_until())
        if result.outcome is Outcome.DONE:
            self.settled(seat, seat.node)
            return
        if result.outcome is Outcome.UNKNOWN:
            node = await self._read(seat)
        else:
            node = await self._read(seat) if _taken(result.error) else ""
        log.info("pod %s/%s was not bound to %s: %s", seat.namespace, seat.pod, seat.node, result.error)
        await asyncio.sleep(PAUSE)  # whatever was in the way, asking again at once would only add to it
        self.settled(seat, node)

    async def _read(self, seat: Seat) -> str:
        """Where the pod really is. Asked until there is an answer: nothing is planned on a guess."""
        while True:
            try:
                return await self._node_of(seat)
            except KubeError as error:
                log.info("pod %s/%s is asked for again: %s", seat.namespace, seat.pod, error)
                await asyncio.sleep(PAUSE)

    async def _node_of(self, seat: Seat) -> str:
        try:
            pod = (await self.client.get(PODS.path(seat.namespace, seat.pod))).to(Pod)
        except ApiError as error:
            if error.is_missing:
                return ""
            raise
        return pod.spec.node_name if pod.metadata.uid == seat.uid else ""

    async def idle(self) -> None:
        """Return when nothing is in flight."""
        while self.flying:
            await asyncio.wait(self.flying)

    async def close(self) -> None:
        """For the last time: what was sent is answered or too late, and nobody needs to know which any more."""
        if self.flying:
            _, left = await asyncio.wait(self.flying, timeout=self.client.timeout)
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)


def _taken(error: KubeError | None) -> bool:
    return isinstance(error, ApiError) and error.is_conflict
