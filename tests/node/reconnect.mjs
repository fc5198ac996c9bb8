// Runs herdgate.js under Node: reads jobs as JSON from stdin, runs them one after the other, and prints what happened.
//
// job     {url, protocols, options, global, hurry, random, until: {type, count}, say, closeMs}
//         global: Node's own WebSocket instead of the package ws; hurry: a clock that is so many times faster; random: what
//         Math.random would say; say: what to send on `open`; until: close() after so many events of a type; closeMs: or after so long
// result  [{type, readyState, ...}], one an event, or {error: name, message} if the constructor threw

import WS from "ws";
import "../../clients/js/herdgate.js";

const WAIT_MS = 20_000;
const FIELDS = ["delayMs", "why", "code", "reason", "wasClean", "data", "message"];

function hasty(times) {
    return {
        now: () => performance.now() * times,
        setTimeout: (act, ms) => setTimeout(act, ms / times),
        clearTimeout: (timer) => clearTimeout(timer),
    };
}

function run(job) {
    const { url, protocols, hurry, random, until, say } = job;
    const options = { WebSocket: job.global ? globalThis.WebSocket : WS, ...job.options };
    if (hurry) options.clock = hasty(hurry);
    if (random !== undefined) options.random = () => random;
    return new Promise((resolve, reject) => {
        const socket = new globalThis.HerdgateWebSocket(url, protocols, options);
        const seen = [];
        let left = until.count;
        const tooLong = setTimeout(() => reject(new Error(`no end of ${url}: ${JSON.stringify(seen)}`)), WAIT_MS);
        const note = (event) => {
            const entry = { type: event.type, readyState: socket.readyState, at: performance.now() };
            for (const field of FIELDS) if (event[field] !== undefined) entry[field] = event[field];
            try {
                if (event.type === "retry") socket.send("into the void");
            } catch (error) {
                entry.thrown = error.name;
            }
            seen.push(entry);
            if (event.type === "open" && say) socket.send(say);
            if (event.type === until.type && --left === 0) socket.close();
            if (event.type === "close") {
                clearTimeout(tooLong);
                setImmediate(() => resolve(seen));
            }
        };
        if (job.closeMs) setTimeout(() => socket.close(), job.closeMs);
        for (const type of ["open", "message", "retry", "error", "close"]) socket[`on${type}`] = note;
    });
}

let text = "";
for await (const piece of process.stdin) text += piece;
const results = [];
for (const job of JSON.parse(text)) {
    results.push(await run(job).catch(({ name, message }) => ({ error: name, message })));
}
process.stdout.write(JSON.stringify(results));
