// @ts-check
// A person's connection to Askwell that mends itself (PROTOCOL 4): resumes by epoch and seq,
// asks for what is missing, sends a command again until it is answered, obeys close codes.
// `snapshot` is immutable and `subscribe` tells of a new one; nothing here touches a page.

import { Refusal, refusalOf } from './refusal.js';
import { Socket } from './socket.js';
import { nothing, receive, withDetail } from './state.js';

/** @import { Command, Ok, RunDetail, ServerFrame } from './wire.js' */

/**
 * @typedef {object} Link how the connection is
 * @property {'idle' | 'connecting' | 'live' | 'waiting' | 'stopped'} phase
 * @property {string} why shown to the person when it is `stopped`
 * @property {boolean} signedOut a new sign-in is needed
 *
 * @typedef {Readonly<{ link: Link, state: import('./state.js').State, troubled: readonly string[] }>} View
 *   `troubled`: the ids of commands that the server could not take for now and that are sent again
 *
 * @typedef {object} Options
 * @property {string} url the socket's address, `ws:` or `wss:`
 * @property {(fresh: boolean) => Promise<string | null>} token the token; `fresh`: the last one does not serve any more
 * @property {string} device
 * @property {(url: string, protocol: string) => WebSocket} [connect]
 * @property {() => number} [random] 0 to 1, for the spread of reconnects
 * @property {Partial<typeof TIMING>} [timing] for tests
 *
 * @typedef {{ frame: Command & { cmd: string }, resolve: (ok: Ok) => void, reject: (fault: Error) => void, tries: number, timer?: ReturnType<typeof setTimeout> }} Pending
 */

/** Milliseconds. */
const TIMING = {
  /** Between two resyncs at least (PROTOCOL 4.2). */
  resync: 5000,
  /** For frames that are on their way when a ping tells of a newer head. */
  grace: 1000,
  /** For an answer to a command, before it is sent again. */
  answer: 10_000,
  /** First and longest wait before a reconnect; of an overloaded server the second pair. */
  base: 500,
  cap: 15_000,
  overBase: 2000,
  overCap: 60_000,
  /** A connection that held this long was a good one: the next wait is short again. */
  good: 10_000,
};

/** The connection, its state and its commands. */
export class Client {
  #options;
  #timing;
  /** @type {View} */
  #view = Object.freeze({ link: { phase: 'idle', why: '', signedOut: false }, state: nothing, troubled: [] });
  /** @type {Set<() => void>} */
  #listeners = new Set();
  #told = true;
  /** @type {Map<string, Pending>} */
  #pending = new Map();
  /** @type {Socket | null} the one that frames are sent on */
  #current = null;
  /** @type {Socket | null} the one that takes its place when it is welcomed */
  #next = null;
  #tries = 0;
  #welcomed = 0;
  /** A new token was asked for since the last welcome: refused again, it is the person's turn. */
  #renewed = false;
  #lastResync = -Infinity;
  /** Counts openings, so that one that was overtaken while it waited for a token gives up. */
  #turn = 0;
  /** @type {Record<string, ReturnType<typeof setTimeout> | undefined>} */
  #timers = {};

  /** @param {Options} options */
  constructor(options) {
    this.#options = options;
    this.#timing = { ...TIMING, ...options.timing };
  }

  /** @returns {View} the same object until something changes */
  get snapshot() {
    return this.#view;
  }

