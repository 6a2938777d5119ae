"""Access for a scheduler that runs as a pod: the service account Kubernetes mounts into it."""

import os
from pathlib import Path

from muster.kube.access import Access, TokenFile, Trust
from muster.kube.errors import ConfigError

MOUNTED = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def available(mounted: Path = MOUNTED) -> bool:
    """Whether this process runs in a pod that has a service account."""
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and (mounted / "token").exists()


def load(mounted: Path = MOUNTED) -> Access:
    """The pod's own service account; its token is read again as the kubelet renews it."""
    host, port = (
        os.environ.get("KUBERNETES_SERVICE_HOST", ""),
        os.environ.get("KUBERNETES_SERVICE_PORT", "443"),
    )
    if not host:
        raise ConfigError("not in a pod: KUBERNETES_SERVICE_HOST is not set; give --kubeconfig")
    try:
        authority = (mounted / "ca.crt").read_bytes()
        namespace_file = mounted / "namespace"
        namespace = namespace_file.read_text().strip() if namespace_file.exists() else "default"
    except OSError as error:
        raise ConfigError(
            f"service account {mounted}: {error.strerror} for {error.filename}; "
            "set automountServiceAccountToken, or give --kubeconfig"
        ) from error
    shown = f"[{host}]" if ":" in host else host
    return Access(f"https://{shown}:{port}", TokenFile(mounted / "token"), Trust(authority), namespace or "default")
