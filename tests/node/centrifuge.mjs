// Connects the client of Centrifugo to the URL that is its argument, and ends, with what it says, once it has given up for good.

import { Centrifuge } from "centrifuge";
import WebSocket from "ws";

const client = new Centrifuge(process.argv[2], { websocket: WebSocket, minReconnectDelay: 1, maxReconnectDelay: 20 });
client.on("disconnected", ({ code, reason }) => {
    process.stdout.write(`${code} ${reason}`);
    process.exit();
});
client.connect();
