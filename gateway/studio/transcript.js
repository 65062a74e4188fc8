// @ts-check
// One run as a person reads it: what was said, the tools that were used, the asks where they
// came up, and how it ended. Elements are kept and only changed, so that nothing typed is lost.

import { AskwellAsk } from './ask.js';
import { h, setText } from './dom.js';
import { show } from './json.js';
import { askKey, isLive } from './state.js';

/** @import { Ask, Call, Port } from './wire.js' */
/** @import { Run, State, Tool } from './state.js' */

const QUESTIONS = ['question', 'ask_question'];

/** The view of one run. */
export class RunView {
  element = h('section', { class: 'run' });
  #port;
  #retry;
  /** @type {Map<string, HTMLElement>} the elements by what they show */
  #parts = new Map();
  /** @type {Run | null} */
  #run = null;
  /** @type {readonly Ask[]} */
  #asks = [];

  /**
   * @param {Port} port
   * @param {(run: string) => void} retry
   */
  constructor(port, retry) {
    this.#port = port;
    this.#retry = retry;
  }

  /**
   * @param {Run} run
   * @param {State} state
   */
  render(run, state) {
    const asks = Object.values(state.asks).filter((ask) => ask.run === run.run);
    const same = asks.length === this.#asks.length && asks.every((ask, at) => ask === this.#asks[at]);
    if (run === this.#run && same) return;
    this.#run = run;
    this.#asks = asks;
    this.element.dataset['run'] = run.run;
    this.element.dataset['status'] = run.status;

    /** @type {HTMLElement[]} */
    const shown = [];
    const placed = new Set();
    /** @param {(ask: Ask) => boolean} which */
    const put = (which) => {
      for (const ask of asks.filter(which).sort((a, b) => a.repeat - b.repeat)) {
        placed.add(ask);
        shown.push(this.#ask(ask));
      }
    };
    for (const message of run.messages) {
      if (message.text !== '') shown.push(this.#bubble(`m ${message.turn} ${message.role}`, message.role, message.text));
      for (const call of message.calls) {
        const tool = run.tools[`${message.turn} ${call.call}`];
        const step = (/** @type {Ask} */ ask) => ask.step === call.step;
        if (!QUESTIONS.includes(call.tool)) shown.push(this.#tool(`t ${message.turn} ${call.call}`, call, tool, asks.some(step)));
        else if (!asks.some(step) && tool?.state === 'failed') shown.push(this.#note(`q ${call.step}`, `A question was not asked: ${show(tool.result)}`));
        put(step);
      }
    }
    if (run.partial !== null && run.partial.text !== '') {
      const bubble = this.#bubble(`m ${run.partial.turn} assistant`, 'assistant', run.partial.text);
      shown.push(bubble);
    }
    put((ask) => !placed.has(ask));
    const end = this.#end(run);
    if (end !== null) shown.push(end);
    arrange(this.element, shown);
  }

  /**
   * @template {HTMLElement} E
   * @param {string} key
   * @param {() => E} make
   * @returns {E}
   */
  #part(key, make) {
    const known = this.#parts.get(key);
    if (known !== undefined) return /** @type {E} */ (known);
    const made = make();
    this.#parts.set(key, made);
    return made;
  }

  /**
   * @param {string} key
   * @param {'user' | 'assistant'} role
   * @param {string} text
   */
  #bubble(key, role, text) {
    const bubble = this.#part(key, () =>
      h('div', { class: `bubble ${role}` }, h('span', { class: 'unseen' }, role === 'user' ? 'You: ' : 'Agent: '), h('p', {})),
    );
    if (bubble.lastElementChild) setText(bubble.lastElementChild, text);
    return bubble;
  }

  /** @param {Ask} ask */
  #ask(ask) {
    const element = this.#part(`a ${askKey(ask)}`, () => /** @type {AskwellAsk} */ (document.createElement('askwell-ask')));
    element.port = this.#port;
    element.ask = ask;
    return element;
  }

  /**
   * @param {string} key
   * @param {Call} call
   * @param {Tool | undefined} tool
   * @param {boolean} asked whether the call waits, or waited, for a person
   */
  #tool(key, call, tool, asked) {
    const part = this.#part(key, () =>
      h('details', { class: 'tool' }, h('summary', {}, h('code', {}, call.tool), ' ', h('span', {})),
        h('pre', { class: 'code', tabindex: 0, 'aria-label': 'Input' }, show(call.input, true)),
        h('pre', { class: 'code', tabindex: 0, 'aria-label': 'Result', hidden: true })),
    );
    const words = { started: 'is at work…', done: 'done', failed: 'failed' };
    const [word] = part.getElementsByTagName('span');
    if (word) setText(word, tool ? words[tool.state] : asked ? 'asks first' : '');
    part.dataset['state'] = tool?.state ?? '';
    const result = part.lastElementChild;
    if (result instanceof HTMLElement && tool?.result !== undefined) {
      setText(result, show(tool.result, true));
      result.hidden = false;
    }
    return part;
  }

  /**
   * @param {string} key
   * @param {string} text
   */
  #note(key, text) {
    const note = this.#part(key, () => h('p', { class: 'note' }));
    setText(note, text);
    return note;
  }

  /** @param {Run} run */
  #end(run) {
    if (run.status === 'queued') return this.#note('end', 'Waiting for a worker…');
    if (run.status === 'running') return run.partial?.text ? null : this.#part('thinking', () => h('p', { class: 'note thinking' }, 'Working…'));
    if (run.status === 'stalled') return this.#note('end', `Waiting for a worker that can go on${run.reason ? `: ${run.reason}` : ''}`);
    if (run.status === 'cancelled') return this.#note('end', `Cancelled${run.reason && run.reason !== 'cancelled' ? `: ${run.reason}` : ''}`);
    if (run.status === 'succeeded') return this.#note('end', 'Finished');
    if (run.status !== 'failed') return null;
    const part = this.#part('failed', () =>
      h('div', { class: 'failed' }, h('p', {}), h('button', { type: 'button', onclick: () => this.#retry(run.run) }, 'Try again')),
    );
    if (part.firstElementChild) setText(part.firstElementChild, `Failed${run.reason ? `: ${run.reason}` : ''}`);
    return part;
  }
}

/**
 * Brings the children into order without touching those that are in place: an element that is
 * moved would lose the focus and a text under composition.
 * @param {Element} parent
 * @param {readonly Element[]} wanted
 */
export function arrange(parent, wanted) {
  const keep = new Set(wanted);
  for (const child of [...parent.children]) if (!keep.has(child)) child.remove();
  let at = parent.firstElementChild;
  for (const element of wanted) {
    if (element === at) at = at.nextElementSibling;
    else parent.insertBefore(element, at);
  }
}

/**
 * What to call a run's state in a list.
 * @param {Run} run
 * @param {boolean} asks whether it waits for an answer
 * @returns {string}
 */
export function statusText(run, asks) {
  if (asks) return 'waits for you';
  if (run.status === 'succeeded') return 'finished';
  return isLive(run) ? 'working' : run.status;
}
