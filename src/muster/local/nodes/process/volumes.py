"""A pod's volumes as directories on this machine, and where each container wants them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from muster.local.api.access import Object
from muster.local.nodes.process.environment import (
    ConfigError,
    Facts,
    Lookup,
    contents,
    expand,
    field_value,
    resource_value,
)

Mount = tuple[str, str, bool]
_MEMORY = Path("/dev/shm")  # noqa: S108 the memory file system is what a Memory volume asks for


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the contents of volumes come from."""

    pod: Object
    facts: Facts
    lookup: Lookup


def prepare(sources: Sources, root: Path) -> dict[str, Path]:
    """Make every volume of the pod; where each lies, by name. Volumes that are there already are left as
    they are.
    """
    found = {}
    for volume in sources.pod["spec"].get("volumes") or ():
        where = root / volume["name"]
        found[volume["name"]] = _prepare(volume, where, sources)
    return found


def memory_volumes(pod: Object) -> list[Path]:
    """Directories outside the pod's own that are to be removed with it."""
    return [
        _in_memory(pod, volume["name"])
        for volume in pod["spec"].get("volumes") or ()
        if (volume.get("emptyDir") or {}).get("medium") == "Memory"
    ]


def mounts(container: Object, volumes: dict[str, Path], env: dict[str, str]) -> list[Mount]:
    """What a container mounts, outer directories first."""
    found = []
    for mount in container.get("volumeMounts") or ():
        if mount["name"] not in volumes:
            raise ConfigError(f'volume "{mount["name"]}" is mounted but not among the pod\'s volumes')
        source = volumes[mount["name"]]
        if inside := mount.get("subPath") or expand(mount.get("subPathExpr", ""), env):
            source = source / inside
            if not source.exists():
                source.mkdir(parents=True)
        found.append((str(source), mount["mountPath"], bool(mount.get("readOnly"))))
    return sorted(found, key=lambda mount: mount[1].count("/"))


def _prepare(volume: Object, where: Path, sources: Sources) -> Path:
    if "hostPath" in volume:
        return _host_path(volume["hostPath"])
    if (volume.get("emptyDir") or {}).get("medium") == "Memory" and _MEMORY.is_dir():
        where = _in_memory(sources.pod, volume["name"])
    where.mkdir(parents=True, exist_ok=True)
    if "emptyDir" in volume or "ephemeral" in volume:
        return where
    for name, data in _files(volume, sources).items():
        path = where / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(_mode(volume))
    return where


def _in_memory(pod: Object, name: str) -> Path:
    return _MEMORY / f"muster-{pod['metadata']['uid']}-{name}"


def _host_path(source: Object) -> Path:
    path = Path(source["path"])
    if source.get("type") == "DirectoryOrCreate":
        path.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        raise ConfigError(f'hostPath "{path}" is not there on this machine')
    return path


def _mode(volume: Object) -> int:
    kinds = ("configMap", "secret", "downwardAPI", "projected")
    return int(next((volume[kind].get("defaultMode", 0o644) for kind in kinds if kind in volume), 0o644))


def _files(volume: Object, sources: Sources) -> dict[str, bytes]:
    if "projected" in volume:
        found: dict[str, bytes] = {}
        for source in volume["projected"].get("sources") or ():
            found |= _source_files(source, sources)
        return found
    if not {"configMap", "secret", "downwardAPI"} & volume.keys():
        kind = next((key for key in volume if key != "name"), "?")
        raise ConfigError(f'volume "{volume["name"]}": this node has no volumes of type {kind}')
    return _source_files(volume, sources)


def _source_files(source: Object, sources: Sources) -> dict[str, bytes]:
    for key, resource in (("configMap", "configmaps"), ("secret", "secrets")):
        if key in source:
            return _object_files(source[key], resource, sources.lookup)
    if "downwardAPI" in source:
        items = source["downwardAPI"].get("items") or ()
        return {item["path"]: _downward(item, sources).encode() for item in items}
    return {}


def _object_files(source: Object, resource: str, lookup: Lookup) -> dict[str, bytes]:
    name = source.get("secretName") or source.get("name") or ""
    found = lookup(resource, name)
    if found is None:
        if source.get("optional"):
            return {}
        raise ConfigError(f'{resource.removesuffix("s")} "{name}" not found')
    data = contents(found)
    if "items" not in source:
        return data
    missing = [item["key"] for item in source["items"] if item["key"] not in data]
    if missing and not source.get("optional"):
        raise ConfigError(f"{resource.removesuffix('s')} references non-existent key: {missing[0]}")
    return {item["path"]: data[item["key"]] for item in source["items"] if item["key"] in data}


def _downward(item: Object, sources: Sources) -> str:
    if "fieldRef" in item:
        return field_value(sources.pod, item["fieldRef"]["fieldPath"], sources.facts)
    container = sources.pod["spec"]["containers"][0]
    return resource_value(sources.pod, container, item["resourceFieldRef"], sources.facts)
