"""Who else is there: what rules that look at pods come to while a gang is being seated role by role.

Members just seated are company for the roles that follow, and are forgotten when the trial is over.
"""

from muster.plan.ledger import Ints
from muster.plan.limits import UNLIMITED, Limits
from muster.plan.place import Want
from muster.plan.room import Part
from muster.plan.tenants import Tenants


class Company:
    def __init__(self, tenants: Tenants, namespace: str) -> None:
        self.tenants = tenants
        self.namespace = namespace

    def limits(self, want: Want) -> Limits:
        if not self.tenants.concerns(self.namespace, want.spec):
            return UNLIMITED
        return self.tenants.limits(self.namespace, want.spec)

    def preference(self, want: Want) -> Ints | None:
        """How well liked each node is: by its own labels and taints, and for who runs near it."""
        own = want.shape.preference
        if not want.spec.rules.pods_preferred:
            return own
        company = self.tenants.preference(self.namespace, want.spec.rules)
        return own if company is None else company if own is None else own + company

    def joined(self, want: Want, part: Part) -> None:
        self.tenants.add(self.namespace, want.spec, part.nodes, part.counts)

    def left(self, want: Want, part: Part) -> None:
        self.tenants.remove(self.namespace, want.spec, part.nodes, part.counts)
