"""Turn into a container's command: the few system calls between fork and exec, as a script of its own.

It is started as `python launcher.py SPEC` with nothing but the standard library, gives itself a private
view of the mounts and the host name where the machine allows it, and executes the command. No process
remains of it. Where something cannot be done it says so in the spec's error file and exits with 128, as a
container runtime would.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

_libc = ctypes.CDLL(None, use_errno=True)
_NEWNS, _NEWUTS, _NEWUSER = 0x00020000, 0x04000000, 0x10000000
_RDONLY, _REMOUNT, _BIND, _REC, _PRIVATE, _DETACH = 1, 32, 4096, 16384, 1 << 18, 2
_PR_SET_PDEATHSIG = 1
_CANNOT_START = 128


def main() -> None:
    spec = json.loads(Path(sys.argv[1]).read_text())
    try:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if spec["isolate"]:
            _isolate(spec)
        os.chdir(spec["cwd"])
        os.execvpe(spec["argv"][0], spec["argv"], spec["env"])  # noqa: S606 running the pod's command is the point
    except FileNotFoundError as error:
        missing = error.filename if error.filename == spec["cwd"] else spec["argv"][0]
        kind = "no such directory" if missing == spec["cwd"] else "executable file not found in $PATH"
        _refuse(spec, f'exec: "{missing}": {kind}')
    except OSError as error:
        _refuse(spec, f'exec: "{error.filename or spec["argv"][0]}": {error.strerror}')


def _refuse(spec: dict[str, Any], message: str) -> None:
    Path(spec["error"]).write_text(message)
    os._exit(_CANNOT_START)


def _isolate(spec: dict[str, Any]) -> None:
    """A private view of the mounts and the host name; without root by way of a user namespace."""
    uid, gid = os.getuid(), os.getgid()
    _check(_libc.unshare(_NEWNS | _NEWUTS | (_NEWUSER if uid else 0)), "unshare")
    if uid:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    _mount("none", "/", _REC | _PRIVATE)
    name = spec["hostname"].encode()
    _check(_libc.sethostname(name, len(name)), "sethostname")
    _mount(spec["hosts"], "/etc/hosts", _BIND)
    for source, target, read_only in spec["mounts"]:
        _place(Path(target), Path(source), Path(spec["staging"]))
        _mount(source, target, _BIND | _REC)
        _ours.add(Path(target))
        if read_only:
            _mount("none", target, _BIND | _REMOUNT | _RDONLY | _locked(target))


def _place(target: Path, source: Path, staging: Path) -> None:
    """Make the mount point exist, in this process's view alone: the machine's own directories are left as
    they are.
    """
    if target.exists():
        return
    there = target
    while not there.exists():
        there = there.parent
    if not _is_ours(there):
        _mirror(there, staging)
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        target.mkdir()
    else:
        target.touch()


_ours: set[Path] = set()


def _is_ours(directory: Path) -> bool:
    """Whether what is made here is seen by the pod alone: it is in a mirror, or in one of the pod's
    volumes.
    """
    return bool(_ours & {directory, *directory.parents} - {Path("/")}) or (directory in _ours)


def _mirror(directory: Path, staging: Path) -> None:
    """Put a writable directory with the same entries in the place of one that must not be written to."""
    new = staging / f"mirror{len(_ours)}"
    new.mkdir(exist_ok=True)
    _mount("tmpfs", str(new), 0, b"tmpfs")
    for entry in os.scandir(directory):
        _copy(entry, new / entry.name)
    if directory == Path("/"):
        _become_root(new)
    else:
        _mount(str(new), str(directory), _BIND | _REC)
    _ours.add(directory)


def _copy(entry: os.DirEntry[str], to: Path) -> None:
    if entry.is_symlink():
        to.symlink_to(Path(entry.path).readlink())
        return
    if entry.is_dir(follow_symlinks=False):
        to.mkdir()
    else:
        to.touch()
    _mount(entry.path, str(to), _BIND | _REC)


def _become_root(new: Path) -> None:
    old = new / ".old"
    old.mkdir()
    _check(_libc.syscall(_pivot_root(), str(new).encode(), str(old).encode()), "pivot_root")
    os.chdir("/")
    _check(_libc.umount2(b"/.old", _DETACH), "umount")
    Path("/.old").rmdir()


def _pivot_root() -> int:
    return {"x86_64": 155, "aarch64": 41}[os.uname().machine]


def _locked(target: str) -> int:
    """The flags of a mount that a user namespace may not take away, and so must repeat."""
    flags = os.statvfs(target).f_flag
    return flags & (os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC)


def _mount(source: str, target: str, flags: int, kind: bytes | None = None) -> None:
    if _libc.mount(source.encode(), target.encode(), kind, ctypes.c_ulong(flags), None):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), f"mount {target}")


def _check(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


if __name__ == "__main__":
    main()
