"""The containers that tests talk to: started for one gate, reached at 127.0.0.1 inside the sandbox, gone at its end.

The sandbox of a check has no network. Each port of a service is a door of it, behind which this process carries bytes
to the same port of the container's own loopback, which is all of the network that the container has; only root can
reach into it. All checks of a gate, and their reruns on the base, share the same containers: they are not started
afresh in between, so tests have to put up with what others left, as they have to in a row.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bailiwick.egress.relay import Address, dial
from bailiwick.errors import NotReady
from bailiwick.gate.spec import HIGHEST_PORT, LOWEST_PORT, MOST_PORTS, Service
from bailiwick.sandbox.failures import EnvironmentFailed
from bailiwick.sandbox.spec import service_door

if TYPE_CHECKING:
    from bailiwick.sandbox.backends.container_group import ContainerGroup
    from bailiwick.sandbox.service import Sandboxes

FAILED = "BW453"
READY_SECONDS = 120.0
"""In which a started service has to be ready."""
LOOK_SECONDS = 0.25
TRY_SECONDS = 30.0
"""How long one run of `ready` may take."""
UNPROTECTED = "a service's container runs what its clients make it run"
_NOT_STARTED = (126, 127)
_AS_ROOT = "run bailiwick as root; or leave `services` out of the gate file, and let those tests skip themselves"
_BY_HAND = "take `services` out of the gate file, and let those tests skip themselves or use an embedded server"


@dataclass(frozen=True, slots=True)
class ServiceContainers:
    """What services are started with: `variables` say where the engine is, the operator's where not given."""

    cancel: asyncio.Event
    show: Callable[[str], None]
    variables: Mapping[str, str] | None = None
    seconds: float = READY_SECONDS


@dataclass(frozen=True, slots=True)
class _Started:
    """A container that runs, and the ports of it that are of use."""

    service: Service
    container: str
    ports: tuple[int, ...]


@asynccontextmanager
async def open_services(
    services: tuple[Service, ...], sandboxes: Sandboxes, means: ServiceContainers
) -> AsyncIterator[tuple[Sandboxes, EnvironmentFailed | None]]:
    """The sandbox whose gates reach these services, until it is left; or as it is, and why they can't be had.

    Whatever was started is removed at the end, after a failure or an interruption too.
    """
    if not services:
        yield sandboxes, None
        return
    async with AsyncExitStack() as stack:
        failed: EnvironmentFailed | None = None
        try:
            relay = await _start(services, sandboxes, means, stack)
        except EnvironmentFailed as error:
            failed = error
        except NotReady as error:
            failed = EnvironmentFailed(f"{_names(services)}: {error.what}", hint=error.hint or _BY_HAND, code=FAILED)
        if failed is not None:
            await stack.aclose()
            yield sandboxes, failed
        else:
            yield replace(sandboxes, relay=relay), None


async def _start(
    services: tuple[Service, ...], sandboxes: Sandboxes, means: ServiceContainers, stack: AsyncExitStack
) -> dict[str, Address]:
    """Start every service and wait until each is ready."""
    if sandboxes.sandbox.name == "none":
        what = f"{_names(services)} can't be offered to tests without a sandbox: the ports of this machine are shared"
        raise EnvironmentFailed(what, hint="install bubblewrap and leave sandbox.profile at auto", code=FAILED)
    if os.geteuid() != 0:
        what = f"{_names(services)} are reached on their own loopback, which only root can"
        raise EnvironmentFailed(what, hint=_AS_ROOT, code=FAILED)
    from bailiwick.sandbox.backends.container_engine import find_engine, told_variables
    from bailiwick.sandbox.backends.container_group import open_group

    engine = await find_engine(told_variables() if means.variables is None else means.variables)
    if engine.rootless:
        what = f"{_names(services)}: the containers of a rootless {engine.kind} can't be reached from here"
        raise EnvironmentFailed(what, hint=f"use the {engine.kind} of the system (DOCKER_HOST says where)", code=FAILED)
    group = await stack.enter_async_context(open_group(engine, means.cancel))
    images = {service.image: await group.fetch(service.image) for service in services}
    ports = {service.name: ports_of(service, images[service.image]) for service in services}
    refuse_shared(ports)
    deadline = asyncio.get_running_loop().time() + means.seconds
    started: list[_Started] = []
    for service in services:
        _heed(means.cancel)
        means.show(f"{service.name}: starting {service.image}")
        container = await group.start(service.name, service.image, service.env)
        started.append(_Started(service, container, ports[service.name]))
    addresses: dict[str, Address] = {}
    for one in started:
        network = await _Waiting(one, group, means, deadline).wait()
        means.show(f"{one.service.name}: ready at {', '.join(f'127.0.0.1:{port}' for port in one.ports)}")
        addresses |= {service_door(port): Address(port, network) for port in one.ports}
    return addresses


