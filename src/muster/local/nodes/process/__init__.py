"""Nodes that really run a pod's command: local processes, no containers.

Only who may create pods may start processes, and with the rights of whoever started the cluster: the
kubeconfig is the trust boundary. Nothing here isolates a pod from the machine; what looks like isolation
(names, mounts) is there so that programs find what they would find in a cluster.
"""
