"""The kinds the API server serves: what discovery tells, what a path means, where an object is stored."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from muster.local.api.errors import qualified

EVENTS_V1 = "events.k8s.io"
VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind in one version."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    short: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = VERBS
    singular: str = ""
    storage: str = ""  # the version objects are stored in, when it is not this one
    custom: bool = False
    scale: tuple[str, str, str] | None = None  # paths of a custom kind: replicas wanted, had, and selector
    selectable: tuple[str, ...] = ()  # fields of a custom kind that field selectors may name

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def id(self) -> str:
        """The name within the store and in process: "pods", "batch/jobs". Events of both groups are the same ones."""
        if self.group == EVENTS_V1:
            return self.plural
        return f"{self.group}/{self.plural}" if self.group else self.plural

    @property
    def qualified(self) -> str:
        return qualified(self.plural, self.group)

    @property
    def type(self) -> str:
        """The name of the kind's fields in the table of types; "" for custom kinds."""
        return "" if self.custom else type_name(self.group, self.version, self.kind)

    def at(self, version: str) -> Resource:
        return replace(self, version=version, storage=self.storage or self.version)


def type_name(group: str, version: str, kind: str) -> str:
    short = {"": "core", "rbac.authorization.k8s.io": "rbac"}.get(group) or group.partition(".")[0]
    return f"{short}.{version}.{kind}"


@dataclass(slots=True)
class Catalogue:
    """Every kind served now. Custom kinds come and go."""

    by_path: dict[tuple[str, str, str], Resource] = field(default_factory=dict)
    by_id: dict[str, Resource] = field(default_factory=dict)
    changes: int = 0  # discovery and OpenAPI documents are rebuilt when it moved

    def add(self, resource: Resource) -> None:
        self.by_path[resource.group, resource.version, resource.plural] = resource
        if resource.group != EVENTS_V1 and (not resource.storage or resource.storage == resource.version):
            self.by_id[resource.id] = resource
        self.changes += 1

    def remove(self, group: str, plural: str) -> None:
        for path in [p for p in self.by_path if p[0] == group and p[2] == plural]:
            del self.by_path[path]
        self.by_id.pop(f"{group}/{plural}", None)
        self.changes += 1

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        group, _, version = api_version.rpartition("/")
        for (g, v, _), resource in self.by_path.items():
            if g == group and v == version and resource.kind == kind and "list" in resource.verbs:
                return resource
        return None

    def versions(self, group: str) -> list[str]:
        """Versions of a group, the preferred one first."""
        return list(dict.fromkeys(v for g, v, _ in self.by_path if g == group))

    def groups(self) -> list[str]:
        return list(dict.fromkeys(g for g, _, _ in self.by_path if g))

    def within(self, group: str, version: str) -> list[Resource]:
        return [r for (g, v, _), r in self.by_path.items() if g == group and v == version]
