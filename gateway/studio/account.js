// @ts-check
// Who is signed in on this tab. The token is kept for the tab alone; the name, and a random
// name for the device, are remembered.

import { Refusal } from './refusal.js';

/** @import { Http } from './http.js' */

const TOKEN = 'askwell.token';
const NAME = 'askwell.name';
const DEVICE = 'askwell.device';

/**
 * A browser may forbid storage: then it lasts as long as the page.
 * @param {() => Storage} which
 */
function kept(which) {
  /** @type {Map<string, string>} */
  const own = new Map();
  return {
    /** @param {string} key */
    get(key) {
      try {
        return which().getItem(key) ?? own.get(key) ?? null;
      } catch {
        return own.get(key) ?? null;
      }
    },
    /**
     * @param {string} key
     * @param {string | null} value
     */
    set(key, value) {
      if (value === null) own.delete(key);
      else own.set(key, value);
      try {
        if (value === null) which().removeItem(key);
        else which().setItem(key, value);
      } catch {
        // It is kept in memory.
      }
    },
  };
}

const tab = kept(() => sessionStorage);
const browser = kept(() => localStorage);

/** The sign-in of one tab. */
export class Account {
  /** @type {string | null} */
  token = tab.get(TOKEN);
  name = browser.get(NAME) ?? '';
  device = browser.get(DEVICE) ?? `web-${crypto.randomUUID().slice(0, 8)}`;
  /** Whether the server hands out tokens for a name: then one that ran out is renewed unasked. */
  #byName = tab.get(`${TOKEN}.by`) === 'name';

  constructor() {
    browser.set(DEVICE, this.device);
  }

  /**
   * @param {Http} http
   * @param {string} name
   * @returns {Promise<boolean>} false: this server wants a token
   * @throws {Refusal}
   */
  async signIn(http, name) {
    try {
      const { token } = await http.post('/v1/dev/session', { name });
      this.#keep(token, true);
    } catch (fault) {
      if (fault instanceof Refusal && fault.status === 404) return false;
      throw fault;
    }
    this.name = name;
    browser.set(NAME, name);
    return true;
  }

  /** @param {string} token pasted by the person */
  use(token) {
    this.#keep(token, false);
  }

  /** Forgets the token. */
  leave() {
    this.token = null;
    tab.set(TOKEN, null);
  }

  /**
   * A token that serves.
   * @param {Http} http
   * @param {boolean} fresh the one in hand does not serve any more
   * @returns {Promise<string | null>} null: the person has to sign in
   */
  async current(http, fresh) {
    if (!fresh) return this.token;
    if (!this.#byName || this.name === '') return null;
    return (await this.signIn(http, this.name)) ? this.token : null;
  }

  /**
   * @param {string} token
   * @param {boolean} byName
   */
  #keep(token, byName) {
    this.token = token;
    this.#byName = byName;
    tab.set(TOKEN, token);
    tab.set(`${TOKEN}.by`, byName ? 'name' : 'token');
  }
}
