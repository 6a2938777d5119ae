"""The other side of the client's benchmark: a server in a process of its own that answers from memory.

`python -m bench.kube_stub PODS EVENTS` prints its port. Lists have PODS pods; a watch sends EVENTS events, each
a new version of one of them, as fast as they are taken.
"""

import asyncio
import sys

import msgspec
from aiohttp import web

SUCCESS = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}'
BURST = 100


def pod(index: int, version: int) -> bytes:
    """A pod of the size real ones have: 3 kB, a good part of it managed fields."""
    fields: dict[str, dict[str, str]] = {
        f"f:{name}{part}": {} for name in ("spec", "labels", "conditions", "volumes") for part in range(18)
    }
    name = f"train-{index // 8}-worker-{index % 8}"
    container = {
        "name": "trainer",
        "image": "registry.example/team/trainer:v42",
        "command": ["python", "-m", "train"],
        "env": [{"name": f"SETTING_{each}", "value": f"value-{each}"} for each in range(8)],
        "resources": {"requests": {"cpu": "8", "memory": "64Gi"}, "limits": {"nvidia.com/gpu": "8"}},
        "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets", "readOnly": True}],
    }
    owner = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": f"train-{index // 8}",
        "uid": f"{index // 8:036}",
        "controller": True,
    }
    tolerations = [
        {"key": f"node.kubernetes.io/{each}", "operator": "Exists", "effect": "NoExecute"}
        for each in ("not-ready", "unreachable")
    ]
    conditions = [
        {"type": each, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for each in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ]
    tree = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"{index:036}",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"job-name": f"train-{index // 8}", "app": "train", "team": "vision"},
            "annotations": {"muster.sh/walltime": "2h"},
            "ownerReferences": [owner],
            "managedFields": [{"manager": "controller", "fieldsV1": fields}],
        },
        "spec": {
            "containers": [container],
            "nodeName": f"node-{index // 10}",
            "schedulerName": "muster",
            "tolerations": tolerations,
            "volumes": [{"name": "token", "projected": {"sources": [{"serviceAccountToken": {}}]}}],
        },
        "status": {"phase": "Running", "conditions": conditions, "podIP": "10.0.0.1"},
    }
    return msgspec.json.encode(tree)


class Server:
    """Answers made beforehand, so that what is measured is the client."""

    def __init__(self, pods: int, events: int) -> None:
        self.pods = [pod(index, index + 1) for index in range(pods)]
        self.version = pods
        self.events = events

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.query.get("watch"):
            return await self.watch(request)
        if request.method == "GET":
            return self.list(request)
        await request.read()
        return web.Response(body=SUCCESS, status=201, content_type="application/json")

    def list(self, request: web.BaseRequest) -> web.Response:
        start, limit = int(request.query.get("continue", "0")), int(request.query.get("limit", "0") or "0")
        end = start + limit if limit else len(self.pods)
        rest = str(end) if end < len(self.pods) else ""
        meta = f'"metadata":{{"resourceVersion":"{self.version}","continue":"{rest}"}}'.encode()
        body = b"{" + meta + b',"items":[' + b",".join(self.pods[start:end]) + b"]}"
        return web.Response(body=body, content_type="application/json")

    async def watch(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        if request.query.get("sendInitialEvents"):
            return web.json_response({"kind": "Status", "code": 422}, status=422)
        await response.prepare(request)
        for start in range(0, self.events, BURST):
            lines = []
            for each in range(start, start + BURST):
                changed = pod(each % len(self.pods), self.version + each + 1)
                lines.append(b'{"type":"MODIFIED","object":' + changed + b"}\n")
            await response.write(b"".join(lines))
        await asyncio.sleep(3600)
        return response


async def main() -> None:
    server = Server(int(sys.argv[1]), int(sys.argv[2]))
    runner = web.ServerRunner(web.Server(server.handle))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.sleep(3600)


if __name__ == "__main__":
    asyncio.run(main())
