// @ts-check
// The box for a message, the line above it that says what goes on, and the way to cancel.

import { h, setText, textBox } from './dom.js';

/**
 * @typedef {{ agent: string, asks: boolean, live: boolean, first: boolean, ready: boolean, another: boolean }} Situation
 *   `asks`: an ask is open here; `live`: a run is; `first`: nothing was written yet; `ready`: a
 *   message can be sent; `another`: a message begins a conversation of its own
 */

/** The foot of the page. */
export class Composer {
  #send;
  #busy = false;
  #ready = false;
  #status = h('span', { class: 'now' });
  #cancel = h('button', { type: 'button', class: 'quiet' }, 'Cancel run');
  #line = h('div', { class: 'status' }, this.#status, this.#cancel);
  #problem = h('p', { class: 'problem', role: 'alert' });
  #box = textBox({ 'aria-label': 'Message', placeholder: 'Write a message' }, () => void this.#submit());
  #button = h('button', { type: 'button', class: 'primary', onclick: () => void this.#submit() }, 'Send');
  #row = h('div', { class: 'row' }, this.#box, this.#button);
  element = h('div', { class: 'composer' }, this.#line, this.#problem, this.#row);

  /**
   * @param {(text: string) => Promise<boolean>} send
   * @param {() => void} cancel
   */
  constructor(send, cancel) {
    this.#send = send;
    this.#cancel.addEventListener('click', cancel);
    this.#box.addEventListener('input', () => this.#able());
  }

  /** @param {Situation} now */
  render({ agent, asks, live, first, ready, another }) {
    this.#ready = ready && !asks;
    this.#line.hidden = !live;
    setText(this.#status, asks ? 'Answer above to go on. Take your time.' : 'The agent is at work.');
    // While something is asked, a text written here could be meant as the answer, and would not be.
    this.#row.hidden = asks;
    this.#box.placeholder = live ? 'A message here waits until this run is over' : first && agent ? `Message to ${agent}` : another ? 'Write a new message' : 'Continue the conversation';
    this.#able();
  }

  /** @param {string} text empty takes it away */
  problem(text) {
    setText(this.#problem, text);
  }

  /** Puts the cursor into the box, after the person went to another conversation. */
  focus() {
    if (matchMedia('(hover: hover)').matches) this.#box.focus({ preventScroll: true });
  }

  #able() {
    this.#button.disabled = !this.#ready || this.#box.value.trim() === '';
  }

  async #submit() {
    const text = this.#box.value;
    if (this.#busy || !this.#ready || text.trim() === '') return;
    this.#busy = true;
    this.element.toggleAttribute('data-busy', true);
    const sent = await this.#send(text);
    this.#busy = false;
    this.element.toggleAttribute('data-busy', false);
    // What was typed in the meantime is the person's next message.
    if (sent && this.#box.value === text) this.#box.value = '';
    this.#able();
  }
}
