"""Runs real jobs for tests and benchmarks: starts the launcher, watches the workers' notes, hurts
processes.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from muster.elastic.client import Unreachable, ask

SCRIPT = Path(__file__).with_name("script.py")
LONG = 300.0
POLL = 0.05


@dataclass(slots=True)
class Job:
    directory: Path
    process: "subprocess.Popen[bytes]"
    offsets: dict[Path, int] = field(default_factory=dict)
    found: list[dict[str, Any]] = field(default_factory=list)

    def notes(self) -> list[dict[str, Any]]:
        """All that workers have noted so far, each with the process it came from."""
        for path in sorted((self.directory / "notes").glob("worker-*.jsonl")):
            with path.open() as file:
                file.seek(self.offsets.get(path, 0))
                while (line := file.readline()).endswith("\n"):
                    self.found.append(json.loads(line) | {"worker": int(path.stem.split("-")[1])})
                    self.offsets[path] = file.tell()
        return self.found

    def steps(self) -> list[dict[str, Any]]:
        return [n for n in self.notes() if "step" in n]

    def wait(self, condition: Callable[[], Any], seconds: float = LONG) -> Any:
        until = time.monotonic() + seconds
        while not (result := condition()):
            if time.monotonic() > until:
                self.dump()
                raise TimeoutError(f"{condition} did not come true; last notes: {self.steps()[-3:]}, {self.about()}")
            if self.process.poll() is not None:
                if result := condition():
                    break
                raise RuntimeError(f"the job ended with {self.process.returncode} too early")
            time.sleep(POLL)
        return result

    def dump(self) -> None:
        """Have every worker write down where it stands."""
        for pid in {n["pid"] for n in self.notes() if "pid" in n}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGUSR1)
        time.sleep(1)

    def step(self) -> int:
        return max((n["step"] for n in self.steps()), default=0)

    def past(self, steps: int = 5) -> None:
        """Wait until training has got on by some steps."""
        goal = self.step() + steps
        self.wait(lambda: self.step() >= goal)

    def reaches(self, world: int, steps: int = 3) -> None:
        """Wait until the last steps were made by `world` members."""

        def there() -> bool:
            newest = max((n["epoch"] for n in self.steps()), default=0)
            made = {n["step"] for n in self.steps() if n["epoch"] == newest and n["world"] == world}
            return len(made) >= steps

        self.wait(there)

    def worker(self, rank: int) -> int:
        """The process that is rank `rank` now."""
        newest = max(n["epoch"] for n in self.steps())
        return next(int(n["worker"]) for n in reversed(self.steps()) if n["rank"] == rank and n["epoch"] == newest)

    def agent(self, rank: int) -> int:
        worker = self.worker(rank)
        return next(int(n["parent"]) for n in self.notes() if n["worker"] == worker and "parent" in n)

    def authority(self) -> int:
        return int(json.loads((self.directory / "processes.json").read_text())["authority"])

    def address(self) -> str:
        return (self.directory / "address").read_text()

    def secret(self) -> bytes:
        return (self.directory / "secret").read_bytes()

    def resize(self, target: int, seconds: float | None = None) -> dict[str, Any]:
        path = "/v1/jobs/job/resize"
        code, answer = ask(self.address(), self.secret(), path, {"target": target, "seconds": seconds}, 5.0)
        return answer | {"code": code}

    def about(self) -> dict[str, Any]:
        import http.client

        try:
            with contextlib.closing(http.client.HTTPConnection(self.address(), timeout=5)) as connection:
                connection.request("GET", "/v1/jobs/job")
                return dict(json.loads(connection.getresponse().read()))
        except (OSError, ValueError, Unreachable) as error:
            return {"error": str(error)}

    def finish(self, seconds: float = LONG) -> "Job":
        (self.directory / "notes" / "hurry").touch()
        code = self.process.wait(seconds)
        assert code == 0, f"the job ended with {code}"
        return self

    def history(self) -> dict[int, list[dict[str, Any]]]:
        """The steps that survived: of each, what the members of its last epoch noted."""
        last: dict[int, int] = {}
        for n in self.steps():
            last[n["step"]] = max(last.get(n["step"], 0), n["epoch"])
        return {s: [n for n in self.steps() if n["step"] == s and n["epoch"] == e] for s, e in sorted(last.items())}

    def samples(self) -> Counter[int]:
        """How often each sample went into a step that survived."""
        epochs = {step: notes[0]["epoch"] for step, notes in self.history().items()}
        tried = [n for n in self.notes() if "tried" in n and epochs.get(n["tried"]) == n["epoch"]]
        return Counter(i for n in tried for i in n["ids"])

    def weights(self) -> dict[str, list[float]]:
        return dict(next(n["weights"] for n in self.notes() if n.get("done") and n["rank"] == 0))

    def losses(self) -> dict[tuple[int, int], float]:
        """The loss of each member in each surviving step, as far as it lived to note it."""
        return {(step, n["rank"]): n["loss"] for step, notes in self.history().items() for n in notes}

    def loss(self, first: int, last: int) -> float:
        """The mean loss over a range of steps."""
        found = [v for (step, _), v in self.losses().items() if first <= step <= last]
        return sum(found) / len(found)


@contextlib.contextmanager
def job(
    directory: Path, *launcher: str, script: tuple[str, ...] = (), env: dict[str, str] | None = None
) -> Iterator[Job]:
    """A running job; whatever is left of it is killed at the end."""
    (directory / "notes").mkdir(parents=True)
    command = [sys.executable, "-m", "muster.elastic.launch", "--directory", str(directory), *launcher]
    command += [str(SCRIPT), "--notes", str(directory / "notes"), *script]
    environment = os.environ | {"OMP_NUM_THREADS": "1"} | (env or {})
    with (directory / "output").open("wb") as out:
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT)
    running = Job(directory, process)
    try:
        yield running
    except BaseException:
        sys.stderr.write((directory / "output").read_text()[-6000:])
        raise
    finally:
        _end(running)


def _end(running: Job) -> None:
    with contextlib.suppress(OSError, ValueError):
        for pid in json.loads((running.directory / "processes.json").read_text()).values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
    running.process.kill()
    running.process.wait()
