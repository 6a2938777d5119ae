"""Opening a trace wherever it lies: a plain file, a .gz, or a member of a .tar.gz, always with line numbers.

A member is addressed as `traces.tar.gz:cluster04.csv`, or by the number in its name: `traces.tar.gz:4`.
"""

import gzip
import re
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from muster.errors import UserError

_ARCHIVES = (".tar.gz", ".tgz", ".tar")
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Source:
    """The text of one trace. `where` is how messages name it; `folder` is where companions are looked for."""

    where: str
    folder: Path
    lines: list[str]

    @property
    def name(self) -> str:
        last = re.split(r"[/:]", self.where)[-1]
        return re.sub(r"(\.swf|\.csv|\.txt)?(\.gz)?$", "", last)

    def error(self, line: int, problem: str) -> UserError:
        return UserError(f"{self.where}, line {line}: {problem}")


def open_source(trace: str) -> Source:
    """Read the whole text of `trace`; every failure is one line that names the file."""
    path, member = _split(trace)
    with _readable(path):
        if path.name.endswith(_ARCHIVES):
            return _from_archive(path, member)
        data = path.read_bytes()
        text = (gzip.decompress(data) if data.startswith(_GZIP) else data).decode()
        return Source(str(path), path.parent, text.splitlines())


def _split(trace: str) -> tuple[Path, str]:
    for ending in _ARCHIVES:
        head, found, member = trace.partition(ending + ":")
        if found:
            return Path(head + ending), member
    return Path(trace), ""


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn what can go wrong with a file into a line for the user."""
    try:
        yield
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise UserError(f"{path}: this is a folder; give one trace file in it") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: this is not text (byte {error.start}); give a trace, or a .gz of one") from None
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None


def _from_archive(path: Path, member: str) -> Source:
    with tarfile.open(path) as archive:
        chosen = _choose(path, [entry.name for entry in archive if entry.isfile()], member)
        opened = archive.extractfile(chosen)
        text = opened.read().decode() if opened else ""
    return Source(f"{path}:{chosen}", path.parent, text.splitlines())


def _choose(path: Path, names: list[str], member: str) -> str:
    if member in names:
        return member
    tables = sorted(name for name in names if name.endswith((".csv", ".swf", ".txt")))
    if member.isdigit():
        numbered = [name for name in tables if re.search(rf"(?<!\d)0*{int(member)}\.\w+$", name)]
        if len(numbered) == 1:
            return numbered[0]
    if not member and len(tables) == 1:
        return tables[0]
    problem = f"there is no member {member!r} in it" if member else "it holds several traces"
    raise UserError(f"{path}: {problem}; give {path.name}:MEMBER, one of: {', '.join(tables) or '(none found)'}")
