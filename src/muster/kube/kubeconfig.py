"""Kubeconfig files: several merged as kubectl merges them, one context of them resolved.

Our own reader, on PyYAML, by measurement. Importing it and what it needs takes 0.07 s of CPU and 27 MB;
`kubernetes_asyncio.config` 0.30 s and 73 MB, because its package imports 20 MB of generated models (and
brings urllib3, six, dateutil and certifi); lightkube's reader 0.09 s and 31 MB, with an HTTP library and a
package of models as dependencies. None of them does all that a process living for months needs: merged files,
plugins run beside the loop, renewed at expiry and on refusal, and errors that name the file and the field.
What is read here is the format, which is small; YAML, TLS and HTTP are libraries.
"""

import base64
import binascii
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from muster.kube.errors import ConfigError

PATH_FIELDS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


@dataclass(frozen=True, slots=True)
class Section:
    """A mapping of the file, with the words to name it in an error."""

    where: str
    values: dict[str, Any]

    def text(self, name: str) -> str:
        """A string, empty if absent."""
        value = self.values.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise ConfigError(f"{self.where}: {name} must be a string, not {type(value).__name__}")
        return value

    def flag(self, name: str) -> bool:
        """A boolean, false if absent."""
        value = self.values.get(name) or False
        if not isinstance(value, bool):
            raise ConfigError(f"{self.where}: {name} must be true or false, not {value!r}")
        return value

    def inner(self, name: str) -> "Section | None":
        """A mapping inside, if it is there."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise ConfigError(f"{self.where}: {name} must be a mapping")
        return Section(f"{self.where}, {name}", value)

    def entries(self, name: str) -> list["Section"]:
        """A list of mappings, empty if absent."""
        value = self.values.get(name) or []
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise ConfigError(f"{self.where}: {name} must be a list of mappings")
        return [Section(f"{self.where}, {name}[{index}]", item) for index, item in enumerate(value)]

    def data(self, name: str) -> bytes:
        """PEM given inline as `NAME-data`, or in the file `NAME`; inline wins, as in kubectl."""
        inline = self.text(f"{name}-data")
        if inline:
            try:
                return base64.b64decode(inline, validate=True)
            except binascii.Error as error:
                raise ConfigError(f"{self.where}: {name}-data is not base64: {error}") from error
        path = self.text(name)
        if not path:
            return b""
        try:
            return Path(path).read_bytes()
        except OSError as error:
            raise ConfigError(f"{self.where}: {name} {path}: {error.strerror}") from error


@dataclass(slots=True)
class Merged:
    """All files as one: of two entries with one name, the first counts."""

    files: str
    clusters: dict[str, Section] = field(default_factory=dict)
    users: dict[str, Section] = field(default_factory=dict)
    contexts: dict[str, Section] = field(default_factory=dict)
    current: str = ""

    def chosen(self, context: str = "") -> tuple[Section, Section, Section]:
        """Context, cluster and user; the current context unless another is named."""
        name = context or self.current
        if not name:
            known = ", ".join(self.contexts) or "none"
            raise ConfigError(f"{self.files}: no current-context; name one of its contexts ({known})")
        chosen = _known(self.contexts, name, "context", self.files)
        cluster = _known(self.clusters, chosen.text("cluster"), "cluster", chosen.where)
        user = chosen.text("user")
        empty = Section(chosen.where, {})
        return chosen, cluster, _known(self.users, user, "user", chosen.where) if user else empty

    def add(self, file: Section) -> None:
        """Take from one more file what is not there yet."""
        self.current = self.current or file.text("current-context")
        for kind, into in (("cluster", self.clusters), ("user", self.users), ("context", self.contexts)):
            for entry in file.entries(f"{kind}s"):
                name = entry.text("name")
                if not name:
                    raise ConfigError(f"{entry.where}: name is missing")
                content = entry.inner(kind) or Section("", {})
                into.setdefault(name, Section(f"{file.where}, {kind} '{name}'", content.values))


def merge(paths: Iterable[Path], *, must_exist: bool) -> Merged:
    """Read the files in order; one that does not exist is passed over unless it was asked for by name."""
    paths = list(paths)
    merged = Merged(os.pathsep.join(map(str, paths)))
    for path in paths:
        try:
            text = path.read_text()
        except FileNotFoundError as error:
            if must_exist:
                raise ConfigError(f"kubeconfig {path}: no such file") from error
            continue
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"kubeconfig {path}: {error}") from error
        merged.add(_parsed(path, text))
    return merged


def _parsed(path: Path, text: str) -> Section:
    try:
        tree = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
    except yaml.YAMLError as error:
        raise ConfigError(f"kubeconfig {path}: not YAML: {error}") from error
    if not isinstance(tree, dict) and tree is not None:
        raise ConfigError(f"kubeconfig {path}: must be a mapping with clusters, users and contexts")
    file = Section(f"kubeconfig {path}", tree or {})
    for kind in ("cluster", "user"):
        for entry in file.entries(f"{kind}s"):
            inner = entry.inner(kind)
            if inner is not None:
                _anchor(path, inner.values)
    return file


def _anchor(path: Path, section: dict[str, Any]) -> None:
    """Relative paths are relative to the file they are written in."""
    for name in PATH_FIELDS:
        if isinstance(section.get(name), str) and section[name]:
            section[name] = str(path.absolute().parent / section[name])
    plugin = section.get("exec")
    if isinstance(plugin, dict) and isinstance(plugin.get("command"), str):
        command = plugin["command"]
        if os.sep in command:
            plugin["command"] = str(path.absolute().parent / command)


def _known(among: dict[str, Section], name: str, kind: str, where: str) -> Section:
    if name not in among:
        known = ", ".join(among) or "none"
        raise ConfigError(f"{where}: no {kind} named '{name}'; known: {known}")
    return among[name]
