// HerdgateWebSocket: a WebSocket that comes back by itself, when it is told to, ticket in hand, and never all at once.
//
// One plain file, without dependencies. It defines `globalThis.HerdgateWebSocket`, and nothing else:
//
//     <script src="/herdgate.js"></script>          a classic script
//     import "./herdgate.js";                       a module; then use globalThis.HerdgateWebSocket
//     require("./herdgate.js");                     Node: 22 or later, or an older one with { WebSocket } of the package ws
//
//     const socket = new HerdgateWebSocket("wss://chat.example/ws");
//
// It is used as a WebSocket is: same constructor, properties, methods and events. What differs:
//
// - `open` comes each time there is a connection again, and `retry` each time one is lost or could not be had:
//   {delayMs, why, code, reason}. `close` and `error` come once, when it is over: after close(), or when no later try can
//   succeed. Until then readyState is CONNECTING or OPEN.
// - Nothing is queued. While there is no connection, send() throws InvalidStateError, as a WebSocket does before `open`.
//
// Rules. One timer, one socket, one question at a time: whatever else happens (`online`, a page that is shown again, waking
// from sleep) starts nothing. What was told is never shortened. Where nothing was told: full jitter, uniform between
// min(100 ms, cap) and min(cap, base * 2 ** failures), the first time too. Only a session that lasted stableMs ends the backoff.
// A delay that is not a number from 0 to one day counts as not told. No wall clock.
//
// The third argument, all of it optional:
//
// baseMs 1000, capMs 30000, stableMs 30000   see above
// openTimeoutMs 10000   a handshake, or a question, that takes longer has failed
// preflight false       after a handshake that failed without a word (1006) ask the gate first: true: /_herdgate/admission of the
//                       server of the socket; or the URL to ask
// ticketInQuery true    show tickets as ?herdgate_ticket=; false: leave it to the cookie
// WebSocket             the class to use
// random, clock         Math.random, and {now(), setTimeout(), clearTimeout()}, milliseconds: for tests

