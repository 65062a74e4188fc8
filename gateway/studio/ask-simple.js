// @ts-check
// The controls for a question with choices, an open question, an approval and a redo.

import { h, newId, setText, textBox } from './dom.js';
import { parse, show } from './json.js';
import { ruleText } from './refusal.js';

/** @import { Ask, Json } from './wire.js' */
/** @import { Control, Send } from './ask.js' */

/**
 * One press is the answer.
 * @param {readonly Json[]} choices
 * @param {Send} send
 * @returns {Control}
 */
export function choicesControl(choices, send) {
  const buttons = choices.map((choice) =>
    h('button', { type: 'button', class: typeof choice === 'string' ? 'choice' : 'choice code', onclick: () => void send(choice) }, show(choice)),
  );
  return { element: h('div', { class: 'choices', role: 'group', 'aria-label': 'Choices' }, ...buttons) };
}

/**
 * @param {Send} send
 * @returns {Control}
 */
export function textControl(send) {
  const error = h('p', { class: 'field-error', id: newId() });
  const submit = () => {
    // A blank text is no answer (SPEC 3.1): nothing is sent.
    if (box.value.trim() !== '') void send(box.value);
  };
  const box = textBox({ 'aria-label': 'Your answer', placeholder: 'Your answer', 'aria-describedby': error.id }, submit);
  const button = h('button', { type: 'button', class: 'primary', disabled: true, onclick: submit }, 'Send');
  box.addEventListener('input', () => {
    button.disabled = box.value.trim() === '';
  });
  return {
    element: h('div', { class: 'open-text' }, h('div', { class: 'row' }, box, button), error),
    misfits: ([first]) => {
      setText(error, first ? ruleText(first.rule) : '');
      return first !== undefined;
    },
    clear: () => setText(error, ''),
  };
}

/**
 * @param {Ask} ask
 * @param {Send} send
 * @returns {Control}
 */
export function approvalControl(ask, send) {
  const word = ask.kind === 'redo' ? 'Do it again' : 'Approve';
  const input = show(ask.input, true);
  if (ask.editable !== true) {
    return {
      element: h('div', { class: 'approval' },
        h('pre', { class: 'code', tabindex: 0, 'aria-label': `Input of ${ask.tool}` }, input),
        h('button', { type: 'button', class: 'primary', onclick: () => void send() }, word),
      ),
    };
  }
  const error = h('p', { class: 'field-error', id: newId() });
  const box = h('textarea', { class: 'code', rows: 4, spellcheck: 'false', 'aria-label': `Input of ${ask.tool}`, 'aria-describedby': error.id });
  box.value = input;
  const submit = () => {
    if (box.value === input) return void send();
    try {
      void send(parse(box.value));
    } catch {
      setText(error, ruleText('json'));
    }
  };
  return {
    element: h('div', { class: 'approval' }, h('p', { class: 'hint' }, 'You may change it before you approve.'), box, error,
      h('button', { type: 'button', class: 'primary', onclick: submit }, word)),
    misfits: (errors) => {
      setText(error, errors.map(({ pointer, rule }) => `${pointer === '' ? '' : `${pointer}: `}${ruleText(rule)}`).join(' '));
      return errors.length > 0;
    },
    clear: () => setText(error, ''),
  };
}
