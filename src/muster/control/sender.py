"""Verbs of dialects, sent: the one place where a typed verb becomes a request."""

from muster.dialects.verbs import Verb
from muster.kube.paths import Resource
from muster.kube.requests import Client, PatchForm

MANAGER = "muster"


async def send(client: Client, verb: Verb) -> None:
    """One request. Raises KubeError."""
    resource = Resource(verb.resource.group, verb.resource.version, verb.resource.plural)
    path = resource.path(verb.namespace, verb.name, verb.subresource)
    if verb.send == "create":
        await client.create(path, verb.body)
    elif verb.send == "json":
        await client.patch(path, verb.body, PatchForm.JSON, field_manager=MANAGER)
    else:
        await client.patch(path, verb.body, PatchForm.MERGE, field_manager=MANAGER)
