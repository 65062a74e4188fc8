// @ts-check
// The signed-in page: the conversations, the open one with its transcript, and the composer.

import { Composer } from './composer.js';
import { conversations, keyOf, liveRun } from './conversations.js';
import { h, setText } from './dom.js';
import { isObject, show } from './json.js';
import { explain, Refusal } from './refusal.js';
import { arrange, RunView, statusText } from './transcript.js';
import { Welcome } from './welcome.js';

/** @import { Client } from './client.js' */
/** @import { Conversation } from './conversations.js' */
/** @import { Http } from './http.js' */
/** @import { Agent, Ask, Port, RunDetail } from './wire.js' */

/** Milliseconds until agents are looked for again while there are none. */
const LOOKS_AGAIN = 3000;

/** How near to the end, in pixels, a page still follows what is added there. */
const FOLLOWS = 120;

/** The page of one signed-in person. */
export class Chat {
  #client;
  #http;
  /** @type {Port} */
  #port;
  /** @type {readonly string[]} run ids from the list, the oldest first */
  #order = [];
  /** @type {Map<string, RunView>} */
  #views = new Map();
  /** Runs that are being read, so that each is read once at a time. @type {Set<string>} */
  #reading = new Set();
  /** @type {ReadonlySet<string>} the open asks that were announced */
  #announced = new Set();
  /** @type {readonly string[]} runs that were live at the last look */
  #live = [];
  #shown = '';

