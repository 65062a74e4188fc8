// @ts-check
// A small gateway that speaks PROTOCOL as far as the page needs it, for the faults that a real
// one does not show on demand: refusals, lost connections, gaps, doubles, odd close codes.

import { createServer } from 'node:http';
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { WebSocketServer } from 'ws';

/** The page's files. */
export const STUDIO = fileURLToPath(new URL('../../gateway/studio/', import.meta.url));
const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript; charset=utf-8', '.css': 'text/css; charset=utf-8' };
export const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** One owner's log, runs and asks in memory, and the sockets that look at them. */
export class Fake {
  epoch = 'e1';
  /** @type {any[]} the log, frame n at n - 1 */
  log = [];
  /** @type {Map<string, any>} */
  runs = new Map();
  /** @type {any[]} */
  asks = [];
  /** @type {Set<import('ws').WebSocket>} */
  sockets = new Set();
  /** @type {any[]} every frame that a client sent */
  received = [];
  /** The last of them as it was sent, digit by digit. */
  raw = '';
  /** @type {any[]} the hellos among them */
  hellos = [];
  /** @type {((frame: any) => any) | null} answers a command in place of the usual way; undefined: the usual way */
  onCommand = null;
  /** @type {((frame: any, socket: import('ws').WebSocket) => boolean) | null} takes a frame away on its way out */
  swallow = null;
  /** Whether names serve for a token; false: 404. */
  byName = true;
  agents = [
    { name: 'tshirt', description: 'Finds you a T-shirt and asks for the size', revision: '1', questions: true, live: true },
    { name: 'support', description: 'Takes a support case and asks two things at once', revision: '1', questions: false, live: true },
    { name: 'order', description: 'Takes an order with a small form', revision: '1', questions: true, live: true },
  ];
  /** @type {string[]} CSP reports and refused paths */
  misses = [];
  #commands = new Map();
  #server = createServer((request, reply) => void this.#http(request, reply));
  #sockets = new WebSocketServer({ server: this.#server, path: '/v1/ws', handleProtocols: (offered) => (offered.has('askwell.v1') ? 'askwell.v1' : false) });
  #count = 0;

