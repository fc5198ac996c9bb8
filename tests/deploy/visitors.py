"""Run inside a box: a worker that echoes, and clients of the gateway that stay until they are closed.

    python -m tests.deploy.visitors N

Says `open` once all are in, then, when all are closed, their close codes and how many of them are told a time, as JSON.
"""

import asyncio
import json
import sys

from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

__all__: list[str] = []

WORKER, GATEWAY = 9001, "ws://127.0.0.1:8000/chat/"


async def echo(socket: ServerConnection) -> None:
    async for message in socket:
        await socket.send(message)


async def main(count: int) -> None:
    async with serve(echo, "127.0.0.1", WORKER):
        clients = await asyncio.gather(*(connect(f"{GATEWAY}{number}", proxy=None) for number in range(count)))
        for client in clients:
            await client.send("here")
            await client.recv()
        print("open", flush=True)
        codes, told = [], 0
        for client in clients:
            try:
                await client.recv()
            except ConnectionClosed as closed:
                codes.append(closed.rcvd.code if closed.rcvd else 1006)
                told += "retry_ms" in (closed.rcvd.reason if closed.rcvd else "")
        print(json.dumps({"codes": sorted(set(codes)), "closed": len(codes), "told": told}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
