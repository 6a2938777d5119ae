"""The description of a cluster in a file: groups of nodes that are alike, for `muster up --cluster FILE`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from muster.errors import UserError
from muster.local.nodes.template import PROCESS, SIMULATED, NodeTemplate
from muster.objects.quantity import QuantityError, parse_quantity

Group = dict[str, Any]

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_EXAMPLE = "write for example: nodes: [{count: 8, capacity: {cpu: 64, nvidia.com/gpu: 8}, racks: 2}]"


def read(path: Path) -> list[NodeTemplate]:
    """The node groups of a file. Raises UserError naming the file, the group and the field."""
    try:
        content = yaml.safe_load(path.read_text())
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise UserError(f"{path}: is not YAML: {error}") from None
    groups = content.get("nodes") if isinstance(content, dict) else None
    if not isinstance(groups, list) or not groups:
        raise UserError(f"{path}: needs a list 'nodes' of node groups; {_EXAMPLE}")
    if extra := sorted(map(str, content.keys() - {"nodes"})):
        raise UserError(f"{path}: does not know {extra[0]!r}; the only key is 'nodes'")
    templates = [_template(group, f"{path}: nodes[{i}]") for i, group in enumerate(groups)]
    _check_names(templates, path)
    return templates


def _check_names(templates: list[NodeTemplate], path: Path) -> None:
    prefixes = [t.prefix for t in templates]
    for prefix in prefixes:
        if prefixes.count(prefix) > 1:
            raise UserError(f"{path}: two groups are called {prefix!r}; give each its own 'prefix'")


def _template(group: Any, where: str) -> NodeTemplate:
    if not isinstance(group, dict):
        raise UserError(f"{where}: must be a mapping; {_EXAMPLE}")
    known = {**_FIELDS, **_SHORT}
    unknown = sorted(map(str, group.keys() - known.keys()))
    if unknown:
        raise UserError(f"{where}: does not know {unknown[0]!r}; it knows {', '.join(known)}")
    given = {name: known[name](value, f"{where}.{name}") for name, value in group.items()}
    return NodeTemplate(**_spelled_out(given))


def _spelled_out(given: dict[str, Any]) -> dict[str, Any]:
    """A group with the short spellings that files for `muster sim` use replaced by the full ones."""
    full = {name: value for name, value in given.items() if name in _FIELDS}
    if "name" in given:
        full.setdefault("prefix", given["name"])
    short = {_SHORT_NAMES.get(n, n): str(given[n]) for n in ("cpu", "memory", "gpus") if n in given}
    if short or "resources" in given:
        full["capacity"] = {**full.get("capacity", {}), **short, **given.get("resources", {})}
    return full


def _count(value: Any, where: str) -> int:
    if type(value) is not int or value < 0:
        raise UserError(f"{where}: must be a whole number, not {value!r}")
    return value


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise UserError(f"{where}: must be a text, not {value!r}")
    return value


def _kind(value: Any, where: str) -> str:
    if value not in (SIMULATED, PROCESS):
        raise UserError(f"{where}: must be {SIMULATED} or {PROCESS}, not {value!r}")
    return str(value)


def _pairs(value: Any, where: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise UserError(f"{where}: must be a mapping, not {value!r}")
    return {str(k): str(v) for k, v in value.items()}


def _capacity(value: Any, where: str) -> dict[str, str]:
    found = _pairs(value, where)
    for name, amount in found.items():
        try:
            parse_quantity(amount)
        except QuantityError as error:
            raise UserError(f"{where}.{name}: {error}") from None
    return found


def _taints(value: Any, where: str) -> tuple[dict[str, str], ...]:
    if not isinstance(value, list):
        raise UserError(f"{where}: must be a list of taints such as {{key: gpu, effect: NoSchedule}}")
    taints = tuple(_taint(taint, f"{where}[{i}]") for i, taint in enumerate(value))
    for i, taint in enumerate(taints):
        if not taint.get("key") or taint.get("effect") not in _EFFECTS:
            raise UserError(f"{where}[{i}]: needs a key and an effect, one of {', '.join(_EFFECTS)}")
    return taints


def _taint(value: Any, where: str) -> dict[str, str]:
    """A taint as a mapping, or as kubectl takes it: `key=value:Effect`."""
    if not isinstance(value, str):
        return _pairs(value, where)
    rest, _, effect = value.rpartition(":")
    key, _, said = rest.partition("=")
    return {"key": key, "effect": effect, **({"value": said} if said else {})}


def _amount(value: Any, where: str) -> str:
    return _capacity({"amount": value}, where)["amount"]


_FIELDS: dict[str, Callable[[Any, str], Any]] = {
    "count": _count,
    "prefix": _text,
    "kind": _kind,
    "capacity": _capacity,
    "labels": _pairs,
    "taints": _taints,
    "racks": _count,
    "blocks": _count,
    "zone": _text,
}
# The same in the short spelling of the files that describe a machine to `muster sim`.
_SHORT: dict[str, Callable[[Any, str], Any]] = {
    "name": _text,
    "cpu": _amount,
    "memory": _amount,
    "gpus": _count,
    "resources": _capacity,
}
_SHORT_NAMES = {"gpus": "nvidia.com/gpu"}
