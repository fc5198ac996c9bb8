// Shows what the `ws` client makes of handshakes: reads jobs as JSON from stdin, one after the other, and prints the results.
//
// job     {url, headers, protocols}
// result  {status, headers, body}            for `unexpected-response`
//         {code, reason, protocol, echoed}   after the handshake: says "hello", closes when it is echoed

import WebSocket from "ws";

const WAIT_MS = 10_000;

function knock({ url, headers = {}, protocols = [] }) {
    return new Promise((resolve, reject) => {
        const socket = new WebSocket(url, protocols, { headers, handshakeTimeout: WAIT_MS });
        let echoed = null;
        setTimeout(() => reject(new Error(`no end of ${url}`)), WAIT_MS).unref();
        socket.on("unexpected-response", (request, response) => {
            let body = "";
            response.setEncoding("utf8");
            response.on("data", (text) => { body += text; });
            response.on("end", () => resolve({ status: response.statusCode, headers: response.headers, body }));
        });
        socket.on("open", () => socket.send("hello"));
        socket.on("message", (data) => { echoed = data.toString(); socket.close(1000); });
        socket.on("close", (code, reason) => {
            resolve({ code, reason: reason.toString(), protocol: socket.protocol, echoed });
        });
        socket.on("error", reject);
    });
}

let text = "";
for await (const piece of process.stdin) text += piece;
const results = [];
for (const job of JSON.parse(text)) results.push(await knock(job));
process.stdout.write(JSON.stringify(results));
