// @ts-check
// One WebSocket from its opening to its end (PROTOCOL 1): says hello, answers pings, notices
// silence. What to do after the end is the client's to decide.

import { parse } from './json.js';

/** @import { Command, ServerFrame } from './wire.js' */

/**
 * @typedef {object} Opening
 * @property {string} url
 * @property {string} token
 * @property {string} device
 * @property {() => { epoch: string, seq: number } | undefined} resume read when the socket is open
 * @property {() => number} seq the last frame applied, for pongs
 * @property {(url: string, protocol: string) => WebSocket} connect
 * @property {(frame: ServerFrame) => void} onFrame
 * @property {(code: number, reason: string) => void} onEnd called once
 *
 * @typedef {Command & { cmd: string } | { type: 'resync', seq: number } | { type: 'auth', cmd: string, token: string }} Sendable
 */

/** Milliseconds without a welcome after which a connection is given up. */
const OPENING = 10_000;

/** One connection. */
export class Socket {
  #socket;
  #opening;
  #over = false;
  #heard = Date.now();
  /** Milliseconds of silence after which the server must be gone: its ping and the time for a pong. */
  #silence = 33_000;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** @param {Opening} opening */
  constructor(opening) {
    this.#opening = opening;
    this.#socket = opening.connect(opening.url, 'askwell.v1');
    this.#socket.onopen = () => this.#hello();
    this.#socket.onmessage = ({ data }) => this.#message(data);
    this.#socket.onclose = ({ code, reason }) => this.#end(code, reason);
    // An error is always followed by a close, which says more.
    this.#socket.onerror = () => {};
    this.#timer = setTimeout(() => this.#end(1006, 'no welcome'), OPENING);
  }

  /** Whether nothing was heard for longer than a living server can be silent. */
  get silent() {
    return Date.now() - this.#heard > this.#silence;
  }

  /**
   * @param {Sendable} frame
   * @returns {boolean} false when the socket is not open
   */
  send(frame) {
    if (this.#over || this.#socket.readyState !== 1) return false;
    this.#socket.send(JSON.stringify(frame));
    return true;
  }

  /** Ends the connection without a word to the client. */
  drop() {
    this.#over = true;
    clearTimeout(this.#timer);
    this.#socket.close(1000);
  }

  #hello() {
    const { token, device } = this.#opening;
    const resume = this.#opening.resume();
    this.#socket.send(JSON.stringify({ type: 'hello', token, device, ...(resume ? { resume } : {}) }));
  }

  /** @param {unknown} data */
  #message(data) {
    if (this.#over) return;
    this.#heard = Date.now();
    /** @type {ServerFrame} */
    let frame;
    try {
      frame = parse(String(data));
    } catch {
      return;
    }
    if (frame.type === 'hello') this.#silence = (frame.pingS + frame.deadlineS) * 1000;
    if (frame.type === 'welcome') this.#listen();
    if (frame.type === 'ping') this.#socket.send(JSON.stringify({ type: 'pong', seq: Math.max(0, this.#opening.seq()) }));
    this.#opening.onFrame(frame);
  }

  #listen() {
    clearTimeout(this.#timer);
    const check = () => {
      if (this.silent) this.#end(1006, 'silence');
      else this.#timer = setTimeout(check, this.#silence / 4);
    };
    this.#timer = setTimeout(check, this.#silence / 4);
  }

  /**
   * @param {number} code
   * @param {string} reason
   */
  #end(code, reason) {
    if (this.#over) return;
    this.drop();
    this.#opening.onEnd(code, reason);
  }
}
