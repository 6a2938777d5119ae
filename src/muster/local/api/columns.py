"""The columns of the built-in kinds other than workloads, as kubectl users know them."""

from __future__ import annotations

from typing import Any

from muster.local.api.selectors import text_of
from muster.local.api.tables import Layout, age, layout
from muster.local.api.workload_columns import LAYOUTS as WORKLOADS
from muster.local.api.workload_columns import born

Object = dict[str, Any]

NONE = "<none>"
_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def of(resource_id: str) -> Layout:
    """The columns of a built-in kind."""
    return _LAYOUTS.get(resource_id) or WORKLOADS.get(resource_id) or _PLAIN


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def _pairs(found: Object | None) -> str:
    return ",".join(f"{k}={v}" for k, v in sorted((found or {}).items())) or NONE


def _node(obj: Object) -> list[Any]:
    status, spec, meta = obj.get("status") or {}, obj.get("spec") or {}, obj["metadata"]
    ready = next((c for c in status.get("conditions") or () if c["type"] == "Ready"), None)
    word = "Unknown" if ready is None else "Ready" if ready["status"] == "True" else "NotReady"
    state = [word, "SchedulingDisabled"] if spec.get("unschedulable") else [word]
    prefix = "node-role.kubernetes.io/"
    roles = sorted(k.removeprefix(prefix) for k in meta.get("labels") or {} if k.startswith(prefix))
    info = status.get("nodeInfo") or {}
    addresses = {a["type"]: a["address"] for a in status.get("addresses") or ()}
    return [
        meta["name"],
        ",".join(state),
        ",".join(r for r in roles if r) or NONE,
        born(obj),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", NONE),
        addresses.get("ExternalIP", NONE),
        info.get("osImage") or "<unknown>",
        info.get("kernelVersion") or "<unknown>",
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def _service(obj: Object) -> list[Any]:
    spec = obj["spec"]
    ports = [
        f"{p['port']}{':' + str(p['nodePort']) if p.get('nodePort') else ''}/{p.get('protocol', 'TCP')}"
        for p in spec.get("ports") or ()
    ]
    outside = ",".join(spec.get("externalIPs") or ()) or spec.get("externalName") or NONE
    if spec.get("type") == "LoadBalancer" and outside == NONE:
        outside = "<pending>"
    return [
        _name(obj),
        spec.get("type"),
        spec.get("clusterIP") or NONE,
        outside,
        ",".join(ports) or NONE,
        born(obj),
        _pairs(spec.get("selector")),
    ]


def _endpoints(obj: Object) -> list[Any]:
    found = []
    for subset in obj.get("subsets") or ():
        for port in subset.get("ports") or [{}]:
            suffix = f":{port['port']}" if "port" in port else ""
            found += [f"{a['ip']}{suffix}" for a in subset.get("addresses") or ()]
    shown = ",".join(found[:3]) + (f" + {len(found) - 3} more..." if len(found) > 3 else "")
    return [_name(obj), shown or NONE, born(obj)]


def _event(obj: Object) -> list[Any]:
    about = obj.get("involvedObject") or {}
    source = obj.get("source") or {}
    last = obj.get("lastTimestamp") or obj.get("eventTime") or obj["metadata"].get("creationTimestamp")
    first = obj.get("firstTimestamp") or obj.get("eventTime") or last
    series = obj.get("series") or {}
    last = series.get("lastObservedTime") or last
    who = source.get("component") or obj.get("reportingComponent") or ""
    kind = (about.get("kind") or "").lower()
    return [
        age(last),
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{about.get('name', '')}",
        about.get("fieldPath", ""),
        ", ".join(filter(None, (who, source.get("host") or ""))),
        (obj.get("message") or obj.get("note") or "").strip(),
        age(first),
        series.get("count") or obj.get("count") or 1,
        _name(obj),
    ]


def _claim(obj: Object) -> list[Any]:
    spec, status = obj["spec"], obj.get("status") or {}
    phase = "Terminating" if "deletionTimestamp" in obj["metadata"] else status.get("phase", "")
    modes = ",".join(_MODES.get(m, m) for m in status.get("accessModes") or ())
    capacity = (status.get("capacity") or {}).get("storage", "")
    return [
        _name(obj),
        phase,
        spec.get("volumeName", ""),
        capacity,
        modes,
        spec.get("storageClassName", ""),
        "<unset>",
        born(obj),
        spec.get("volumeMode", "<unset>"),
    ]


def _volume(obj: Object) -> list[Any]:
    spec, status = obj["spec"], obj.get("status") or {}
    claim = spec.get("claimRef") or {}
    return [
        _name(obj),
        (spec.get("capacity") or {}).get("storage", ""),
        ",".join(_MODES.get(m, m) for m in spec.get("accessModes") or ()),
        spec.get("persistentVolumeReclaimPolicy", ""),
        status.get("phase", ""),
        f"{claim.get('namespace', '')}/{claim['name']}" if claim.get("name") else "",
        spec.get("storageClassName", ""),
        "<unset>",
        status.get("reason", ""),
        born(obj),
        spec.get("volumeMode", "<unset>"),
    ]


def _quota(obj: Object) -> list[Any]:
    status = obj.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    shown = {n: f"{n}: {used.get(n, '0')}/{hard[n]}" for n in sorted(hard)}
    limits = ", ".join(t for n, t in shown.items() if n.startswith("limits."))
    return [
        _name(obj),
        ", ".join(t for n, t in shown.items() if not n.startswith("limits.")),
        limits,
        born(obj),
    ]


def _budget(obj: Object) -> list[Any]:
    spec, status = obj["spec"], obj.get("status") or {}
    allowed = status.get("disruptionsAllowed", 0)
    low, high = spec.get("minAvailable", "N/A"), spec.get("maxUnavailable", "N/A")
    return [_name(obj), str(low), str(high), allowed, born(obj)]


def _slice(obj: Object) -> list[Any]:
    ports = ",".join(str(p.get("port", "*")) for p in obj.get("ports") or ()) or "<unset>"
    addresses = [a for e in obj.get("endpoints") or () for a in e.get("addresses") or ()]
    shown = ",".join(addresses[:3]) + (f" + {len(addresses) - 3} more..." if len(addresses) > 3 else "")
    return [_name(obj), obj.get("addressType", ""), ports, shown or "<unset>", born(obj)]


def _binding(obj: Object) -> list[Any]:
    subjects = obj.get("subjects") or []

    def named(kind: str) -> str:
        return ", ".join(s.get("name", "") for s in subjects if s.get("kind") == kind)

    accounts = ", ".join(
        f"{s.get('namespace', '')}/{s.get('name', '')}" for s in subjects if s.get("kind") == "ServiceAccount"
    )
    role = obj["roleRef"]
    return [
        _name(obj),
        f"{role.get('kind')}/{role.get('name')}",
        born(obj),
        named("User"),
        named("Group"),
        accounts,
    ]


def _ingress(obj: Object) -> list[Any]:
    spec = obj.get("spec") or {}
    hosts = ",".join(r.get("host", "*") for r in spec.get("rules") or ()) or "*"
    points = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    address = ",".join(p.get("ip") or p.get("hostname", "") for p in points)
    ports = "80, 443" if spec.get("tls") else "80"
    return [_name(obj), spec.get("ingressClassName", NONE), hosts, address, ports, born(obj)]


def _native_group(obj: Object) -> list[Any]:
    conditions = {c["type"]: c for c in (obj.get("status") or {}).get("conditions") or ()}
    started = conditions.get("PodGroupInitiallyScheduled")
    state = "Pending"
    if started is not None:
        state = "Scheduled" if started["status"] == "True" else "Unschedulable"
    if disrupted := conditions.get("DisruptionTarget"):
        state = disrupted.get("reason", state)
    return [*_composite_group(obj)[:3], state, born(obj)]


def _composite_group(obj: Object) -> list[Any]:
    policy = "Gang" if "gang" in (obj["spec"].get("schedulingPolicy") or {}) else "Basic"
    return [_name(obj), policy, (obj["spec"].get("workloadRef") or {}).get("workloadName", NONE), born(obj)]


_PLAIN = layout("Name|Age", lambda o: [_name(o), born(o)])
_CREATED = layout("Name|Created At", lambda o: [_name(o), o["metadata"].get("creationTimestamp", "")])

_LAYOUTS: dict[str, Layout] = {
    "nodes": layout(
        "Name|Status|Roles|Age|Version|wide|Internal-IP|External-IP|OS-Image|Kernel-Version|Container-Runtime",
        _node,
    ),
    "namespaces": layout("Name|Status|Age", lambda o: [_name(o), (o.get("status") or {}).get("phase", ""), born(o)]),
    "services": layout("Name|Type|Cluster-IP|External-IP|Port(s)|Age|wide|Selector", _service),
    "endpoints": layout("Name|Endpoints|Age", _endpoints),
    "configmaps": layout(
        "Name|Data#|Age",
        lambda o: [_name(o), len(o.get("data") or {}) + len(o.get("binaryData") or {}), born(o)],
    ),
    "secrets": layout(
        "Name|Type|Data#|Age", lambda o: [_name(o), o.get("type", ""), len(o.get("data") or {}), born(o)]
    ),
    "serviceaccounts": layout("Name|Secrets#|Age", lambda o: [_name(o), len(o.get("secrets") or ()), born(o)]),
    "events": layout(
        "Last Seen|Type|Reason|Object|wide|Subobject|Source|narrow|Message|wide|First Seen|Count#|Name", _event
    ),
    "persistentvolumeclaims": layout(
        "Name|Status|Volume|Capacity|Access Modes|StorageClass|VolumeAttributesClass|Age|wide|VolumeMode",
        _claim,
    ),
    "persistentvolumes": layout(
        "Name|Capacity|Access Modes|Reclaim Policy|Status|Claim|StorageClass|VolumeAttributesClass|Reason|Age"
        "|wide|VolumeMode",
        _volume,
    ),
    "resourcequotas": layout("Name|Request|Limit|Age", _quota),
    "limitranges": _CREATED,
    "policy/poddisruptionbudgets": layout("Name|Min Available|Max Unavailable|Allowed Disruptions#|Age", _budget),
    "scheduling.k8s.io/priorityclasses": layout(
        "Name|Value#|Global-Default|Age|PreemptionPolicy",
        lambda o: [_name(o), o["value"], bool(o.get("globalDefault")), born(o), o["preemptionPolicy"]],
    ),
    "scheduling.k8s.io/podgroups": layout("Name|Policy|Workload|Status|Age", _native_group),
    "scheduling.k8s.io/compositepodgroups": layout("Name|Policy|Workload|Age", _composite_group),
    "coordination.k8s.io/leases": layout(
        "Name|Holder|Age", lambda o: [_name(o), (o.get("spec") or {}).get("holderIdentity", ""), born(o)]
    ),
    "storage.k8s.io/storageclasses": layout(
        "Name|Provisioner|ReclaimPolicy|VolumeBindingMode|AllowVolumeExpansion|Age",
        lambda o: [
            _name(o),
            o.get("provisioner", ""),
            o.get("reclaimPolicy"),
            o.get("volumeBindingMode"),
            bool(o.get("allowVolumeExpansion")),
            born(o),
        ],
    ),
    "discovery.k8s.io/endpointslices": layout("Name|AddressType|Ports|Endpoints|Age", _slice),
    "apiextensions.k8s.io/customresourcedefinitions": _CREATED,
    "rbac.authorization.k8s.io/roles": _CREATED,
    "rbac.authorization.k8s.io/clusterroles": _CREATED,
    "rbac.authorization.k8s.io/rolebindings": layout("Name|Role|Age|wide|Users|Groups|ServiceAccounts", _binding),
    "rbac.authorization.k8s.io/clusterrolebindings": layout(
        "Name|Role|Age|wide|Users|Groups|ServiceAccounts", _binding
    ),
    "networking.k8s.io/ingresses": layout("Name|Class|Hosts|Address|Ports|Age", _ingress),
    "networking.k8s.io/networkpolicies": layout(
        "Name|Pod-Selector|Age",
        lambda o: [_name(o), text_of((o.get("spec") or {}).get("podSelector")) or NONE, born(o)],
    ),
    "node.k8s.io/runtimeclasses": layout("Name|Handler|Age", lambda o: [_name(o), o.get("handler", ""), born(o)]),
}
_LAYOUTS["events.k8s.io/events"] = _LAYOUTS["events"]
