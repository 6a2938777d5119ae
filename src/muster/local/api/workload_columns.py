"""The columns of pods and of the kinds that own them."""

from __future__ import annotations

from typing import Any

from muster.local.api.selectors import text_of
from muster.local.api.tables import Layout, age, between, layout

Object = dict[str, Any]

NONE = "<none>"
_UNREACHABLE = "NodeLost"


def born(obj: Object) -> str:
    return age(obj["metadata"].get("creationTimestamp"))


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def _pod(obj: Object) -> list[Any]:
    spec, status, meta = obj["spec"], obj.get("status") or {}, obj["metadata"]
    found = status.get("containerStatuses") or []
    ready = sum(1 for c in found if c.get("ready"))
    total = len(spec["containers"])
    gates = len(spec.get("readinessGates") or ())
    return [
        meta["name"],
        f"{ready}/{total}",
        pod_reason(obj),
        _restarts(status),
        born(obj),
        status.get("podIP") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        f"0/{gates}" if gates else NONE,
    ]


def pod_reason(obj: Object) -> str:
    """The STATUS column: the most telling thing about a pod."""
    status, meta = obj.get("status") or {}, obj["metadata"]
    reason = str(status.get("reason") or status.get("phase") or "")
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    initialising, reason = _init_reason(obj, reason)
    if not initialising:
        reason = _container_reason(status, reason)
    if "deletionTimestamp" in meta:
        return "Unknown" if status.get("reason") == _UNREACHABLE else _unless_ended(status, reason)
    return reason


def _unless_ended(status: Object, reason: str) -> str:
    return reason if status.get("phase") in ("Succeeded", "Failed") else "Terminating"


def _init_reason(obj: Object, reason: str) -> tuple[bool, str]:
    containers = obj["spec"].get("initContainers") or []
    for i, found in enumerate((obj.get("status") or {}).get("initContainerStatuses") or ()):
        state = found.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting")
        if ended is not None and ended.get("exitCode") == 0:
            continue
        if i < len(containers) and containers[i].get("restartPolicy") == "Always" and found.get("started"):
            continue
        if ended is not None:
            return True, "Init:" + _ended_reason(ended)
        if waiting and waiting.get("reason") not in (None, "", "PodInitializing"):
            return True, "Init:" + waiting["reason"]
        return True, f"Init:{i}/{len(containers)}"
    return False, reason


def _container_reason(status: Object, reason: str) -> str:
    running = False
    for found in reversed(status.get("containerStatuses") or []):
        state = found.get("state") or {}
        waiting, ended = state.get("waiting") or {}, state.get("terminated")
        if waiting.get("reason"):
            reason = waiting["reason"]
        elif ended is not None:
            reason = _ended_reason(ended)
        elif found.get("ready") and "running" in state:
            running = True
    if reason == "Completed" and running:
        ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in status.get("conditions") or ())
        return "Running" if ready else "NotReady"
    return reason


def _ended_reason(ended: Object) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode', 0)}"


def _restarts(status: Object) -> str:
    found = status.get("containerStatuses") or []
    count = sum(c.get("restartCount", 0) for c in found)
    ends = [((c.get("lastState") or {}).get("terminated") or {}).get("finishedAt") for c in found]
    last = max((e for e in ends if e), default=None)
    return f"{count} ({age(last)} ago)" if count and last else str(count)


def _template(obj: Object) -> list[str]:
    containers = obj["spec"].get("template", {}).get("spec", {}).get("containers") or []
    return [",".join(c["name"] for c in containers), ",".join(c.get("image", "") for c in containers)]


def _selector(obj: Object) -> str:
    selector = obj["spec"].get("selector") or {}
    plain = selector if "matchLabels" in selector or "matchExpressions" in selector else {"matchLabels": selector}
    return text_of(plain) or NONE


def _deployment(obj: Object) -> list[Any]:
    status = obj.get("status") or {}
    return [
        _name(obj),
        f"{status.get('readyReplicas', 0)}/{obj['spec'].get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        born(obj),
        *_template(obj),
        _selector(obj),
    ]


