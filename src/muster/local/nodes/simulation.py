"""What a simulated pod does next, and when: a pure function of the pod, so a restarted cluster goes on where
it was.

Pods say how they behave with `muster.sh/sim-…` annotations. Chance, where they ask for it, comes from the
seed, the pod's name and its restarts: the same story every time.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from muster.local.api.access import Object
from muster.local.clock import seconds_of, stamp
from muster.local.nodes.conditions import readiness
from muster.local.nodes.kubelet import restart_delay
from muster.local.nodes.template import DurationError, duration

PREFIX = "muster.sh/sim-"
RUN_TIME, START_DELAY, STOP_TIME = (PREFIX + name for name in ("run-time", "start-delay", "stop-time"))
EXIT_CODE, FAILURE_RATE = PREFIX + "exit-code", PREFIX + "failure-rate"
FOREVER = "forever"

DEFAULT_RUN = 60.0
DEFAULT_START = 1.0
SIGTERM_CODE, LOST_CODE = 143, 137
_MOST_DOOMED = 3600.0


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What a pod's annotations ask for; `complaint` says which of them made no sense."""

    run: float | None
    start: float
    stop: float
    exit_code: int
    failure_rate: float
    complaint: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """Something a pod will do: start, end, or be removed."""

    at: float
    kind: str
    exit_code: int = 0


def behaviour(pod: Object) -> Behaviour:
    """Read the annotations; what cannot be read counts as absent and is complained about."""
    notes = pod["metadata"].get("annotations") or {}
    complaints: list[str] = []

    def read(key: str, default: float) -> float:
        text = notes.get(key)
        if text is None:
            return default
        try:
            return duration(text) if key not in (EXIT_CODE, FAILURE_RATE) else float(text)
        except (DurationError, ValueError) as error:
            complaints.append(f"annotation {key}: {error}")
            return default

    always = pod["spec"].get("restartPolicy", "Always") == "Always"
    text = notes.get(RUN_TIME, FOREVER if always else "")
    run = None if text == FOREVER else read(RUN_TIME, DEFAULT_RUN)
    start, stop = read(START_DELAY, DEFAULT_START), read(STOP_TIME, 0.0)
    code, rate = int(read(EXIT_CODE, 0)), min(1.0, max(0.0, read(FAILURE_RATE, 0.0)))
    return Behaviour(run, start, stop, code, rate, "; ".join(complaints))


def next_step(pod: Object, since: float, seed: int) -> Step | None:
    """The pod's next step if it got into its present state at `since`; None when it stays as it is."""
    does = behaviour(pod)
    deadline = seconds_of(pod["metadata"].get("deletionTimestamp"))
    if deadline is not None:
        grace = float(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
        return Step(since + min(does.stop, grace), "remove", SIGTERM_CODE)
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return None
    container = first_container(pod)
    restarts = int(container.get("restartCount", 0))
    if not (container.get("state") or {}).get("running"):
        waited = restart_delay(restarts) if restarts else _jittered(pod, does.start, seed)
        return Step(since + waited, "start")
    return _end(does, since, Random(f"{seed}/{_full_name(pod)}/{restarts}"))  # noqa: S311 not for secrets


def _end(does: Behaviour, since: float, chance: Random) -> Step | None:
    if chance.random() < does.failure_rate:
        run = does.run if does.run is not None else _MOST_DOOMED
        return Step(since + run * chance.random(), "end", does.exit_code or 1)
    return None if does.run is None else Step(since + does.run, "end", does.exit_code)


def _jittered(pod: Object, delay: float, seed: int) -> float:
    if START_DELAY in (pod["metadata"].get("annotations") or {}):
        return delay
    return delay * Random(f"{seed}/{_full_name(pod)}/start").uniform(0.5, 1.5)  # noqa: S311 not for secrets


def _full_name(pod: Object) -> str:
    return f"{pod['metadata'].get('namespace')}/{pod['metadata']['name']}"


def first_container(pod: Object) -> Object:
    statuses = (pod.get("status") or {}).get("containerStatuses") or [{}]
    found: Object = statuses[0]
    return found


def restarts_after(pod: Object, exit_code: int) -> bool:
    """Whether the node starts the pod's containers again."""
    policy = pod["spec"].get("restartPolicy", "Always")
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def started(pod: Object, address: str, host: str, now: float) -> Object:
    """The status of a pod whose containers have just started."""
    at = stamp(now)
    restarts = first_container(pod).get("restartCount", 0)
    before = first_container(pod).get("lastState") or {}
    state = {"running": {"startedAt": at}}
    containers = [_container(c, state, restarts, before, ready=True) for c in pod["spec"]["containers"]]
    status = {
        "phase": "Running",
        "hostIP": host,
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": (pod.get("status") or {}).get("startTime") or at,
        "conditions": readiness(pod, True, "", now),
        "containerStatuses": containers,
    }
    done = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": at, "finishedAt": at}}
    if "initContainers" in pod["spec"]:
        inits = [_container(c, done, 0, {}, ready=True) for c in pod["spec"]["initContainers"]]
        status["initContainerStatuses"] = inits
    return status


def ended(pod: Object, exit_code: int, now: float) -> Object:
    """The status of a pod whose containers have just exited, and whether they wait for a restart or that
    was all.
    """
    before = first_container(pod)
    state = {"exitCode": exit_code, "reason": "Error" if exit_code else "Completed", "finishedAt": stamp(now)}
    state["startedAt"] = ((before.get("state") or {}).get("running") or {}).get("startedAt") or stamp(now)
    restarts = int(before.get("restartCount", 0))
    if restarts_after(pod, exit_code) and not pod["metadata"].get("deletionTimestamp"):
        reason = {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}
        waiting, last = {"waiting": reason}, {"terminated": state}
        containers = [_container(c, waiting, restarts + 1, last, ready=False) for c in pod["spec"]["containers"]]
        conditions = readiness(pod, False, "ContainersNotReady", now)
        return {"containerStatuses": containers, "conditions": conditions}
    gone = {"terminated": state}
    containers = [_container(c, gone, restarts, {}, ready=False) for c in pod["spec"]["containers"]]
    phase, reason_text = ("Failed", "PodFailed") if exit_code else ("Succeeded", "PodCompleted")
    conditions = readiness(pod, False, reason_text, now)
    return {"phase": phase, "containerStatuses": containers, "conditions": conditions}


def _container(spec: Object, state: Object, restarts: int, last: Object, *, ready: bool) -> Object:
    image = spec.get("image", "")
    return {
        "name": spec["name"],
        "image": image,
        "imageID": image,
        "containerID": f"muster://{spec['name']}-{restarts}",
        "ready": ready,
        "started": "running" in state,
        "restartCount": restarts,
        "state": state,
        "lastState": last,
    }
