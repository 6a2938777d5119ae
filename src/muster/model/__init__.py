"""The nouns of scheduling: resources, nodes, roles, gangs, queues, topology. Plain data, no behaviour."""
