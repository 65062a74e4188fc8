// @ts-check
// A new conversation: which agent, and a first message to try.

import { h, newId } from './dom.js';

/** @import { Agent } from './wire.js' */

/**
 * First messages for the demo agents; any other agent gets a general one.
 * @type {Readonly<Record<string, string>>}
 */
const FIRST = {
  tshirt: 'A T-shirt, please',
  support: 'My parcel has not arrived',
  order: 'I want to order T-shirts',
};

/** The choice of an agent. */
export class Welcome {
  /** @type {Agent | null} */
  agent = null;
  #send;
  #agents = h('div', { class: 'agents', role: 'radiogroup', 'aria-label': 'Agent' });
  #first = h('div', { class: 'first' });
  element = h('div', { class: 'welcome' },
    h('h1', {}, 'Choose an agent'),
    h('p', { class: 'lead' }, 'Write it a message. It may stop to ask you something: answer right here and it goes on, even tomorrow or from another device.'),
    this.#agents,
    this.#first,
  );

  /** @param {(text: string) => void} send */
  constructor(send) {
    this.#send = send;
  }

  /** @param {readonly Agent[]} agents */
  setAgents(agents) {
    const name = newId();
    this.agent = agents.find((one) => one.name === this.agent?.name) ?? agents[0] ?? null;
    this.#agents.replaceChildren(
      ...agents.map((agent) => {
        const input = h('input', { type: 'radio', name, id: newId() });
        input.checked = agent === this.agent;
        input.addEventListener('change', () => {
          this.agent = agent;
          this.#suggest();
        });
        return h('label', { class: 'agent', for: input.id }, input,
          h('span', { class: 'name' }, agent.name),
          h('span', { class: 'about' }, agent.description || 'No description'),
          agent.live ? null : h('span', { class: 'hint' }, 'No worker is running it now; a message waits for one.'));
      }),
    );
    if (agents.length === 0) this.#agents.replaceChildren(h('p', { class: 'note' }, 'There is no agent yet that you may start. This page keeps looking.'));
    this.#suggest();
  }

  #suggest() {
    if (this.agent === null) return this.#first.replaceChildren();
    const text = FIRST[this.agent.name] ?? 'Hello! What can you do?';
    const button = h('button', { type: 'button', class: 'choice', onclick: () => this.#send(text) }, text);
    this.#first.replaceChildren(h('span', { class: 'hint' }, 'Try it with'), button);
  }
}
