"""What is told, and how often: once per change, and not at all where it is said already."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from muster.control.reporter import TOLD, Reporter
from muster.dialects import acts
from muster.dialects.cluster import Key
from muster.dialects.reading import Reading
from muster.dialects.verbs import PODS as POD_KIND
from muster.dialects.verbs import Verb, Words
from muster.kube.access import Access, Fixed, Grant, Trust
from muster.kube.errors import ApiError
from muster.kube.events import Events, Note
from muster.kube.requests import Client
from muster.kube.transport import Call, Reply, Transport
from muster.objects.pods import Pod
from tests.dialects.scenes import START, Scene

LABEL = "pod-group.scheduling.sigs.k8s.io"
GROUP = """
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: PodGroup
metadata: {name: train}
spec: {minMember: 3}
"""


@dataclass(slots=True)
class Server(Transport):
    """Keeps what is sent, and does what it says to the scene."""

    scene: Scene = field(default_factory=lambda: Scene(GROUP))
    sent: list[Call] = field(default_factory=list)
    refuse: set[str] = field(default_factory=set)  # parts of paths

    async def send(self, call: Call) -> Reply:
        await asyncio.sleep(0)
        self.sent.append(call)
        if any(part in call.path for part in self.refuse):
            raise ApiError(403, "Forbidden", "no")
        parts = call.path.partition("?")[0].split("/")
        if call.method == "PATCH":
            assert call.body is not None
            kind, name = ("Pod" if "pods" in parts else "PodGroup"), parts[parts.index("default") + 2]
            body: dict[str, Any] = json.loads(call.body)
            self.scene.patch(kind, name, {"status": body["status"]} if "status" in body else body)
        return Reply(200, b"{}")

    def paths(self, part: str) -> list[str]:
        return [call.path for call in self.sent if part in call.path]


@dataclass(slots=True)
class Board:
    """What the reporter sees: the scene as the watch would tell it at once."""

    server: Server
    why: str = "no room"
    told: list[Note] = field(default_factory=list)

    @property
    def key(self) -> Key:
        (key,) = self.server.scene.cluster().pods
        return key

    def reading(self, key: Key) -> Reading | None:
        return self.server.scene.gangs().get(str(key))

    def reason(self, _key: Key) -> str:
        return self.why

    def report(self, reading: Reading, words: Words) -> tuple[Verb, ...]:
        return acts.report(reading, self.server.scene.cluster(), words, START)

    def pod(self, uid: str) -> Pod | None:
        return next((pod for pod in self.server.scene.pods() if pod.metadata.uid == uid), None)

    def texts(self, kind: str) -> list[str]:
        return [note.text for note in self.told if note.subject.kind == kind]


class Heard(Events):
    """Events that are kept instead of written."""

    def __init__(self, client: Client, told: list[Note]) -> None:
        super().__init__(client, "muster.sh/test", "test")
        self.heard = told

    def tell(self, note: Note) -> None:
        self.heard.append(note)


def run(scenario: Callable[[Board, "Rounds"], Awaitable[None]], members: int = 3) -> None:
    async def main() -> None:
        server = Server(Access("http://nowhere", Fixed(Grant()), Trust()))
        for index in range(members):
            server.scene.pod(f"train-{index}", {LABEL: "train"})
        board, client = Board(server), Client(server)
        reporter = Reporter(client, Heard(client, board.told), lambda: START)
        reporter.view = board
        task = asyncio.create_task(reporter.run())
        try:
            async with asyncio.timeout(30):
                await scenario(board, Rounds(board, reporter))
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    asyncio.run(main())


@dataclass(slots=True)
class Rounds:
    board: Board
    reporter: Reporter
    marks: int = 0

    async def look(self, times: int = 1) -> None:
        """Say that the gang changed, and wait until that was dealt with."""
        for _ in range(times):
            self.reporter.look_at([self.board.key])
        self.marks += 1
        mark = f"mark-{self.marks}"
        await self.rest()
        self.reporter.post(Verb(POD_KIND, "default", mark, "create", {}, "eviction"))
        while not self.board.server.paths(mark):
            await asyncio.sleep(0.002)

    async def rest(self) -> None:
        while self.reporter.due:
            await asyncio.sleep(0.002)


def test_what_waits_is_told_once_and_not_again() -> None:
    async def scenario(board: Board, rounds: Rounds) -> None:
        await rounds.look(times=10)
        assert len(board.server.paths("/pods/train-")) == 3
        assert {pod.status.conditions[0].message for pod in board.server.scene.pods()} == {"no room"}
        assert {pod.status.conditions[0].reason for pod in board.server.scene.pods()} == {"Unschedulable"}
        assert (board.texts("Pod"), board.texts("PodGroup")) == (["no room"] * 3, ["no room"])
        assert len(board.server.paths("/podgroups/train")) == 1
        before = len(board.server.paths("train")), len(board.told)
        await rounds.look(times=10)
        assert (len(board.server.paths("train")), len(board.told)) == before

    run(scenario)


def test_another_reason_is_told_once() -> None:
    async def scenario(board: Board, rounds: Rounds) -> None:
        await rounds.look()
        board.why = "still no room"
        await rounds.look()
        await rounds.look()
        assert len(board.server.paths("/pods/train-")) == 6
        assert board.texts("PodGroup") == ["no room", "still no room"]

    run(scenario)


def test_members_that_do_not_exist_yet_are_the_reason() -> None:
    async def scenario(board: Board, rounds: Rounds) -> None:
        await rounds.look()
        assert board.texts("PodGroup") == ["2 of 3 members of train exist"]

    run(scenario, members=2)


def test_what_runs_is_counted_on_its_group_and_its_pods_are_left_alone() -> None:
    async def scenario(board: Board, rounds: Rounds) -> None:
        for index in range(3):
            board.server.scene.bind(f"train-{index}", phase="Running")
        await rounds.look(times=2)
        assert board.server.paths("/pods/train-") == []
        assert len(board.server.paths("/podgroups/train")) == 1
        (tree,) = [tree for key, tree in board.server.scene.trees.items() if key[1] == "PodGroup"]
        assert tree["status"]["running"] == 3
        assert board.told == []

    run(scenario)


def test_events_are_for_the_first_members_and_conditions_for_all() -> None:
    async def scenario(board: Board, rounds: Rounds) -> None:
        await rounds.look()
        assert len(board.server.paths("/pods/train-")) == TOLD + 5
        assert len(board.texts("Pod")) == TOLD

    run(scenario, members=TOLD + 5)


def test_what_may_not_be_written_keeps_nothing_else_from_being_written() -> None:
    async def scenario(board: Board, rounds: Rounds) -> None:
        board.server.refuse = {"train-1/status", "podgroups"}
        await rounds.look()
        said = {pod.metadata.name for pod in board.server.scene.pods() if pod.status.conditions}
        assert said == {"train-0", "train-2"}
        board.server.refuse = set()
        await rounds.look()
        assert len(board.server.paths("/pods/train-")) == 4  # the one that was refused, again
        assert len(board.server.paths("/podgroups/train")) == 2

    run(scenario)


def test_verbs_are_sent_in_order() -> None:
    async def scenario(board: Board, rounds: Rounds) -> None:
        for index in range(20):
            rounds.reporter.post(Verb(POD_KIND, "default", f"p{index}", "create", {}, "eviction"))
        await rounds.look()
        names = [call.path.split("/")[-2] for call in board.server.sent if "/pods/p" in call.path]
        assert names == [f"p{index}" for index in range(20)]

    run(scenario)