  /** @returns {Promise<string>} its address */
  async open() {
    this.#sockets.on('connection', (socket) => this.#connected(socket));
    await new Promise((done) => this.#server.listen(0, '127.0.0.1', () => done(undefined)));
    const address = this.#server.address();
    return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  }

  async close() {
    for (const socket of this.sockets) socket.terminate();
    this.#sockets.close();
    this.#server.closeAllConnections();
    await new Promise((done) => this.#server.close(done));
  }

  get seq() {
    return this.log.length;
  }

  /**
   * Commits frames: each gets its `seq`, is kept, and goes to every socket.
   * @param {...any} frames
   */
  commit(...frames) {
    for (const frame of frames) {
      const whole = { ...frame, seq: this.seq + 1 };
      this.log.push(whole);
      this.push(whole);
    }
    return this.seq;
  }

  /** @param {any} frame to every socket, as it is */
  push(frame) {
    for (const socket of this.sockets) {
      if (!this.swallow?.(frame, socket)) socket.send(JSON.stringify(frame));
    }
  }

  /**
   * @param {string} agent
   * @param {any} input
   * @param {string | null} [thread]
   */
  start(agent, input, thread = null) {
    const run = `run_${(this.#count += 1)}`;
    this.runs.set(run, { run, agent, thread, status: 'queued', rev: 0, messages: [], tools: [], reason: null, output: null, created: new Date().toISOString() });
    this.status(run, 'queued');
    this.message(run, 0, 'user', typeof input === 'string' ? input : JSON.stringify(input));
    return run;
  }

  /**
   * @param {string} run
   * @param {string} status
   * @param {any} [more]
   */
  status(run, status, more = {}) {
    const kept = this.runs.get(run);
    Object.assign(kept, { status, rev: kept.rev + 1, ...more });
    const { agent, thread, rev } = kept;
    this.commit({ type: 'run.status', run, agent, thread, status, rev, ...more });
  }

  /**
   * @param {string} run
   * @param {number} turn
   * @param {'user' | 'assistant'} role
   * @param {string} text
   * @param {any[]} [calls]
   */
  message(run, turn, role, text, calls = []) {
    this.runs.get(run).messages.push({ turn, role, text, calls });
    this.commit({ type: 'run.message', run, turn, role, text, calls });
  }

  /**
   * Opens an ask in a turn of its own, and leaves the run waiting.
   * @param {string} run
   * @param {any} input
   * @param {{ kind?: string, tool?: string, turn?: number, text?: string, ms?: number }} [more]
   */
  ask(run, input, { kind = 'question', tool = kind, turn = 1, text = '', ms = 86_400_000 } = {}) {
    const step = `${tool} ${turn}.1`;
    const ask = {
      id: `ask_${randomUUID()}`, run, agent: this.runs.get(run).agent, step, repeat: 1, kind, tool, input,
      questions: input.questions?.length ?? 1, state: 'open', opened: new Date().toISOString(),
      deadline: new Date(Date.now() + ms).toISOString(), drafts: {}, outcome: null, by: null, at: null, data: null,
    };
    this.asks.push(ask);
    this.message(run, turn, 'assistant', text, [{ call: `c${turn}`, step, tool, input }]);
    this.commit({ type: 'ask.opened', ask: { ...ask, drafts: {} } });
    this.status(run, 'waiting');
    return ask;
  }

  /**
   * @param {any} ask
   * @param {string} outcome
   * @param {any} [more]
   */
  settle(ask, outcome, more = {}) {
    const settled = { outcome, by: { sub: 'ada', device: 'other' }, at: new Date().toISOString(), ...more };
    Object.assign(ask, settled, { state: 'settled' });
    const { run, step, repeat } = ask;
    return this.commit({ type: 'ask.settled', run, step, repeat, ...settled });
  }

  /**
   * @param {string} run
   * @param {string} text
   */
  finish(run, text) {
    this.status(run, 'running');
    this.message(run, 9, 'assistant', text);
    this.status(run, 'succeeded', { output: text });
  }

  /** Cuts every connection, as a network does: with no close frame. */
  cut() {
    for (const socket of this.sockets) socket.terminate();
  }

  /** @param {number} code */
  closeAll(code) {
    for (const socket of this.sockets) socket.close(code);
  }

  /** @param {import('ws').WebSocket} socket */
  #connected(socket) {
    const send = (/** @type {any} */ frame) => socket.send(JSON.stringify(frame));
    send({ type: 'hello', v: 1, node: 'fake', pingS: 25, deadlineS: 8 });
    let device = '';
    socket.on('close', () => this.sockets.delete(socket));
    socket.on('message', (data) => {
      this.raw = String(data);
      const frame = JSON.parse(this.raw);
      this.received.push(frame);
      if (frame.type === 'hello') {
        this.hellos.push(frame);
        device = frame.device;
        this.sockets.add(socket);
        this.#welcome(frame, send);
      } else if (frame.type === 'resync') this.log.slice(frame.seq).forEach(send);
      else if (frame.cmd) send(this.#command(frame, device));
    });
  }

  /**
   * @param {any} hello
   * @param {(frame: any) => void} send
   */
  #welcome({ resume }, send) {
    const base = { type: 'welcome', epoch: this.epoch, seq: this.seq, you: { sub: 'ada', roles: [] } };
    if (resume?.epoch === this.epoch && resume.seq <= this.seq) {
      send({ ...base, mode: 'resumed' });
      this.log.slice(resume.seq).forEach(send);
      return;
    }
    send({ ...base, mode: 'snapshot', why: resume ? 'epoch' : 'new' });
    const asks = this.asks.filter((ask) => ask.state === 'open');
    const runs = [...this.runs.values()].filter((run) => ['queued', 'running', 'waiting'].includes(run.status));
    const briefs = runs.map(({ run, agent, thread, status, rev }) => ({ run, agent, thread, status, rev }));
    send({ type: 'snapshot', seq: this.seq, asks, runs: [], more: true });
    send({ type: 'snapshot', seq: this.seq, asks: [], runs: briefs, more: false });
  }

  /**
   * @param {any} frame
   * @param {string} device
   */
  #command(frame, device) {
    const told = this.onCommand?.(frame);
    if (told !== undefined) return { cmd: frame.cmd, ...told };
    const known = this.#commands.get(frame.cmd);
    if (known) return known;
    const reply = { cmd: frame.cmd, ...this.#do(frame, device) };
    if (reply.type === 'ok') this.#commands.set(frame.cmd, reply);
    return reply;
  }

  /**
   * @param {any} frame
   * @param {string} device
   */
  #do(frame, device) {
    if (frame.type === 'start') {
      const run = this.start(frame.agent, frame.input, frame.thread ?? null);
      return { type: 'ok', run, seq: this.seq };
    }
    if (frame.type === 'cancel') {
      for (const ask of this.asks) if (ask.run === frame.run && ask.state === 'open') this.settle(ask, 'cancelled', { by: null });
      this.status(frame.run, 'cancelled', { reason: null });
      return { type: 'ok', run: frame.run, status: 'cancelled', seq: this.seq };
    }
    if (frame.type === 'retry') {
      this.status(frame.run, 'queued', { reason: null });
      return { type: 'ok', run: frame.run, seq: this.seq };
    }
    const ask = this.asks.find((one) => one.run === frame.run && one.step === frame.step);
    if (!ask) return { type: 'error', code: 'T0001', detail: 'no such ask', temporary: false };
    const { outcome, by, at } = ask;
    if (ask.state === 'settled') return { type: 'error', code: 'T0003', detail: 'settled', temporary: false, settled: { outcome, by, at } };
    const own = { by: { sub: 'ada', device }, cmd: frame.cmd };
    if (frame.type === 'refuse') this.settle(ask, 'refused', own);
    else if (ask.kind === 'ask_question' && frame.n !== undefined) {
      ask.drafts[frame.data.questionId] = frame.data;
      this.commit({ type: 'ask.draft', run: ask.run, step: ask.step, repeat: 1, n: frame.n, data: frame.data });
    } else this.settle(ask, 'answered', { ...own, ...('data' in frame ? { data: frame.data } : {}) });
    return { type: 'ok', run: ask.run, step: ask.step, repeat: 1, outcome: ask.outcome ?? undefined, seq: this.seq };
  }

