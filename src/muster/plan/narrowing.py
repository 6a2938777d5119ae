"""Limits while they are being gathered, rule by rule, from what is counted on the nodes."""

import numpy as np

from muster.model.rules import Spread
from muster.plan.labels import Bools, Ints
from muster.plan.limits import UNLIMITED, Limits, Quota
from muster.plan.rules import Classes

_ANY_NUMBER = 1 << 40


class Narrowing:
    """Limits while they are being gathered."""

    def __init__(self, classes: Classes) -> None:
        self.labels = classes.labels
        self.forbidden: Bools | None = None
        self.cap: Ints | None = None
        self.apart: list[Ints] = []
        self.together: list[Ints] = []
        self.quotas: list[Quota] = []

    def forbid(self, nodes: Bools) -> None:
        self.forbidden = nodes if self.forbidden is None else self.forbidden | nodes

    def forbid_domains(self, key: str, counts: Ints) -> None:
        held = counts > 0
        if held.any():
            self.forbid(self.labels.neighbours(key, held))

    def per_node(self, cap: Ints) -> None:
        self.cap = cap if self.cap is None else np.minimum(self.cap, cap)

    def keep_apart(self, key: str) -> None:
        codes, _ = self.labels.domains(key)
        labelled = codes >= 0
        if np.bincount(codes[labelled], minlength=1).max() <= 1:  # each node is a domain of its own
            self.per_node(np.where(labelled, 1, _ANY_NUMBER))
        else:
            self.apart.append(codes)

    def keep_together(self, key: str) -> None:
        codes, _ = self.labels.domains(key)
        self.forbid(codes < 0)
        self.together.append(codes)

    def balance(self, spread: Spread, counted: Bools, counts: Ints, itself: bool) -> None:
        codes, number = self.labels.domains(spread.topology_key)
        present = np.zeros(number, dtype=np.int64)
        np.add.at(present, codes[counted], counts[counted])
        eligible = np.zeros(number, dtype=bool)
        eligible[codes[counted]] = True
        if itself:
            quota = Quota(codes, present, eligible, spread.max_skew, True, spread.min_domains)
            self.quotas.append(quota)
            return
        floor = present[eligible].min() if eligible.sum() >= max(1, spread.min_domains) else 0
        level = np.append(present, 0) - floor
        self.forbid(level[codes] > spread.max_skew)

    def limits(self) -> Limits:
        allowed = None if self.forbidden is None or not self.forbidden.any() else ~self.forbidden
        quotas, apart, together = tuple(self.quotas), tuple(self.apart), tuple(self.together)
        if allowed is None and self.cap is None and not (quotas or apart or together):
            return UNLIMITED
        return Limits(allowed, self.cap, apart, together, quotas)
