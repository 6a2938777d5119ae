"""Random clusters, gangs, policies and misfortunes, small enough that everything gets in everyone's way."""

from dataclasses import dataclass, replace
from random import Random

from muster.model.gang import Gang, Role
from muster.model.node import Node
from muster.model.rules import ANYWHERE, PodSelector, PodTerm, Requirement, Rules, Taint, Toleration
from muster.model.topology import Closeness, Parallelism, Topology
from muster.plan.policy import parse
from tests.plan.body import Body

POLICIES = (
    "fcfs",
    "easy",
    "easy-2",
    "easy-3",
    "easy-sjbf",
    "conservative",
    "easy:priority",
    "easy:priority+sjf",
    "easy:sjf",
    "easy:wfp3",
    "easy-sjbf:unicef",
    "easy-2:edf",
    "easy:laxity",
    "easy:cost",
    "easy:las",
    "conservative:priority+fifo",
)
GPU = "nvidia.com/gpu"
TAINT = Taint("dedicated", "ml")
TOLERATES = (Toleration("dedicated", "Exists"),)
APART = Rules(away=(PodTerm(PodSelector((Requirement("app", "In", ("apart",)),)), "host"),))
TREES = {"trees": 2}


@dataclass(frozen=True)
class Taste:
    """Which complications a scene may have."""

    shapes: int = 3
    roles: int = 2
    topology: bool = True
    rules: bool = True
    elastic: bool = True
    groups: bool = True
    parallel: bool = True
    unknown: float = 0.3  # share of gangs whose length nobody knows
    overrun: float = 0.2  # share of gangs that outlive their limit
    failures: bool = True


PLAIN = Taste(1, 1, False, False, False, False, False, 0.0, 0.0, False)