  /**
   * @param {import('node:http').IncomingMessage} request
   * @param {import('node:http').ServerResponse} reply
   */
  async #http(request, reply) {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    const json = (/** @type {number} */ status, /** @type {any} */ body) => {
      reply.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    if (pathname === '/v1/dev/session') {
      if (!this.byName) return json(404, { code: 'T0001', status: 404 });
      return json(200, { token: 'h.e.s' });
    }
    if (pathname.startsWith('/v1/')) {
      if (!request.headers.authorization) return json(401, { code: 'T0009', status: 401, temporary: false });
      if (pathname === '/v1/agents') return json(200, { agents: this.agents });
      const asksOf = (/** @type {any} */ run) => this.asks.filter((ask) => ask.run === run.run);
      if (pathname === '/v1/runs') {
        const runs = [...this.runs.values()].reverse().map(({ messages: _, tools: __, ...run }) => run);
        return json(200, { runs, cursor: null });
      }
      if (pathname === '/v1/asks') return json(200, { asks: this.asks.filter((ask) => ask.state === 'open'), cursor: null });
      const run = this.runs.get(pathname.slice('/v1/runs/'.length));
      return run ? json(200, { ...run, asks: asksOf(run) }) : json(404, { code: 'T0001', status: 404 });
    }
    const path = normalize(pathname === '/' ? '/index.html' : pathname);
    const type = /** @type {Record<string, string>} */ (TYPES)[extname(path)];
    const body = type ? await readFile(join(STUDIO, path)).catch(() => null) : null;
    if (body === null || type === undefined) {
      this.misses.push(pathname);
      reply.writeHead(404).end();
      return;
    }
    reply.writeHead(200, { 'content-type': type, 'content-security-policy': CSP, 'x-content-type-options': 'nosniff' }).end(body);
  }
}