def ports_of(service: Service, exposed: Iterable[str]) -> tuple[int, ...]:
    """The ports of a service: those that the file names, else the TCP ports that its image exposes."""
    if service.ports:
        return tuple(dict.fromkeys(service.ports))
    found = sorted({port for text in exposed for port in _tcp(text)})
    usable = tuple(port for port in found if LOWEST_PORT <= port <= HIGHEST_PORT)
    if usable and len(usable) <= MOST_PORTS:
        return usable
    if usable:
        what = f"{service.name}: the image {service.image} exposes {len(usable)} ports, more than {MOST_PORTS}"
        raise EnvironmentFailed(what, hint="name those that tests use in the gate file: `ports: [5432]`", code=FAILED)
    what = f"{service.name}: the image {service.image} exposes no port"
    hint = "name the ports that it listens on in the gate file: `ports: [5432]`"
    if found:
        what += f" from {LOWEST_PORT} on, only {', '.join(map(str, found))}, which no sandbox can open"
        hint = "let it listen on a higher port (its `env` often says which), and name that: `ports: [8080]`"
    raise EnvironmentFailed(what, hint=hint, code=FAILED)


def _tcp(text: str) -> Iterable[int]:
    number, _, kind = text.partition("/")
    return (int(number),) if number.isdecimal() and kind in ("", "tcp") else ()


def refuse_shared(ports: Mapping[str, tuple[int, ...]]) -> None:
    """Raise `EnvironmentFailed` where two services want the same port, which is one address inside."""
    owners: dict[int, str] = {}
    for name, numbers in ports.items():
        for port in numbers:
            if port in owners:
                what = f"{owners[port]} and {name} both listen on port {port}, which can be only one of them inside"
                hint = "let one of them listen on another port, and name the ports of both with `ports`"
                raise EnvironmentFailed(what, hint=hint, code=FAILED)
            owners[port] = name


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Waits for one service until it is ready, has ended, or there is no time left."""

    started: _Started
    group: ContainerGroup
    means: ServiceContainers
    deadline: float

    async def wait(self) -> int:
        """The network of the service, as soon as it is ready."""
        network = await self._network()
        loop = asyncio.get_running_loop()
        while True:
            await self._running()
            why = await self._try(network, min(TRY_SECONDS, max(1.0, self.deadline - loop.time())))
            if not why:
                return network
            if loop.time() >= self.deadline:
                raise await self._failed(f"was not ready after {self.means.seconds:.0f} s: {why}")
            _heed(self.means.cancel)
            with suppress(TimeoutError):
                await asyncio.wait_for(self.means.cancel.wait(), LOOK_SECONDS)
            _heed(self.means.cancel)

    async def _running(self) -> int:
        """The first process of the container, which has to run."""
        state = await self.group.state(self.started.container)
        if not state.running:
            raise await self._failed(f"ended with code {state.code} before it was ready")
        return state.pid

    async def _network(self) -> int:
        """The network of the container, which has to be one of this machine."""
        found = self.group.network(self.started.container, await self._running())
        if found is None:
            await self._running()
            what = f"{self.started.service.name} runs where its processes can't be seen from here"
            hint = "use an engine of this machine, and run bailiwick beside it, not in a container"
            raise EnvironmentFailed(what, hint=hint, code=FAILED)
        return found

    async def _try(self, network: int, seconds: float) -> str:
        """What is still missing, in words; nothing where it is ready."""
        from bailiwick.sandbox.backends.container_group import words

        service = self.started.service
        if service.ready:
            end = await self.group.execute(self.started.container, service.ready, seconds)
            _heed(self.means.cancel)  # what a command says that was ended in the middle means nothing
            if end.code in _NOT_STARTED and b"OCI runtime" in end.stdout + end.stderr:
                raise await self._failed(f"has no such command as its `ready`: {words(end)}")
            if end.code != 0:
                return f"its `ready` {'ran out of time' if end.timed_out else f'says: {words(end)}'}"
        answers = [await _answers(Address(port, network)) for port in self.started.ports]
        if all(answers) or (any(answers) and not service.ports):
            return ""
        silent = [str(port) for port, answer in zip(self.started.ports, answers, strict=True) if not answer]
        return f"nothing listens on its 127.0.0.1, port {', '.join(silent)}"

    async def _failed(self, how: str) -> EnvironmentFailed:
        service = self.started.service
        output = await self.group.last_words(self.started.container)
        return EnvironmentFailed(
            f"{service.name} ({service.image}) {how}",
            hint="look at what it printed; its `env`, `ready` and `ports` are in the gate file",
            output=output,
            code=FAILED,
        )


async def _answers(address: Address) -> bool:
    """Whether a connection can be made."""
    try:
        made = await dial(address, 1.0)
    except PermissionError as error:
        what = f"the loopback of a container can't be reached, though we are root: {error.strerror}"
        raise EnvironmentFailed(what, hint=_BY_HAND, code=FAILED) from error
    except (OSError, TimeoutError):
        return False
    await made.close()
    return True


def _heed(cancel: asyncio.Event) -> None:
    if cancel.is_set():
        raise EnvironmentFailed("interrupted while services were started", code=FAILED)


def _names(services: tuple[Service, ...]) -> str:
    return f"containers for tests ({', '.join(service.name for service in services)})"
