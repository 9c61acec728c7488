"""`python -m bailiwick.testing.model_server [PORT]` serves all scenarios until it is interrupted."""

from __future__ import annotations

import sys


def main(arguments: list[str]) -> None:
    """Serve on a port of loopback; the base URLs are printed."""
    import asyncio
    from contextlib import suppress

    from bailiwick.testing.model_server.server import ModelServer

    async def serve() -> None:
        async with ModelServer(port=int(arguments[0]) if arguments else 0) as server:
            sys.stdout.write("".join(f"{server.url(name)}\n" for name in server.scenarios))
            sys.stdout.flush()
            await asyncio.Event().wait()

    with suppress(KeyboardInterrupt):
        asyncio.run(serve())


if __name__ == "__main__":
    main(sys.argv[1:])
