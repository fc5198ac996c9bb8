"""What workers serve until there is an app of your own: whoever is in a room hears what is said there."""

from collections import defaultdict

from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket

rooms: defaultdict[str, set[WebSocket]] = defaultdict(set)


async def join(socket: WebSocket) -> None:
    await socket.accept()
    members = rooms[socket.state.connection.id]
    members.add(socket)
    try:
        async for text in socket.iter_text():
            for member in tuple(members):
                await member.send_text(text)
    finally:
        members.discard(socket)


app = Starlette(routes=[WebSocketRoute("/chat/{room}", join)])