  #list = h('ul', {});
  #fresh = h('a', { class: 'new', href: '#' }, 'New conversation');
  #banner = h('div', { class: 'banner', role: 'status', hidden: true });
  #runs = h('div', { class: 'runs' });
  #welcome = new Welcome((text) => void this.#start(text));
  #composer = new Composer((text) => this.#start(text), () => void this.#cancel());
  element = h('div', { class: 'studio' },
    h('nav', { class: 'rail', 'aria-label': 'Conversations' }, this.#fresh, this.#list),
    h('main', { class: 'chat' }, this.#banner, this.#welcome.element, this.#runs, this.#composer.element),
  );

  /**
   * @param {Client} client
   * @param {Http} http
   * @param {string} device
   */
  constructor(client, http, device) {
    this.#client = client;
    this.#http = http;
    this.#port = {
      device,
      now: () => http.now(),
      approve: (answer) => client.command({ type: 'approve', ...answer }),
      refuse: (refusal) => client.command({ type: 'refuse', ...refusal }),
    };
    addEventListener('hashchange', () => {
      if (!this.element.isConnected) return;
      this.render();
      this.#composer.focus();
    });
  }

  /**
   * Reads the agents and the recent runs.
   * @param {() => void} signedOut
   */
  async load(signedOut) {
    try {
      const [{ agents }, { runs }] = await Promise.all([this.#http.get('/v1/agents'), this.#http.get('/v1/runs?limit=50')]);
      this.#welcome.setAgents(/** @type {Agent[]} */ (agents));
      this.#order = /** @type {RunDetail[]} */ (runs).map(({ run }) => run).reverse();
      for (const run of /** @type {RunDetail[]} */ (runs)) this.#client.learn(run);
      this.#composer.problem('');
    } catch (fault) {
      if (fault instanceof Refusal && fault.status === 401) return signedOut();
      this.#composer.problem(explain(fault));
    }
    this.render();
    // The store may be away, or the first worker about to announce its agents.
    if (this.#welcome.agent !== null) return;
    setTimeout(() => {
      if (this.element.isConnected) void this.load(signedOut);
    }, LOOKS_AGAIN);
  }

  /** Shows the client's newest state. */
  render() {
    const { state } = this.#client.snapshot;
    const all = conversations(state, this.#order);
    const key = decodeURIComponent(location.hash.slice(1));
    const current = all.find((one) => one.key === key) ?? null;
    // A conversation that has just been started has no run here yet.
    const starting = current === null && key !== '';

    const changed = this.#shown !== key;
    const follows = changed || innerHeight + scrollY > document.documentElement.scrollHeight - FOLLOWS;
    this.#shown = key;
    this.#renderList(all, key);
    this.#renderBanner(all, key);
    this.#welcome.element.hidden = current !== null || starting;
    this.#renderRuns(current);
    this.#composer.render({
      agent: current?.agent ?? this.#welcome.agent?.name ?? '',
      asks: (current?.open.length ?? 0) > 0,
      live: current !== null && liveRun(current) !== null,
      first: current === null,
      ready: this.#client.snapshot.link.phase !== 'stopped' && (current !== null || this.#welcome.agent !== null),
      another: current !== null && current.thread === null,
    });
    this.#announce(all);
    if (follows) this.#follow(current);
  }

  /**
   * Brings what is new into view: the end, but of a long ask its beginning.
   * @param {Conversation | null} current
   */
  #follow(current) {
    const ask = this.#runs.querySelector('askwell-ask[data-state="open"]');
    if (current === null) scrollTo({ top: 0 });
    else if (ask !== null && !ask.contains(document.activeElement)) ask.scrollIntoView({ block: ask.clientHeight > innerHeight * 0.6 ? 'start' : 'nearest' });
    else if (ask === null) scrollTo({ top: document.documentElement.scrollHeight });
  }

  /**
   * @param {readonly Conversation[]} all
   * @param {string} key
   */
  #renderList(all, key) {
    this.#fresh.toggleAttribute('aria-current', key === '');
    const items = all.map((one) => {
      const last = one.runs.at(-1);
      const status = last ? statusText(last, one.open.length > 0) : '';
      return h('li', {},
        h('a', { href: `#${encodeURIComponent(one.key)}`, 'aria-current': one.key === key ? 'page' : undefined, 'data-status': status },
          h('span', { class: 'title' }, one.title || one.agent), h('span', { class: 'about' }, `${one.agent} · ${status}`)),
      );
    });
    const same =
      items.length === this.#list.children.length && items.every((item, at) => item.isEqualNode(this.#list.children[at] ?? null));
    // Only when something differs: a link that is replaced loses the keyboard's focus.
    if (!same) this.#list.replaceChildren(...items);
  }

  /**
   * @param {readonly Conversation[]} all
   * @param {string} key
   */
  #renderBanner(all, key) {
    const { link, troubled } = this.#client.snapshot;
    const other = all.find((one) => one.key !== key && one.open.length > 0);
    /** @type {Node[]} */
    let parts = [];
    if (link.phase === 'stopped') {
      parts = [document.createTextNode(`${link.why} `), h('button', { type: 'button', onclick: () => this.#client.open() }, 'Connect again')];
    } else if (troubled.length > 0) {
      parts = [document.createTextNode('The server cannot take this right now. It is sent again by itself.')];
    } else if (other !== undefined) {
      const link = h('a', { href: `#${encodeURIComponent(other.key)}` }, 'Open it');
      parts = [document.createTextNode(`${other.agent} waits for your answer in another conversation. `), link];
    }
    const next = h('div', {}, ...parts);
    if (next.textContent !== this.#banner.textContent || next.querySelector('a')?.hash !== this.#banner.querySelector('a')?.hash) {
      this.#banner.replaceChildren(...next.childNodes);
    }
    this.#banner.hidden = parts.length === 0;
  }

  /** @param {Conversation | null} current */
  #renderRuns(current) {
    const { state } = this.#client.snapshot;
    const views = (current?.runs ?? []).map((run) => {
      let view = this.#views.get(run.run);
      if (view === undefined) {
        view = new RunView(this.#port, (id) => void this.#command({ type: 'retry', run: id }));
        this.#views.set(run.run, view);
      }
      view.render(run, state);
      if (!run.whole) void this.#read(run.run);
      return view.element;
    });
    arrange(this.#runs, views);
  }

  /**
   * Reads a transcript that the frames did not bring as a whole.
   * @param {string} run
   */
  async #read(run) {
    if (this.#reading.has(run)) return;
    this.#reading.add(run);
    try {
      this.#client.learn(await this.#http.get(`/v1/runs/${encodeURIComponent(run)}`));
      this.#reading.delete(run);
    } catch {
      // Not at every frame again: a while later, when something is drawn.
      setTimeout(() => {
        this.#reading.delete(run);
        this.render();
      }, 3000);
    }
  }

  /**
   * @param {string} text
   * @returns {Promise<boolean>} false: it was turned down, which is shown
   */
  async #start(text) {
    const key = decodeURIComponent(location.hash.slice(1));
    const { state } = this.#client.snapshot;
    const current = conversations(state, this.#order).find((one) => one.key === key);
    const agent = current?.agent ?? this.#welcome.agent?.name;
    if (agent === undefined) return false;
    const thread = current?.thread ?? `chat-${crypto.randomUUID().slice(0, 13)}`;
    const ok = await this.#command({ type: 'start', agent, input: text, thread });
    if (ok) location.hash = encodeURIComponent(keyOf({ run: '', thread }));
    return ok;
  }

  async #cancel() {
    const key = decodeURIComponent(location.hash.slice(1));
    const current = conversations(this.#client.snapshot.state, this.#order).find((one) => one.key === key);
    const run = current && liveRun(current);
    if (run) await this.#command({ type: 'cancel', run: run.run });
  }

  /**
   * @param {import('./wire.js').Command} command
   * @returns {Promise<boolean>}
   */
  async #command(command) {
    this.#composer.problem('');
    try {
      await this.#client.command(command);
      return true;
    } catch (fault) {
      this.#composer.problem(explain(fault));
      return false;
    }
  }

  /**
   * Says what happened to those who cannot see it, and in the title of a tab in the back.
   * @param {readonly Conversation[]} all
   */
  #announce(all) {
    const open = all.flatMap((one) => one.open);
    for (const ask of open) this.#http.happened(ask.opened);
    document.title = open.length > 0 ? `(${open.length}) Askwell` : 'Askwell';
    const news = open.filter((ask) => !this.#announced.has(ask.id));
    this.#announced = new Set(open.map((ask) => ask.id));
    const live = all.flatMap((one) => one.runs).filter((run) => liveRun({ ...NONE, runs: [run] }) !== null);
    const ended = this.#live.filter((id) => !live.some((run) => run.run === id));
    this.#live = live.map((run) => run.run);
    const line = document.getElementById('news');
    if (line === null) return;
    const [ask] = news;
    if (ask !== undefined) setText(line, `A question for you: ${heading(ask)}`);
    else if (ended.length > 0) setText(line, 'The run ended.');
  }
}

/** @type {Conversation} */
const NONE = { key: '', thread: null, agent: '', runs: [], open: [], title: '' };

/** @param {Ask} ask */
function heading(ask) {
  const input = isObject(ask.input) ? ask.input : {};
  return ask.kind === 'question' ? show(input['question'] ?? '') : ask.tool;
}
