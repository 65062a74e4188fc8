// @ts-check
// <askwell-ask>: one ask as a compact control, from its opening to its settlement. Set `port`
// and `ask`; set `ask` again when it changes. What the person typed is never thrown away while
// the ask is open, focus is never taken, and refusing is possible whatever was asked.

import { approvalControl, choicesControl, textControl } from './ask-simple.js';
import { formControl } from './ask-form.js';
import { severalControl } from './ask-several.js';
import { h, left, newId, setText } from './dom.js';
import { isObject, show } from './json.js';
import { answered, questionsOf } from './questions.js';
import { explain, Refusal } from './refusal.js';

/** @import { Ask, Json, Misfit, Port } from './wire.js' */

/**
 * @typedef {object} Control the part that differs by kind
 * @property {Element} element
 * @property {(ask: Ask) => void} [update] the ask changed, as by a draft
 * @property {(errors: readonly Misfit[]) => boolean} [misfits] shows them at their fields; false: shows none
 * @property {() => void} [clear] takes shown misfits away
 *
 * @typedef {(data?: Json, n?: number) => Promise<boolean>} Send false: it was turned down, and is shown
 */

/** An ask on a page. */
export class AskwellAsk extends HTMLElement {
  /** @type {Port | null} */
  port = null;
  /** @type {Ask | null} */
  #ask = null;
  /** @type {Control | null} */
  #control = null;
  /** A second press while the first is under way sends nothing. */
  #busy = false;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #ticking;
  #problem = h('p', { class: 'problem', role: 'alert' });
  #time = h('time', { class: 'deadline' });

  get ask() {
    return this.#ask;
  }

  set ask(ask) {
    const before = this.#ask;
    this.#ask = ask;
    if (ask === null || ask === before) return;
    if (before === null || before.id !== ask.id || before.state !== ask.state) this.#draw(ask, before);
    else this.#control?.update?.(ask);
  }

  connectedCallback() {
    this.#tick();
    this.#ticking = setInterval(() => this.#tick(), 1000);
  }

  disconnectedCallback() {
    clearInterval(this.#ticking);
  }

  /**
   * @param {Ask} ask
   * @param {Ask | null} before
   */
  #draw(ask, before) {
    const inside = this.contains(document.activeElement);
    this.dataset['state'] = ask.state;
    this.dataset['kind'] = ask.kind;
    if (ask.state === 'settled') {
      this.#control = null;
      clearInterval(this.#ticking);
      const summary = settledView(ask, this.port?.device ?? '');
      this.replaceChildren(summary);
      // The pressed button is gone: keep the keyboard's place in the page.
      if (inside && before?.id === ask.id) summary.focus({ preventScroll: true });
      return;
    }
    const heading = newId();
    this.#control = this.#controlFor(ask);
    const title = titleOf(ask);
    this.replaceChildren(
      h('section', { class: 'ask', 'aria-labelledby': heading },
        h('header', {}, h('span', { class: 'ask-kind', id: title === '' ? heading : undefined }, kindText(ask)), this.#time),
        title === '' ? null : h('h3', { id: heading, class: 'ask-title' }, title),
        this.#control.element,
        this.#problem,
        this.#refusing(ask),
      ),
    );
    setText(this.#problem, '');
    this.#tick();
  }

  /** @param {Ask} ask */
  #controlFor(ask) {
    const send = this.#sender();
    if (ask.kind === 'approval' || ask.kind === 'redo') return approvalControl(ask, send);
    if (ask.kind === 'ask_question') return severalControl(ask, send);
    const input = isObject(ask.input) ? ask.input : {};
    if (Array.isArray(input['choices']) && input['choices'].length > 0) return choicesControl(input['choices'], send);
    return input['shape'] === undefined ? textControl(send) : formControl(input['shape'], send);
  }

  /** @returns {Send} */
  #sender() {
    return (data, n) =>
      this.#once((port, { run, step, repeat }) =>
        port.approve({ run, step, repeat, ...(n === undefined ? {} : { n }), ...(data === undefined ? {} : { data }) }),
      );
  }