  /**
   * @param {() => void} listener called after changes, those of one moment together
   * @returns {() => void} ends it
   */
  subscribe(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Connects, and stays connected until `close` or until the server says to stop. */
  open() {
    const { phase } = this.#view.link;
    if (phase === 'connecting' || phase === 'live') return;
    this.#tries = 0;
    void this.#connect(false);
  }

  /** Ends the connection; what was not answered is given up. */
  close() {
    this.#stop('', false);
  }

  /**
   * The page is looked at again, or the network is back: a connection that died unnoticed, as
   * on a phone that slept, is replaced now and not when its silence is noticed.
   */
  wake() {
    if (this.#view.link.phase === 'waiting' || (this.#view.link.phase === 'live' && this.#current?.silent)) {
      this.#tries = 0;
      void this.#connect(false);
    }
  }

  /**
   * Sends a command and keeps sending it, under one id, until the server says yes or no.
   * @param {Command} command
   * @returns {Promise<Ok>}
   * @throws {Refusal} the server's no, or `closed` when the client is closed before
   */
  command(command) {
    const cmd = crypto.randomUUID();
    return new Promise((resolve, reject) => {
      const pending = { frame: { ...command, cmd }, resolve, reject, tries: 0 };
      this.#pending.set(cmd, pending);
      this.#send(pending);
    });
  }

  /**
   * Adds what GET told of a run.
   * @param {RunDetail} detail
   */
  learn(detail) {
    this.#change({ state: withDetail(this.#view.state, detail) });
  }

  /** @param {Partial<View>} change */
  #change(change) {
    this.#view = Object.freeze({ ...this.#view, ...change });
    if (!this.#told) return;
    this.#told = false;
    queueMicrotask(() => {
      this.#told = true;
      for (const listener of [...this.#listeners]) listener();
    });
  }

  /**
   * @param {Link['phase']} phase
   * @param {string} [why]
   * @param {boolean} [signedOut]
   */
  #phase(phase, why = '', signedOut = false) {
    this.#change({ link: { phase, why, signedOut } });
  }

  /**
   * @param {string} name
   * @param {number} ms
   * @param {() => void} act
   */
  #after(name, ms, act) {
    clearTimeout(this.#timers[name]);
    this.#timers[name] = setTimeout(act, ms);
  }

  /** @param {boolean} fresh whether a new token is needed */
  async #connect(fresh) {
    const turn = (this.#turn += 1);
    clearTimeout(this.#timers['connect']);
    if (this.#current === null) this.#phase('connecting');
    let token;
    try {
      token = await this.#options.token(fresh);
    } catch {
      if (turn === this.#turn) this.#again(this.#timing.base, this.#timing.cap);
      return;
    }
    if (turn !== this.#turn) return;
    if (token === null) {
      this.#stop('Please sign in again.', true);
      return;
    }
    this.#next?.drop();
    const { url, device, connect = (to, protocol) => new WebSocket(to, protocol) } = this.#options;
    const socket = new Socket({
      url,
      token,
      device,
      connect,
      resume: () => {
        const { epoch, seq } = this.#view.state;
        return epoch === null || seq < 0 ? undefined : { epoch, seq };
      },
      seq: () => this.#view.state.seq,
      onFrame: (frame) => this.#frame(socket, frame),
      onEnd: (code, reason) => this.#ended(socket, code, reason),
    });
    this.#next = socket;
    this.#keepFresh(token);
  }

  /**
   * @param {Socket} socket
   * @param {ServerFrame} frame
   */
  #frame(socket, frame) {
    if (frame.type === 'welcome' && socket === this.#next) {
      // The new socket serves now; the old one, if any, was kept until here.
      this.#current?.drop();
      this.#current = socket;
      this.#next = null;
      this.#welcomed = Date.now();
      this.#lastResync = -Infinity;
      this.#renewed = false;
      this.#phase('live');
      this.#change({ state: receive(this.#view.state, frame) });
      for (const pending of this.#pending.values()) this.#send(pending);
      return;
    }
    if (socket !== this.#current) return;
    if (frame.type === 'ok') return this.#answered(frame.cmd, frame);
    if (frame.type === 'error') return this.#failed(frame);
    if (frame.type === 'drain') return this.#after('connect', frame.afterMs, () => void this.#connect(false));
    const state = receive(this.#view.state, frame);
    if (state !== this.#view.state) this.#change({ state });
    if (state.gap) this.#resync();
    else if (frame.type === 'ping' && frame.head > state.seq) this.#after('resync', this.#timing.grace, () => this.#resync());
  }

  /** Asks for what is missing, at most once in five seconds. */
  #resync() {
    const wait = this.#lastResync + this.#timing.resync - Date.now();
    if (wait > 0) {
      this.#after('resync', wait, () => {
        if (this.#view.state.gap) this.#resync();
      });
      return;
    }
    if (this.#current?.send({ type: 'resync', seq: Math.max(0, this.#view.state.seq) })) this.#lastResync = Date.now();
  }

  /** @param {Pending} pending */
  #send(pending) {
    clearTimeout(pending.timer);
    // Without a connection the next welcome sends it.
    if (!this.#current?.send(pending.frame)) return;
    pending.timer = setTimeout(() => this.#send(pending), this.#timing.answer);
  }

  /**
   * @param {string} cmd
   * @param {Ok | Refusal} answer
   */
  #answered(cmd, answer) {
    const pending = this.#pending.get(cmd);
    if (pending === undefined) return;
    clearTimeout(pending.timer);
    this.#pending.delete(cmd);
    if (answer instanceof Refusal) pending.reject(answer);
    else pending.resolve(answer);
    this.#change({ troubled: this.#view.troubled.filter((one) => one !== cmd) });
  }

  /** @param {import('./wire.js').ErrorFrame} frame */
  #failed(frame) {
    const pending = frame.cmd ? this.#pending.get(frame.cmd) : undefined;
    if (!frame.cmd || pending === undefined) return;
    if (!frame.temporary) return this.#answered(frame.cmd, refusalOf(frame));
    // The command may have been saved or not: only the same id can be sent again safely.
    clearTimeout(pending.timer);
    pending.tries += 1;
    const backOff = this.#spread(this.#timing.base, this.#timing.cap, pending.tries);
    pending.timer = setTimeout(() => this.#send(pending), Math.max(frame.retryMs ?? 0, backOff));
    if (!this.#view.troubled.includes(frame.cmd)) this.#change({ troubled: [...this.#view.troubled, frame.cmd] });
  }

  /**
   * @param {Socket} socket
   * @param {number} code
   * @param {string} reason
   */
  #ended(socket, code, reason) {
    const wasNext = socket === this.#next;
    if (!wasNext && socket !== this.#current) return;
    if (wasNext) this.#next = null;
    else this.#current = null;
    if (code >= 4000 && code < 4100) return this.#stop(reason || `The server ended the connection (${code}).`, false);
    // While another connection serves or is being made, that one goes on.
    if (this.#current !== null && !wasNext) return;
    if (!wasNext && this.#next !== null) return this.#phase('connecting');
    if (!wasNext && Date.now() - this.#welcomed > this.#timing.good) this.#tries = 0;
    if (code >= 4300 && code < 4400 && !this.#renewed) {
      this.#renewed = true;
      if (this.#current === null) this.#phase('waiting');
      void this.#connect(true);
    } else if (code >= 4300 && code < 4400) {
      this.#stop('Please sign in again.', true);
    } else if (code >= 4100 && code < 4200) {
      this.#again(this.#timing.overBase, this.#timing.overCap);
    } else {
      this.#again(this.#timing.base, this.#timing.cap);
    }
  }

  /**
   * @param {number} base milliseconds
   * @param {number} cap milliseconds
   */
  #again(base, cap) {
    if (this.#current === null) this.#phase('waiting');
    this.#tries += 1;
    this.#after('connect', this.#spread(base, cap, this.#tries), () => void this.#connect(false));
  }

  /**
   * Full jitter: anything up to the bound, so that many clients do not come back at once.
   * @param {number} base milliseconds
   * @param {number} cap milliseconds
   * @param {number} tries
   */
  #spread(base, cap, tries) {
    return (this.#options.random ?? Math.random)() * Math.min(cap, base * 2 ** Math.min(tries, 16));
  }

  /**
   * Renews the token in place when four fifths of its life are over.
   * @param {string} token
   */
  #keepFresh(token) {
    const life = lifeOf(token);
    if (life === null) return;
    // A timer's delay is a 32-bit number; a token that lives longer needs no renewal today.
    this.#after('auth', Math.min(life * 0.8, 2 ** 31 - 1), async () => {
      const fresh = await this.#options.token(true).catch(() => null);
      if (fresh === null || !this.#current?.send({ type: 'auth', cmd: crypto.randomUUID(), token: fresh })) return;
      this.#keepFresh(fresh);
    });
  }

  /**
   * @param {string} why
   * @param {boolean} signedOut
   */
  #stop(why, signedOut) {
    this.#turn += 1;
    for (const timer of Object.values(this.#timers)) clearTimeout(timer);
    this.#current?.drop();
    this.#next?.drop();
    this.#current = this.#next = null;
    this.#phase('stopped', why, signedOut);
    for (const cmd of [...this.#pending.keys()]) {
      this.#answered(cmd, new Refusal({ code: 'closed', detail: why || 'The connection was closed.' }));
    }
  }
}

/**
 * Milliseconds that a JWT lives from now on, by its own two times where it has both, so that a
 * wrong clock of this device does no harm; `null` when it does not tell.
 * @param {string} token
 * @returns {number | null}
 */
function lifeOf(token) {
  try {
    const part = (token.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/');
    const { iat, exp } = JSON.parse(atob(part));
    if (typeof exp !== 'number') return null;
    const life = exp * 1000 - (typeof iat === 'number' ? iat * 1000 : Date.now());
    return life > 0 ? life : null;
  } catch {
    return null;
  }
}
