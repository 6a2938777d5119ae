"""What a pod's containers are doing, as the status of the pod: a pure function."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from muster.local.api.access import Object
from muster.local.clock import stamp
from muster.local.nodes.conditions import with_conditions

INIT, SIDECAR, MAIN = "init", "sidecar", "main"


@dataclass(frozen=True, slots=True)
class State:
    """What one container is doing, and what its previous run came to."""

    name: str
    role: str
    image: str = ""
    waiting: str = "ContainerCreating"
    message: str = ""
    exit_code: int | None = None
    why: str = ""
    began: float = 0.0
    finished: float = 0.0
    restarts: int = 0
    started: bool = False
    ready: bool = False
    last: Object | None = None

    @property
    def running(self) -> bool:
        return not self.waiting and self.exit_code is None

    @property
    def done(self) -> bool:
        """Whether the container has exited and waits for nothing."""
        return not self.waiting and self.exit_code is not None

    def wait(self, reason: str, message: str = "") -> State:
        last = self.terminated() if self.exit_code is not None else self.last
        idle = replace(self, exit_code=None, started=False, ready=False, last=last)
        return replace(idle, waiting=reason, message=message)

    def run(self, now: float) -> State:
        last = self.terminated() if self.exit_code is not None else self.last
        idle = replace(self, exit_code=None, why="", message="", last=last)
        return replace(idle, waiting="", began=now, started=False, ready=False)

    def exit(self, code: int, now: float, why: str = "", message: str = "") -> State:
        why = why or ("Error" if code else "Completed")
        ready = self.role == INIT and code == 0
        over = replace(self, exit_code=code, finished=now, started=False, ready=ready)
        return replace(over, waiting="", why=why, message=message)

    def terminated(self) -> Object:
        found: Object = {"exitCode": self.exit_code, "reason": self.why, "finishedAt": stamp(self.finished)}
        found["startedAt"] = stamp(self.began or self.finished)
        if self.message:
            found["message"] = self.message
        return found

    def written(self) -> Object:
        """As containerStatuses says it."""
        if self.waiting:
            state: Object = {"waiting": {"reason": self.waiting}}
            if self.message:
                state["waiting"]["message"] = self.message
        elif self.exit_code is not None:
            state = {"terminated": self.terminated()}
        else:
            state = {"running": {"startedAt": stamp(self.began)}}
        return {
            "name": self.name,
            "image": self.image,
            "imageID": "",
            "containerID": f"process://{self.name}-{self.restarts}" if self.began else "",
            "ready": self.ready,
            "started": self.started,
            "restartCount": self.restarts,
            "state": state,
            "lastState": {"terminated": self.last} if self.last else {},
        }


def restarts(policy: str, role: str, code: int) -> bool:
    """Whether a container that exited is run again."""
    if role == SIDECAR:
        return True
    if role == INIT:
        return code != 0 and policy != "Never"
    return policy == "Always" or (policy == "OnFailure" and code != 0)


def phase(states: Iterable[State], policy: str) -> str:
    """The pod's phase, from its containers."""
    states = list(states)
    inits = [s for s in states if s.role == INIT]
    mains = [s for s in states if s.role == MAIN]
    if any(s.done and s.exit_code and policy == "Never" for s in inits):
        return "Failed"
    if all(s.done and not restarts(policy, MAIN, s.exit_code or 0) for s in mains):
        if any(s.running for s in states if s.role == SIDECAR):
            return "Running"
        return "Failed" if any(s.exit_code for s in mains) else "Succeeded"
    begun = all(s.done and not s.exit_code for s in inits)
    return "Running" if begun and any(s.began for s in mains) else "Pending"


def pod_status(
    pod: Object, states: Iterable[State], address: str, host: str, now: float, *, over: bool = False
) -> Object:
    """The status of a pod on a process node; `over` says that nothing of it will run again, whatever its
    policy.
    """
    states = list(states)
    policy = "Never" if over else pod["spec"].get("restartPolicy", "Always")
    where = phase(states, policy)
    return {
        "phase": where,
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": address or None,
        "podIPs": [{"ip": address}] if address else None,
        "startTime": (pod.get("status") or {}).get("startTime") or stamp(now),
        "conditions": _conditions(pod, states, where, now),
        "containerStatuses": [s.written() for s in states if s.role == MAIN],
        "initContainerStatuses": [s.written() for s in states if s.role != MAIN] or None,
    }


def _conditions(pod: Object, states: list[State], where: str, now: float) -> list[Object]:
    initialized = all(s.done and not s.exit_code for s in states if s.role == INIT)
    ready = all(s.ready for s in states if s.role != INIT) and where == "Running"
    over = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(where, "ContainersNotReady")
    why = "" if ready else over
    wanted = {
        "PodReadyToStartContainers": (where in ("Pending", "Running"), ""),
        "Initialized": (initialized, "" if initialized else "ContainersNotInitialized"),
        "Ready": (ready and _gates_open(pod), why or ("" if _gates_open(pod) else "ReadinessGatesNotReady")),
        "ContainersReady": (ready, why),
    }
    return with_conditions(pod, wanted, now)


def _gates_open(pod: Object) -> bool:
    true = {c["type"] for c in (pod.get("status") or {}).get("conditions") or () if c["status"] == "True"}
    return all(gate["conditionType"] in true for gate in pod["spec"].get("readinessGates") or ())
