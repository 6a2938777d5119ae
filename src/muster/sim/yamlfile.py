"""A YAML file as entries that know their line, so that every complaint names file, line and field."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from muster.errors import UserError
from muster.objects.quantity import QuantityError, amount, milli_units

_MOST = 1_000_000  # of nodes, or nodes in a domain
_LARGEST = 1 << 53  # base units: sums of amounts stay within 64 bits


@dataclass(frozen=True, slots=True)
class Entry:
    """One place in the file: `field` is the path to it, as a person would say it."""

    file: str
    field: str
    node: yaml.Node

    def error(self, problem: str) -> UserError:
        return UserError(f"{self.file}, line {self.node.start_mark.line + 1}: {self.field}: {problem}")

    def mapping(self, known: Collection[str] = ()) -> dict[str, "Entry"]:
        """The entries below by key; with `known`, another key is refused."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.error("give a mapping, `key: value` on each line")
        below: dict[str, Entry] = {}
        for key, value in self.node.value:
            name = self._key(key)
            path = f"{self.field}.{name}" if self.field else name
            entry = Entry(self.file, path, value)
            if known and name not in known:
                raise Entry(self.file, path, key).error(f"not known; give one of: {', '.join(known)}")
            if name in below:
                raise Entry(self.file, path, key).error("given twice; keep one")
            below[name] = entry
        return below

    def items(self) -> Iterator["Entry"]:
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.error("give a list, `- ` before each item")
        for index, item in enumerate(self.node.value):
            yield Entry(self.file, f"{self.field}[{index}]", item)

    def text(self) -> str:
        if not isinstance(self.node, yaml.ScalarNode) or not self.node.value:
            raise self.error("give a word")
        return str(self.node.value)

    def whole(self, least: int) -> int:
        try:
            value = int(self.text())
        except ValueError:
            raise self.error(f"{self.text()!r} is not a whole number") from None
        if not least <= value <= _MOST:
            raise self.error(f"{value} is not from {least} to {_MOST}")
        return value

    def quantity(self, resource: str) -> int:
        """An amount of a resource as Kubernetes writes it, in base units."""
        try:
            value = amount(resource, milli_units(self.text()))
        except QuantityError as error:
            raise self.error(str(error)) from None
        if value < 0:
            raise self.error(f"{self.text()} is below zero")
        if value > _LARGEST:
            raise self.error(f"{self.text()} is more than any machine has")
        return value

    def _key(self, key: yaml.Node) -> str:
        if not isinstance(key, yaml.ScalarNode):
            raise Entry(self.file, self.field or "key", key).error("keys are plain words")
        return str(key.value)


def load(path: Path) -> Entry:
    """The whole file as one entry. Nothing in it is built or run: only text, lists and mappings are read."""
    try:
        tree = yaml.compose(path.read_text(), Loader=yaml.SafeLoader)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UserError(f"{path}, line {line}: this is not YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise UserError(f"{path}: this is not YAML: {str(error).splitlines()[0]}") from None
    if tree is None:
        raise UserError(f"{path}: it is empty; see docs/cluster-file.md")
    return Entry(str(path), "", tree)