def _replica_set(obj: Object) -> list[Any]:
    status = obj.get("status") or {}
    counts = [obj["spec"].get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [_name(obj), *counts, born(obj), *_template(obj), _selector(obj)]


def _stateful_set(obj: Object) -> list[Any]:
    ready = (obj.get("status") or {}).get("readyReplicas", 0)
    return [_name(obj), f"{ready}/{obj['spec'].get('replicas', 0)}", born(obj), *_template(obj)]


def _daemon_set(obj: Object) -> list[Any]:
    status = obj.get("status") or {}
    names = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled")
    counts = [status.get(n, 0) for n in (*names, "numberAvailable")]
    nodes = (obj["spec"].get("template", {}).get("spec") or {}).get("nodeSelector") or {}
    shown = ",".join(f"{k}={v}" for k, v in sorted(nodes.items())) or NONE
    return [_name(obj), *counts, shown, born(obj), *_template(obj), _selector(obj)]


def _job(obj: Object) -> list[Any]:
    spec, status = obj["spec"], obj.get("status") or {}
    done = status.get("succeeded", 0)
    if spec.get("completions") is not None:
        shown = f"{done}/{spec['completions']}"
    elif (spec.get("parallelism") or 0) > 1:
        shown = f"{done}/1 of {spec['parallelism']}"
    else:
        shown = f"{done}/1"
    start = status.get("startTime")
    length = between(start, status.get("completionTime")) if start else ""
    return [_name(obj), _job_state(obj), shown, length, born(obj), *_template(obj), _selector(obj)]


def _job_state(obj: Object) -> str:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    true = {c["type"] for c in conditions if c.get("status") == "True"}
    for kind, word in (("Complete", "Complete"), ("Failed", "Failed")):
        if kind in true:
            return word
    if "deletionTimestamp" in obj["metadata"]:
        return "Terminating"
    for kind, word in (
        ("Suspended", "Suspended"),
        ("FailureTarget", "FailureTarget"),
        ("SuccessCriteriaMet", "SuccessCriteriaMet"),
    ):
        if kind in true:
            return word
    return "Running"


def _cron_job(obj: Object) -> list[Any]:
    spec, status = obj["spec"], obj.get("status") or {}
    last = status.get("lastScheduleTime")
    return [
        _name(obj),
        spec.get("schedule"),
        spec.get("timeZone") or NONE,
        str(bool(spec.get("suspend"))),
        len(status.get("active") or ()),
        age(last) if last else NONE,
        born(obj),
    ]


def _revision(obj: Object) -> list[Any]:
    owner = next((o for o in obj["metadata"].get("ownerReferences") or () if o.get("controller")), None)
    group = owner["apiVersion"].partition("/")[0] if owner else ""
    shown = f"{owner['kind'].lower()}.{group}/{owner['name']}" if owner else NONE
    return [_name(obj), shown, obj.get("revision", 0), born(obj)]


def _pod_template(obj: Object) -> list[Any]:
    containers = ((obj.get("template") or {}).get("spec") or {}).get("containers") or []
    names, images = ",".join(c["name"] for c in containers), ",".join(c.get("image", "") for c in containers)
    labels = ((obj.get("template") or {}).get("metadata") or {}).get("labels") or {}
    return [_name(obj), names, images, ",".join(f"{k}={v}" for k, v in sorted(labels.items())) or NONE]


def _autoscaler(obj: Object) -> list[Any]:
    spec, status = obj["spec"], obj.get("status") or {}
    target = spec.get("scaleTargetRef") or {}
    return [
        _name(obj),
        f"{target.get('kind')}/{target.get('name')}",
        "<unknown>",
        str(spec.get("minReplicas", "<unset>")),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        born(obj),
    ]


LAYOUTS: dict[str, Layout] = {
    "pods": layout(
        "Name|Ready|Status|Restarts|Age|wide|IP|Node|Nominated Node|Readiness Gates",
        _pod,
    ),
    "apps/deployments": layout("Name|Ready|Up-to-date#|Available#|Age|wide|Containers|Images|Selector", _deployment),
    "apps/replicasets": layout("Name|Desired#|Current#|Ready#|Age|wide|Containers|Images|Selector", _replica_set),
    "replicationcontrollers": layout("Name|Desired#|Current#|Ready#|Age|wide|Containers|Images|Selector", _replica_set),
    "apps/statefulsets": layout("Name|Ready|Age|wide|Containers|Images", _stateful_set),
    "apps/daemonsets": layout(
        "Name|Desired#|Current#|Ready#|Up-to-date#|Available#|Node Selector|Age|wide|Containers|Images|Selector",
        _daemon_set,
    ),
    "apps/controllerrevisions": layout("Name|Controller|Revision#|Age", _revision),
    "batch/jobs": layout("Name|Status|Completions|Duration|Age|wide|Containers|Images|Selector", _job),
    "batch/cronjobs": layout("Name|Schedule|Timezone|Suspend|Active#|Last Schedule|Age", _cron_job),
    "podtemplates": layout("Name|Containers|Images|Pod Labels", _pod_template),
    "autoscaling/horizontalpodautoscalers": layout(
        "Name|Reference|Targets|MinPods|MaxPods#|Replicas#|Age", _autoscaler
    ),
}