  /**
   * @param {(port: Port, ask: Ask) => Promise<unknown>} act
   * @returns {Promise<boolean>}
   */
  async #once(act) {
    const { port } = this;
    const ask = this.#ask;
    if (this.#busy || port === null || ask === null || ask.state !== 'open') return false;
    this.#setBusy(true);
    setText(this.#problem, '');
    this.#control?.clear?.();
    try {
      await act(port, ask);
      return true;
    } catch (fault) {
      const misfits = fault instanceof Refusal ? fault.errors : [];
      const shown = misfits.length > 0 && this.#control?.misfits?.(misfits) === true;
      setText(this.#problem, shown ? '' : explain(fault));
      return false;
    } finally {
      this.#setBusy(false);
    }
  }

  /** @param {boolean} busy */
  #setBusy(busy) {
    this.#busy = busy;
    // Not `disabled`, which would drop the keyboard's focus to the top of the page.
    this.toggleAttribute('data-busy', busy);
    this.setAttribute('aria-busy', String(busy));
  }

  /** @param {Ask} ask */
  #refusing(ask) {
    const reason = h('input', { type: 'text', id: newId(), maxlength: 1000, autocomplete: 'off' });
    const row = h('label', { class: 'reason', hidden: true, for: reason.id }, 'Reason (optional)', reason);
    const refuse = () =>
      this.#once((port, { run, step, repeat }) =>
        port.refuse({ run, step, repeat, ...(reason.value.trim() === '' ? {} : { reason: reason.value }) }),
      );
    const why = h('button', {
      type: 'button', class: 'quiet', 'aria-expanded': 'false',
      onclick: () => {
        row.hidden = !row.hidden;
        if (row.hidden) reason.value = '';
        why.setAttribute('aria-expanded', String(!row.hidden));
        setText(why, row.hidden ? 'Add a reason' : 'Without a reason');
        if (!row.hidden) reason.focus();
      },
    }, 'Add a reason');
    const word = ask.kind === 'redo' ? 'Do not repeat it' : 'Refuse';
    return h('footer', {}, row, h('button', { type: 'button', class: 'refuse', onclick: refuse }, word), why);
  }

  #tick() {
    if (this.#ask === null || this.#ask.state !== 'open') return;
    const ms = Date.parse(this.#ask.deadline) - (this.port?.now() ?? Date.now());
    setText(this.#time, Number.isFinite(ms) ? left(ms) : '');
    this.#time.dateTime = this.#ask.deadline;
    this.#time.classList.toggle('soon', ms < 60_000);
  }
}

/** @param {Ask} ask */
function kindText(ask) {
  if (ask.kind === 'approval') return 'Needs your approval';
  if (ask.kind === 'redo') return 'Needs your decision';
  return ask.questions > 1 ? `${ask.questions} questions for you` : 'Question for you';
}

/**
 * What stands above the control; nothing where its own questions do.
 * @param {Ask} ask
 */
function titleOf(ask) {
  if (ask.kind === 'approval') return `May ${ask.tool} be used?`;
  if (ask.kind === 'redo') return `It is not known whether ${ask.tool} was done. Do it again?`;
  const input = isObject(ask.input) ? ask.input : {};
  return ask.kind === 'question' ? show(input['question'] ?? '') : '';
}

/**
 * @param {Ask} ask
 * @param {string} device this device's name
 */
function settledView(ask, device) {
  const { outcome, by } = ask;
  const here = by !== null && by.device === device;
  const who = here || by === null ? '' : ' on another device';
  const heads = {
    answered: ask.kind === 'approval' || ask.kind === 'redo' ? `Approved${who}` : `Answered${who}`,
    refused: `Refused${who}`,
    expired: 'Nobody answered in time',
    cancelled: 'Closed: the run ended',
    superseded: 'Closed: a newer message took its place',
  };
  const lines = outcome === 'answered' ? answered(ask) : [];
  const list = h('dl', {});
  for (const { question, answer } of lines) {
    if (question !== '') list.append(h('dt', {}, question));
    list.append(h('dd', {}, answer));
  }
  return h('section', { class: `settled ${outcome ?? ''}`, tabindex: -1 },
    h('p', { class: 'ask-title' }, titleOf(ask) || (lines.length > 0 ? '' : questionsOf(ask.input).map((one) => one.question).join(' '))),
    lines.length > 0 ? list : null,
    h('p', { class: 'outcome' }, (outcome === null ? 'Closed' : heads[outcome]) + (ask.reason ? `: ${ask.reason}` : '')),
  );
}

customElements.define('askwell-ask', AskwellAsk);
