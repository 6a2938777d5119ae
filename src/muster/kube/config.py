"""Which cluster, and as whom: from --kubeconfig, KUBECONFIG, ~/.kube/config, or the pod this runs in."""

import base64
import os
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from muster.kube import incluster
from muster.kube.access import Access, Credentials, Fixed, Grant, TokenFile, Trust, bearer
from muster.kube.errors import ConfigError
from muster.kube.execplugin import GROUP, ExecPlugin, cluster_info
from muster.kube.kubeconfig import Merged, Section, merge

EXTENSION = "client.authentication.k8s.io/exec"


def load(path: Path | None = None, context: str = "") -> Access:
    """Access to the cluster meant, found where kubectl would find it."""
    merged = _files(path)
    if path is None and not merged.contexts and incluster.available():
        return incluster.load()
    if not merged.contexts:
        raise ConfigError(
            f"no cluster: {merged.files or '~/.kube/config'} names no context, and this is not a pod; "
            "give --kubeconfig FILE"
        )
    return _access(*merged.chosen(context))


def _files(path: Path | None) -> Merged:
    if path is not None:
        return merge([path], must_exist=True)
    listed = [Path(each) for each in os.environ.get("KUBECONFIG", "").split(os.pathsep) if each]
    return merge(listed or [Path.home() / ".kube" / "config"], must_exist=False)


def _access(context: Section, cluster: Section, user: Section) -> Access:
    server = _server(cluster)
    trust = _trust(cluster)
    proxy = cluster.text("proxy-url") or _proxy_of_environment(server)
    if proxy and urlsplit(proxy).scheme not in {"http", "https"}:
        raise ConfigError(f"{cluster.where}: proxy-url {proxy}: must begin with http:// or https://")
    credentials = _credentials(user, cluster, server, trust)
    return Access(server, credentials, trust, context.text("namespace") or "default", _impersonation(user), proxy)


def _server(cluster: Section) -> str:
    server = cluster.text("server")
    parts = urlsplit(server)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ConfigError(f"{cluster.where}: server '{server}' must be a URL such as https://host:6443")
    return server.rstrip("/")


def _trust(cluster: Section) -> Trust:
    authority, insecure = cluster.data("certificate-authority"), cluster.flag("insecure-skip-tls-verify")
    if authority and insecure:
        raise ConfigError(
            f"{cluster.where}: insecure-skip-tls-verify contradicts certificate-authority; remove one of them"
        )
    return Trust(authority, insecure, cluster.text("tls-server-name"))


def _credentials(user: Section, cluster: Section, server: str, trust: Trust) -> Credentials:
    plugin = user.inner("exec")
    if plugin is not None:
        return _plugin(plugin, cluster, server, trust)
    if user.inner("auth-provider") is not None:
        raise ConfigError(f"{user.where}: auth-provider is no longer supported by Kubernetes; use exec")
    certificate, key = user.data("client-certificate"), user.data("client-key")
    if bool(certificate) != bool(key):
        raise ConfigError(f"{user.where}: client-certificate and client-key must be given together")
    if user.text("tokenFile"):
        return TokenFile(Path(user.text("tokenFile")), Grant("", certificate, key))
    grant = Grant(bearer(user.text("token"), user.where) or _basic(user), certificate, key)
    if server.startswith("https"):
        _check(trust, grant, f"{cluster.where}, {user.where}")
    return Fixed(grant)


def _check(trust: Trust, grant: Grant, where: str) -> None:
    """Find wrong certificates now, where the file can be named, not at the first call."""
    try:
        trust.context(grant)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error


def _basic(user: Section) -> str:
    name = user.text("username")
    if not name:
        return ""
    return "Basic " + base64.b64encode(f"{name}:{user.text('password')}".encode()).decode()


def _plugin(plugin: Section, cluster: Section, server: str, trust: Trust) -> ExecPlugin:
    command, version = plugin.text("command"), plugin.text("apiVersion")
    if not command:
        raise ConfigError(f"{plugin.where}: command is missing")
    if version not in {GROUP + "v1", GROUP + "v1beta1"}:
        raise ConfigError(f"{plugin.where}: apiVersion '{version}' must be {GROUP}v1 or v1beta1")
    if plugin.text("interactiveMode") == "Always":
        raise ConfigError(f"{plugin.where}: interactiveMode Always needs a terminal, which a scheduler has not")
    arguments = plugin.values.get("args") or []
    if not isinstance(arguments, list) or not all(isinstance(each, str) for each in arguments):
        raise ConfigError(f"{plugin.where}: args must be a list of strings")
    told = _told(cluster, server, trust) if plugin.flag("provideClusterInfo") else None
    environment = {each.text("name"): each.text("value") for each in plugin.entries("env")}
    return ExecPlugin(
        command, tuple(arguments), environment, version, " ".join(plugin.text("installHint").split()), told
    )


def _told(cluster: Section, server: str, trust: Trust) -> dict[str, object]:
    extensions = {each.text("name"): each.values.get("extension") for each in cluster.entries("extensions")}
    return cluster_info(server, trust.authority, trust.insecure, trust.server_name, extensions.get(EXTENSION))


def _impersonation(user: Section) -> dict[str, str]:
    if user.values.get("as-groups") or user.values.get("as-user-extra"):
        raise ConfigError(f"{user.where}: of impersonation only `as` is supported; remove the others")
    return {"Impersonate-User": user.text("as")} if user.text("as") else {}


def _proxy_of_environment(server: str) -> str:
    parts = urlsplit(server)
    if urllib.request.proxy_bypass(parts.hostname or ""):
        return ""
    return urllib.request.getproxies().get(parts.scheme, "")
