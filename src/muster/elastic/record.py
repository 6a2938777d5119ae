"""The authority's record on disk, changed by compare-and-swap: of two authorities at most one can act.

In a cluster the job's Kubernetes object plays this part. Here it is a file: a lock makes the comparison and
the replacement one, and the file appears whole or not at all.
"""

import fcntl
import json
import os
from dataclasses import dataclass
from pathlib import Path

from muster.elastic.authority import Record
from muster.elastic.protocol import Refused, decode, encode


class Deposed(Refused):
    """Another authority has taken over this job."""


@dataclass(slots=True)
class RecordFile:
    path: Path

    def read(self) -> Record:
        try:
            return decode(Record, json.loads(self.path.read_text()))
        except FileNotFoundError:
            return Record()
        except ValueError as error:
            raise Refused(f"{self.path} is damaged ({error}); remove it to start the job anew") from None

    def swap(self, expected: Record, new: Record) -> None:
        with self.path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            found = self.read()
            if found != expected:
                raise Deposed(f"{self.path} is at term {found.term}, this authority at {expected.term}")
            fresh = self.path.with_suffix(".new")
            with fresh.open("w") as out:
                out.write(json.dumps(encode(new)))
                out.flush()
                os.fsync(out.fileno())
            fresh.replace(self.path)