class Scene:
    def __init__(self, seed: int, taste: Taste = Taste(), policy: str = "") -> None:
        self.random = Random(seed)
        self.taste = taste
        chosen = parse(policy or self.random.choice(POLICIES))
        self.policy = replace(chosen, age_bound=self.random.choice([30.0, 100.0]), repair_grace=8.0)
        self.topology, nodes = self._cluster()
        self.gone: list[Node] = []
        self.made = 0
        self.requests = self._requests()
        self.body = Body(nodes, self.topology, self.policy)

    def _cluster(self) -> tuple[Topology, list[Node]]:
        random = self.random
        levels = random.choice([(), ("rack",), ("zone", "rack")]) if self.taste.topology else ()
        resources = {("rack", f"r{i}"): TREES for i in range(3)} if "rack" in levels else {}
        number = random.randint(1, 7)
        sizes = [random.choice([1, 2, 4, 8]) for _ in range(random.randint(1, 2))]
        nodes = []
        for i in range(number):
            labels = {"host": f"n{i}", "zone": f"z{i % 4 // 2}", "rack": f"r{i % 3}", "kind": random.choice("ab")}
            if random.random() < 0.1:
                del labels["rack"]
            taints = (TAINT,) if self.taste.rules and random.random() < 0.15 else ()
            size = random.choice(sizes)
            nodes.append(Node(f"n{i}", {GPU: size, "cpu": 4 * size}, labels, taints))
        return Topology(levels, resources), nodes

    def _requests(self) -> list[dict[str, int]]:
        every = [{GPU: 1, "cpu": 2}, {GPU: 2, "cpu": 2}, {"cpu": 3}, {GPU: 1, "cpu": 7}]
        return self.random.sample(every, self.taste.shapes)

    def gang(self) -> tuple[Gang, float]:
        """A gang and how long it will really run."""
        random, taste = self.random, self.taste
        self.made += 1
        roles = tuple(self._role(i) for i in range(random.choice([1, 1, random.randint(1, taste.roles)])))
        if len(roles) > 1:
            roles = tuple(replace(r, rules=ANYWHERE) if r.rules.away else r for r in roles)
        length = float(random.randint(1, 20))
        unknown = random.random() < taste.unknown
        learned = not unknown and taste.overrun > 0 and random.random() < 0.3
        real = length
        if unknown or random.random() < 0.4:
            real = float(random.randint(1, int(length)))
        elif random.random() < taste.overrun:
            real = length + random.randint(1, 15)
        gang = Gang(
            uid=f"g{self.made}",
            roles=roles,
            submitted=self.body.now - 0.5 + self.made * 1e-6,
            priority=random.choice([0, 0, 1]),
            walltime=None if unknown or learned else length,
            estimate=length if learned else None,
            deadline=random.choice([None, self.body.now + random.randint(1, 60)]),
            waiting_cost=random.choice([0.0, 1.0, 2.5]),
            served=random.choice([0.0, 10.0]),
            closeness=self._closeness(),
        )
        return gang, real

    def _role(self, index: int) -> Role:
        random, taste = self.random, self.taste
        size = random.choice([1, 1, 2, 3, 4, random.randint(1, 12)])
        layout = None
        if taste.parallel and random.random() < 0.2:
            layout = Parallelism(random.choice([1, 2]), random.choice([1, 2]), size)
            size = max(size // 4, 1) * layout.tp * layout.pp
        most = size + random.randint(1, 6) if taste.elastic and random.random() < 0.3 else 0
        rules = ANYWHERE
        labels: dict[str, str] = {}
        if taste.rules and random.random() < 0.4:
            rules = random.choice([Rules(node_selector=(("kind", "a"),)), Rules(tolerations=TOLERATES), APART])
            if rules is APART and layout is None:
                labels = {"app": "apart"}
            elif rules is APART:
                rules = ANYWHERE
        return Role(f"r{index}", size, random.choice(self.requests), most, rules, labels, layout)

    def _closeness(self) -> Closeness:
        random, levels = self.random, self.topology.levels
        if not levels or random.random() < 0.5:
            return Closeness()
        if random.random() < 0.5:
            return Closeness(preferred=random.choice(levels))
        required = random.choice(levels)
        trees = (("trees", 1),) if required == "rack" and random.random() < 0.5 else ()
        return Closeness(required=required, resources=trees)

    def arrive(self) -> None:
        """One gang, or a small group of them."""
        size = self.random.choice([1, 1, 1, 2]) if self.taste.groups else 1
        group = f"group{self.made}" if size > 1 else ""
        for _ in range(size):
            gang, real = self.gang()
            gang = replace(gang, group=group, group_size=size)
            self.body.submit(gang, real)

    def misfortune(self) -> None:
        """A member or a node is lost, finishes, comes back or is closed."""
        random, body = self.random, self.body
        kind = random.choice(
            ["lose", "lose", "succeed", "remove", "return", "return", "cordon", "open", "resize", "withdraw"]
        )
        held = [(uid, role, node) for uid, live in body.live.items() for role, node in live.seats]
        if kind in {"lose", "succeed"} and held:
            uid, role, node = random.choice(held)
            count = random.randint(1, body.live[uid].seats[role, node])
            getattr(body, kind)(uid, role, node, count)
        elif kind == "remove" and len(body.nodes) > 1:
            name = random.choice(sorted(body.nodes))
            self.gone.append(replace(body.nodes[name], schedulable=True))
            body.remove_node(name)
        elif kind == "return" and self.gone:
            body.put_node(self.gone.pop())
        elif kind in {"cordon", "open"}:
            name = random.choice(sorted(body.nodes))
            body.put_node(replace(body.nodes[name], schedulable=kind == "open"))
        elif kind == "resize":
            name = random.choice(sorted(body.nodes))
            size = random.choice([1, 2, 4, 8])
            body.put_node(replace(body.nodes[name], capacity={GPU: size, "cpu": 4 * size}))
        elif kind == "withdraw" and body.waiting:
            body.withdraw(random.choice(sorted(body.waiting)))

    def storm(self, steps: int) -> None:
        for _ in range(steps):
            self.turn()

    def turn(self) -> None:
        """Some arrivals, perhaps a misfortune, and some time."""
        random = self.random
        for _ in range(random.choice([0, 0, 1, 1, 2, 4])):
            self.arrive()
        if self.taste.failures and random.random() < 0.3:
            self.misfortune()
        self.body.plan()
        self.body.run(self.body.now + random.choice([0, 0, 1, 3, 10]))

    def calm(self) -> None:
        """Everything is repaired and nobody new comes, until nothing can happen any more."""
        body = self.body
        while self.gone:
            body.put_node(self.gone.pop())
        for node in list(body.nodes.values()):
            body.put_node(replace(node, schedulable=True))
        body.plan()
        for _ in range(20 * (len(body.waiting) + len(body.live)) + 50):
            if not body.waiting and not body.live:
                return
            body.step(body.now + 50)

    def hopeless(self, uid: str) -> bool:
        """Whether it does not even fit the empty cluster, or waits for the rest of its group."""
        group = self.body.waiting[uid].group
        entry = self.body.state.queue.entries.get(group or uid)
        return bool(group) if entry is None else bool(entry.kind.hopeless)
