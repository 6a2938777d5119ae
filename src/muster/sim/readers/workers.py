"""The commonest shape of a GPU job: so many workers, each with one GPU. Made once per size."""

from muster.model.gang import Role
from muster.model.resources import Resources
from muster.sim.workload import GPU

_ONE_GPU: Resources = {GPU: 1}


class Workers(dict[int, tuple[Role, ...]]):
    """Roles by number of workers, so that all jobs of one size share them."""

    def __missing__(self, count: int) -> tuple[Role, ...]:
        self[count] = (Role("worker", count, _ONE_GPU),)
        return self[count]
