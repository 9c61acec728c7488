"""Places that local models answer at, as stubs: a LiteLLM proxy, llama-swap, Ollama; and the ways in which they fail.

The scripted model server plays the models; here are the lists of what there is and what is loaded, and the faults.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from bailiwick.ids import Json
from bailiwick.testing.model_server.chat import Chat
from bailiwick.testing.model_server.script import Drip, Drop, Fail, Flood, Hang, Raw, Say, Scenario, Step
from bailiwick.testing.model_server.server import ModelRequestSeen, ModelServer
from bailiwick.testing.model_server.wire import HttpResponder, ReceivedRequest

FAULTS: Mapping[str, Step] = {
    "503": Fail(503),
    "timeout": Hang(),
    "dropped": Drop(),
    "not-json": Raw(b"<html>Please log in to the hotel's network</html>"),
    "wrong-shape": Raw(b'{"choices": {"message": 7}, "models": "many", "running": 3, "data": {}}', "application/json"),
    "empty-choices": Raw(b'{"choices": [], "models": [], "running": [], "data": []}', "application/json"),
    "flood": Flood(100 << 20),
    "slow-loris": Drip(),
}
"""Ways in which a place fails, whatever it is asked. One that refuses connections is `refused`."""


@dataclass(frozen=True, slots=True)
class Stub:
    """What a place has: models, those of them that are loaded or being loaded, and what it says to a model's task.

    `fault` is what every look at its lists gets instead. `owner` is what the server calls itself in its list;
    with `states` it tells of each model whether it is loaded, as llama-server does with several.
    """

    models: Sequence[str] = ()
    loaded: Sequence[str] = ()
    loading: Sequence[str] = ()
    says: Scenario = (Say("Hello from the script."),)
    fault: Step | None = None
    owner: str = ""
    states: bool = False


class ModelPlaces(ModelServer):
    """Serves several places on loopback, each at a base URL of its own: `places.url("ollama")`."""

    def __init__(self, stubs: Mapping[str, Stub]) -> None:
        super().__init__({name: stub.says for name, stub in stubs.items()})
        self.stubs = dict(stubs)

    async def _answer(self, request: ReceivedRequest, wire: HttpResponder) -> None:
        name, _, rest = request.path.removeprefix("/").partition("/")
        stub = self.stubs.get(name)
        if stub is None or request.method != "GET":
            await super()._answer(request, wire)
            return
        self.requests.append(
            ModelRequestSeen(name, run="", method="GET", path=f"/{rest}", headers=request.headers, body=None, step=None)
        )
        self.asked.set()
        if stub.fault is not None:
            await self._play(stub.fault, Chat(), {}, wire)
            return
        found = _lists(stub).get(f"/{rest}")
        status, said = (200, found) if found is not None else (404, {"error": "there is no such path"})
        await wire.send(status, json.dumps(said).encode(), "application/json", {})


def faulty(fault: str) -> Stub:
    """A place that fails in one way, asked for a list or with a task."""
    return Stub(says=(FAULTS[fault],), fault=FAULTS[fault])


@contextmanager
def refused() -> Iterator[str]:
    """The base URL of a place that refuses every connection: its port is taken, and nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def _listed(name: str, stub: Stub) -> dict[str, Json]:
    owned: dict[str, Json] = {"owned_by": stub.owner} if stub.owner else {}
    state = {"status": {"value": "loaded" if name in stub.loaded else "unloaded"}} if stub.states else {}
    return {"id": name, "object": "model", **owned, **state}


def _lists(stub: Stub) -> dict[str, Json]:
    """What the three kinds of server tell about their models, as far as anybody reads it."""
    running = [{"model": name, "state": "ready"} for name in stub.loaded]
    running += [{"model": name, "state": "starting"} for name in stub.loading]
    return {
        "/v1/models": {"object": "list", "data": [_listed(name, stub) for name in stub.models]},
        "/api/tags": {"models": [{"name": name, "model": name} for name in stub.models]},
        "/api/ps": {"models": [{"name": name, "model": name} for name in stub.loaded]},
        "/api/version": {"version": "0.33.3"},
        "/running": {"running": running},
    }