(() => {
    "use strict";

    const DEFAULTS = { baseMs: 1000, capMs: 30_000, stableMs: 30_000, openTimeoutMs: 10_000 };
    const FLOOR_MS = 100;
    const LONGEST_MS = 86_400_000;
    const LONGEST_TICKET = 512;
    const LONGEST_ANSWER = 4096; // bytes; a denial has about 150
    const MOST_DOUBLINGS = 1000;
    const COMEBACK_CODES = [1012, 1013]; // they may carry a delay and a ticket
    const FINAL_CODES = [1002, 1003, 1007, 1008, 1009, 1010]; // RFC 6455 section 7.4.1
    const PASSING_STATUSES = [408, 421, 425, 429]; // and 5xx
    const STATES = { CONNECTING: 0, OPEN: 1, CLOSING: 2, CLOSED: 3 };
    const NOTHING_TOLD = { delayMs: null, isExact: false, ticket: null };
    const CLOCK = {
        now: () => performance.now(),
        setTimeout: (act, ms) => setTimeout(act, ms),
        clearTimeout: (timer) => clearTimeout(timer),
    };

    class HerdgateWebSocket extends EventTarget {
        #url;
        #protocols;
        #settings;
        #binaryType = null;
        #state = STATES.CONNECTING; // or CLOSING, CLOSED: whether it is open is known by the socket
        #socket = null;
        #timer = null; // until the next try, or the end of patience with the current one
        #asking = null; // aborts a question
        #ticket = null;
        #failures = 0;
        #openedAt = null;
        #wasMute = false; // the last handshake failed without a word

        constructor(url, protocols = [], options = {}) {
            super();
            this.#url = readUrl(url);
            this.#protocols = protocols;
            this.#settings = readSettings(options, this.#url);
            this.#dial();
        }

        get url() {
            return this.#url.href;
        }

        get readyState() {
            if (this.#state !== STATES.CONNECTING) return this.#state;
            return this.#socket?.readyState === STATES.OPEN && this.#openedAt !== null ? STATES.OPEN : STATES.CONNECTING;
        }

        get protocol() {
            return this.#socket?.protocol ?? "";
        }

        get extensions() {
            return this.#socket?.extensions ?? "";
        }

        get bufferedAmount() {
            return this.#socket?.bufferedAmount ?? 0;
        }

        get binaryType() {
            return this.#binaryType ?? this.#socket?.binaryType ?? "blob";
        }

        set binaryType(type) {
            if (type !== "blob" && type !== "arraybuffer") return;
            this.#binaryType = type;
            if (this.#socket) this.#socket.binaryType = type;
        }

        send(data) {
            if (this.readyState === STATES.CONNECTING) {
                throw new DOMException("there is no connection at the moment", "InvalidStateError");
            }
            this.#socket?.send(data);
        }

        close(code, reason = "") {
            checkClose(code, reason);
            if (this.#state !== STATES.CONNECTING) return;
            const isOpen = this.readyState === STATES.OPEN;
            this.#state = STATES.CLOSING;
            if (isOpen) {
                this.#socket.close(...(code === undefined ? [] : [code, reason]));
            } else {
                this.#rest();
                queueMicrotask(() => this.#finish({ code: 1006, reason: "", why: "closed before there was a connection" }));
            }
        }

        // A try.

        async #attempt() {
            if (this.#settings.preflight && this.#wasMute && (await this.#isToWait())) return;
            this.#dial();
        }

        #dial() {
            const { WebSocket, openTimeoutMs } = this.#settings;
            const socket = new WebSocket(this.#target(), this.#protocols);
            this.#socket = socket;
            this.#wasMute = true;
            if (this.#binaryType) socket.binaryType = this.#binaryType;
            const listen = (type, act) => {
                socket.addEventListener(type, (event) => socket === this.#socket && act(event));
            };
            listen("open", () => this.#opened());
            listen("message", ({ data }) => this.dispatchEvent(new MessageEvent("message", { data, origin: this.#url.origin })));
            // Before `open` this is the end: the WebSocket of Node 20 sends no `close` after it. Later `close` follows.
            listen("error", () => this.#openedAt === null && this.#lost(1006, "", false));
            listen("close", ({ code, reason, wasClean }) => this.#lost(code, reason, wasClean));
            // The package ws shows the answer that a browser hides.
            socket.on?.("unexpected-response", (_, answer) => socket === this.#socket && this.#refused(answer));
            this.#wait(openTimeoutMs, () => this.#failed("no answer in time"));
        }

        #target() {
            if (!this.#ticket || !this.#settings.ticketInQuery) return this.#url.href;
            const url = new URL(this.#url);
            // Appended to the text, as searchParams would write the rest of the query anew.
            const rest = url.search.slice(1).split("&").filter((pair) => pair && !/^herdgate_ticket(=|$)/.test(pair));
            url.search = [...rest, `herdgate_ticket=${encodeURIComponent(this.#ticket)}`].join("&");
            return url.href;
        }

        #opened() {
            this.#stopWaiting();
            this.#wasMute = false;
            this.#ticket = null; // spent
            this.#openedAt = this.#settings.clock.now();
            this.dispatchEvent(new Event("open"));
        }

        #lost(code, reason, wasClean) {
            this.#stopWaiting();
            const wasOpen = this.#openedAt !== null;
            const end = { code, reason, wasClean, why: wasOpen ? `closed with ${code}` : "the handshake failed" };
            if (this.#state === STATES.CLOSING) return this.#finish(end);
            if (wasOpen && FINAL_CODES.includes(code)) return this.#finish(end);
            if (wasOpen && this.#settings.clock.now() - this.#openedAt >= this.#settings.stableMs) this.#failures = 0;
            this.#retry(toldByClose(code, reason), end);
        }

        #refused(answer) {
            const { statusCode: status, headers } = answer;
            this.#wasMute = false;
            const told = toldByHeaders(headers);
            const end = { code: 1006, reason: "", why: `HTTP ${status}` };
            this.#rest();
            if (told.isExact || PASSING_STATUSES.includes(status) || status >= 500) return this.#retry(told, end);
            this.#finish(end);
        }

        #failed(why) {
            this.#rest();
            this.#retry(NOTHING_TOLD, { code: 1006, reason: "", why });
        }

        // A question before it: the answer can be read, unlike that to a handshake.

        async #isToWait() {
            const asking = new AbortController();
            this.#asking = asking;
            this.#wait(this.#settings.openTimeoutMs, () => asking.abort());
            const { status, said } = await ask(this.#question(), asking.signal);
            if (this.#asking !== asking) return true; // closed meanwhile
            this.#asking = null;
            this.#stopWaiting();
            const told = toldByJson(said);
            if (status === 200) this.#ticket = told.ticket ?? this.#ticket;
            if (status === 200 || typeof said.reason !== "string") return false; // or it is no gate that answers: just try
            this.#wasMute = false;
            const end = { code: 1006, reason: "", why: `HTTP ${status} ${said.reason}` };
            if (told.isExact || PASSING_STATUSES.includes(status) || status >= 500) this.#retry(told, end);
            else this.#finish(end);
            return true;
        }

        #question() {
            const { preflight } = this.#settings;
            const url = new URL(preflight === true ? "/_herdgate/admission" : preflight, this.#url);
            url.protocol = url.protocol.replace("ws", "http");
            url.searchParams.set("path", this.#url.pathname);
            if (this.#ticket) url.searchParams.set("herdgate_ticket", this.#ticket);
            return url;
        }

        // Between tries.

        #retry({ delayMs, isExact, ticket }, { code, reason, why }) {
            const { baseMs, capMs, random } = this.#settings;
            this.#socket = this.#openedAt = null;
            this.#ticket = ticket ?? this.#ticket;
            let ms = delayMs ?? 0;
            if (!isExact) {
                const least = Math.min(FLOOR_MS, capMs);
                const most = Math.max(least, Math.min(capMs, baseMs * 2 ** Math.min(this.#failures, MOST_DOUBLINGS)));
                ms += least + (most - least) * random();
            }
            this.#failures += 1;
            this.#wait(ms, () => this.#attempt());
            this.dispatchEvent(Object.assign(new Event("retry"), { delayMs: ms, why, code, reason }));
        }

        // The only timer. A timer may be early by a part of a millisecond, and a clock may have slept.
        #wait(ms, act) {
            const { clock } = this.#settings;
            const due = clock.now() + ms;
            const look = () => {
                const left = due - clock.now();
                if (left > 0) this.#timer = clock.setTimeout(look, Math.ceil(left));
                else act();
            };
            this.#stopWaiting();
            this.#timer = clock.setTimeout(look, Math.ceil(ms));
        }

        #stopWaiting() {
            this.#settings.clock.clearTimeout(this.#timer);
            this.#timer = null;
        }

        // Leave socket, question and timer: what they still have to say is not heard.
        #rest() {
            const [socket, asking] = [this.#socket, this.#asking];
            this.#socket = this.#asking = null;
            this.#stopWaiting();
            asking?.abort();
            if (!socket) return;
            if (socket.terminate) socket.terminate();
            else socket.close();
        }

        #finish({ code, reason, wasClean = false, why }) {
            this.#stopWaiting();
            this.#state = STATES.CLOSED;
            if (!wasClean || FINAL_CODES.includes(code)) {
                this.dispatchEvent(Object.assign(new Event("error"), { message: why }));
            }
            this.dispatchEvent(Object.assign(new Event("close"), { code, reason, wasClean }));
        }
    }

    for (const type of ["open", "message", "retry", "error", "close"]) {
        const handlers = new WeakMap();
        Object.defineProperty(HerdgateWebSocket.prototype, `on${type}`, {
            get() {
                return handlers.get(this)?.handler ?? null;
            },
            set(handler) {
                const known = handlers.get(this);
                if (known) known.handler = handler;
                else {
                    const entry = { handler };
                    handlers.set(this, entry);
                    this.addEventListener(type, (event) => entry.handler?.call(this, event));
                }
            },
            enumerable: true,
            configurable: true,
        });
    }
    for (const [name, value] of Object.entries(STATES)) {
        Object.defineProperty(HerdgateWebSocket, name, { value, enumerable: true });
        Object.defineProperty(HerdgateWebSocket.prototype, name, { value, enumerable: true });
    }

    // What was told.

    function toldByClose(code, reason) {
        return COMEBACK_CODES.includes(code) ? toldByJson(readJson(reason)) : NOTHING_TOLD;
    }

    function toldByJson(said) {
        const delayMs = believed(said.retry_ms);
        return { delayMs, isExact: delayMs !== null, ticket: readTicket(said.ticket) };
    }

    // Of an answer as Node has it: names are in lower case.
    function toldByHeaders(headers) {
        const ticket = readTicket(headers["herdgate-ticket"]);
        const exact = believed(readDigits(headers["herdgate-retry-ms"]));
        if (exact !== null) return { delayMs: exact, isExact: true, ticket };
        const after = headers["retry-after"];
        const seconds = readDigits(after);
        // A date is read against the date of the same answer, so that no clock of ours has to be right.
        const ms = seconds !== null ? seconds * 1000 : Math.max(0, readDate(after) - readDate(headers.date));
        return { delayMs: believed(ms), isExact: false, ticket };
    }

    function readDigits(text) {
        return typeof text === "string" && /^[0-9]{1,10}$/.test(text) ? Number(text) : null;
    }

    function readDate(text) {
        return typeof text === "string" && text.endsWith(" GMT") ? Date.parse(text) : NaN;
    }

    function believed(ms) {
        return typeof ms === "number" && ms >= 0 && ms <= LONGEST_MS ? ms : null;
    }

    function readTicket(ticket) {
        const isOne = typeof ticket === "string" && ticket.length <= LONGEST_TICKET && /^[!-~]+$/.test(ticket);
        return isOne ? ticket : null;
    }

    function readJson(text) {
        try {
            const value = JSON.parse(text);
            return typeof value === "object" && value !== null ? value : {};
        } catch {
            return {};
        }
    }

    async function ask(url, signal) {
        try {
            const answer = await fetch(url, { signal, cache: "no-store" });
            return { status: answer.status, said: readJson(await readShort(answer)) };
        } catch {
            return { status: 0, said: {} }; // no answer, or none that this page may read
        }
    }

    async function readShort(answer) {
        const decoder = new TextDecoder();
        let text = "";
        const reader = answer.body.getReader();
        for (let part; !(part = await reader.read()).done; ) {
            text += decoder.decode(part.value, { stream: true });
            if (text.length > LONGEST_ANSWER) {
                await reader.cancel();
                return "";
            }
        }
        return text;
    }

    // What was given.

    function readUrl(url) {
        let read;
        try {
            read = new URL(url, globalThis.document?.baseURI ?? globalThis.location?.href);
        } catch {
            throw new DOMException(`${url} is no URL`, "SyntaxError");
        }
        read.protocol = read.protocol.replace(/^http/, "ws");
        if (!/^wss?:$/.test(read.protocol) || read.hash) {
            throw new DOMException(`${url} is no URL of a WebSocket`, "SyntaxError");
        }
        return read;
    }

    function isUrl(text, base) {
        try {
            return Boolean(new URL(text, base));
        } catch {
            return false;
        }
    }

    function readSettings(options, url) {
        const defaults = {
            ...DEFAULTS,
            preflight: false,
            ticketInQuery: true,
            WebSocket: globalThis.WebSocket,
            random: Math.random,
            clock: CLOCK,
        };
        for (const name of Object.keys(options ?? {})) {
            if (!Object.hasOwn(defaults, name)) {
                throw new TypeError(`${name}: there is no such option; write one of ${Object.keys(defaults).join(", ")}`);
            }
        }
        const settings = { ...defaults, ...options };
        for (const name of Object.keys(DEFAULTS)) {
            const ms = settings[name];
            if (typeof ms !== "number" || !(ms > 0 && ms <= LONGEST_MS)) {
                throw new RangeError(`${name}: got ${ms}; write milliseconds, above 0 and at most ${LONGEST_MS}`);
            }
        }
        if (typeof settings.ticketInQuery !== "boolean") {
            throw new TypeError(`ticketInQuery: got ${settings.ticketInQuery}; write true or false`);
        }
        if (typeof settings.preflight !== "boolean" && !isUrl(settings.preflight, url)) {
            throw new TypeError(`preflight: got ${settings.preflight}; write true, false, or the URL to ask`);
        }
        if (settings.preflight && !settings.ticketInQuery) {
            throw new TypeError("preflight: its ticket is in no cookie; leave ticketInQuery true");
        }
        if (typeof settings.WebSocket !== "function") {
            throw new TypeError("WebSocket: there is none here; give one, as in { WebSocket } of the package ws");
        }
        return settings;
    }

    function checkClose(code, reason) {
        if (code !== undefined && code !== 1000 && !(code >= 3000 && code <= 4999)) {
            throw new DOMException(`code: got ${code}; write 1000, or 3000 to 4999`, "InvalidAccessError");
        }
        if (new TextEncoder().encode(reason).length > 123) {
            throw new DOMException("reason: longer than 123 bytes", "SyntaxError");
        }
    }

    globalThis.HerdgateWebSocket = HerdgateWebSocket;
})();
