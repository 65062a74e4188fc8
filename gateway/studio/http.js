// @ts-check
// The few HTTP calls of a client (PROTOCOL 5), and the server's clock, read from its replies.

import { parse } from './json.js';
import { Refusal } from './refusal.js';

/** HTTP beside the socket: lists and transcripts. */
export class Http {
  /** Milliseconds to add to this device's clock. */
  #ahead = 0;
  #known = false;
  #base;
  #token;

  /**
   * @param {string} base the gateway's origin, without a slash at the end
   * @param {() => string | null} token the token to send
   */
  constructor(base, token) {
    this.#base = base;
    this.#token = token;
  }

  /**
   * @param {string} path with its query
   * @returns {Promise<any>}
   * @throws {Refusal} with the server's code
   */
  get(path) {
    return this.#call('GET', path);
  }

  /**
   * @param {string} path
   * @param {unknown} body
   * @returns {Promise<any>}
   * @throws {Refusal} with the server's code, or `http <status>` where it told none
   */
  post(path, body) {
    return this.#call('POST', path, body);
  }

  /** The server's clock in milliseconds since 1970: countdowns go by it, as the deadline does. */
  now() {
    return Date.now() + this.#ahead;
  }

  /**
   * Something that the server says happened: its clock cannot be behind that.
   * @param {string} time RFC 3339
   */
  happened(time) {
    const at = Date.parse(time);
    if (Number.isFinite(at) && at > this.now()) this.#ahead = at - Date.now();
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {unknown} [body]
   */
  async #call(method, path, body) {
    const token = this.#token();
    const before = Date.now();
    const reply = await fetch(this.#base + path, {
      method,
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      cache: 'no-store',
    });
    this.#sawDate(reply.headers.get('date'), before);
    const text = await reply.text();
    if (reply.ok) return text === '' ? null : parse(text);
    throw new Refusal({ code: `http ${reply.status}`, ...problem(text), status: reply.status });
  }

  /**
   * @param {string | null} date of the reply, in whole seconds
   * @param {number} before when the request was sent
   */
  #sawDate(date, before) {
    const at = date === null ? NaN : Date.parse(date) + 500;
    if (!Number.isFinite(at)) return;
    const ahead = at - (before + Date.now()) / 2;
    // Half a second either way is the header's own coarseness: only more is a difference.
    if (!this.#known || Math.abs(ahead - this.#ahead) > 1000) this.#ahead = Math.abs(ahead) < 1000 ? 0 : ahead;
    this.#known = true;
  }
}

/**
 * @param {string} text
 * @returns {{ code?: string }}
 */
function problem(text) {
  try {
    const told = JSON.parse(text);
    return typeof told?.code === 'string' ? told : {};
  } catch {
    return {};
  }
}
