"""The real kubectl: Debian's, fetched if it is missing, and whatever else this machine has."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Kubectl:
    """One kubectl, one cluster, one namespace."""

    binary: str
    kubeconfig: Path
    namespace: str

    def __call__(self, *words: str, stdin: str = "", code: int | None = 0) -> str:
        """Run a command and return what it printed; it must exit with `code`, None for any."""
        done = self.run(*words, stdin=stdin)
        if code is not None:
            assert done.returncode == code, f"kubectl {' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def run(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = [self.binary, "--kubeconfig", str(self.kubeconfig), "-n", self.namespace, *words]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False)

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = [self.binary, "--kubeconfig", str(self.kubeconfig), "-n", self.namespace, *words]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def apply(self, *objects: dict[str, Any], options: tuple[str, ...] = (), code: int | None = 0) -> str:
        together = {"apiVersion": "v1", "kind": "List", "items": objects}
        return self("apply", "-f", "-", *options, stdin=json.dumps(together), code=code)

    def get(self, *words: str) -> Any:
        return json.loads(self("get", *words, "-o", "json"))

    @property
    def minor(self) -> int:
        return version_of(self.binary)[1]


@cache
def binaries() -> list[str]:
    """Every kubectl there is, oldest first."""
    found = {path for path in (_debians(), shutil.which("kubectl")) if path}
    assert found, "kubectl is missing: apt-get install kubernetes-client"
    return sorted(found, key=version_of)


@cache
def version_of(binary: str) -> tuple[int, int]:
    told = subprocess.run([binary, "version", "--client"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"v(\d+)\.(\d+)\.", told)
    assert match is not None, told
    return int(match[1]), int(match[2])


@cache
def _debians() -> str | None:
    """Debian's kubectl, unpacked beside what is installed; None where there is no Debian to ask."""
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        return None
    home = Path(tempfile.gettempdir()) / f"muster-kubectl-{os.getuid()}"
    home.mkdir(mode=0o700, exist_ok=True)
    binary = home / "usr" / "bin" / "kubectl"
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not binary.exists():
            _unpack(home)
    return str(binary) if binary.exists() else None


def _unpack(home: Path) -> None:
    fetch = ["apt-get", "download", "kubernetes-client"]
    if subprocess.run(fetch, cwd=home, capture_output=True, check=False).returncode:
        subprocess.run(["apt-get", "update"], capture_output=True, check=False)
        subprocess.run(fetch, cwd=home, capture_output=True, check=False)
    for package in home.glob("*.deb"):
        subprocess.run(["dpkg", "-x", str(package), str(home)], capture_output=True, check=False)
