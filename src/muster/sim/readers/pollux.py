"""Workloads of the Pollux and Sia artifacts: `name,time,application,num_replicas,batch_size`.

They hold no run times: those follow from the step times and training runs that Pollux measured, one folder
per application, which must lie near the workload (`traces/`, or `pollux/traces/`, beside it or in a folder
above). `measured` computes them; a job is one gang with a member per GPU, run at the size the workload
gives.
"""

from pathlib import Path

from muster.errors import UserError
from muster.model.gang import Gang
from muster.sim.readers.measured import Application, load
from muster.sim.readers.source import Source
from muster.sim.readers.table import Row, header, rows
from muster.sim.readers.workers import Workers
from muster.sim.workload import Job, Workload

_COLUMNS = {"name", "time", "application", "num_replicas", "batch_size"}
_PLACES = ("traces", "pollux/traces")
_FOLDERS_ABOVE = 3


def sniff(head: list[str]) -> bool:
    return header(head) >= _COLUMNS


def read(source: Source) -> Workload:
    workers = Workers()
    applications: dict[str, Application] = {}
    jobs = []
    for row in rows(source):
        application = row.text("application")
        if application not in applications:
            applications[application] = load(_folder(row, application))
        replicas = row.whole("num_replicas", least=1)
        runtime = _runtime(row, applications[application], replicas)
        identity = row.text("name", str(row.line))
        gang = Gang(uid=identity, roles=workers[replicas], submitted=row.number("time"), name=application)
        jobs.append(Job(gang, runtime, identity))
    return Workload(source.name, tuple(jobs))


def _runtime(row: Row, application: Application, replicas: int) -> float:
    try:
        return application.runtime(replicas, row.whole("batch_size", least=1))
    except ValueError as error:
        raise row.error("batch_size" if "batch" in str(error) else "num_replicas", str(error)) from None


def _folder(row: Row, application: str) -> Path:
    folder = row.source.folder.resolve()
    tried = [base / place for base in (folder, *folder.parents[:_FOLDERS_ABOVE]) for place in _PLACES]
    for place in tried:
        if application and (place / application / "placements.csv").is_file():
            return place / application
    if any(place.is_dir() for place in tried):
        raise row.error("application", "there are no measurements of that name in the traces folder")
    raise UserError(
        f"{row.source.where}: run times need Pollux's measurements; put its folder `traces` beside this file"
    )
