"""The controllers a gang needs, each a pure function from what there is to what is to be done.

A controller module knows one kind of owner and nothing of watches, clocks or the API: objects in, actions
out. `running` is the one place that watches, and `acting` the one place that writes.
"""

from muster.local.controllers.running import Running, start_controllers

__all__ = ["Running", "start_controllers"]
