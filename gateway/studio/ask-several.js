// @ts-check
// The control for `ask_question`: every question with its choices and, always, a box for own
// words after them. Nothing goes out before Send. Both a choice and own words may stand.

import { h, newId, setText, textBox } from './dom.js';
import { equal } from './json.js';
import { answerOf, givenBy, questionsOf } from './questions.js';
import { ruleText } from './refusal.js';

/** @import { Ask, Json } from './wire.js' */
/** @import { Control, Send } from './ask.js' */
/** @import { Choice, Given, Question } from './questions.js' */

/**
 * @param {Ask} ask
 * @param {Send} send
 * @returns {Control}
 */
export function severalControl(ask, send) {
  const questions = questionsOf(ask.input);
  const progress = h('p', { class: 'progress', role: 'status' });
  const submit = () => {
    const answers = parts.map((part) => part.answer());
    const missing = answers.findIndex((answer) => answer === null);
    if (missing < 0) return void send({ answers: /** @type {Json[]} */ (answers) });
    parts.forEach((part, at) => part.error(answers[at] === null ? 'Pick one, or write your own words.' : ''));
    parts[missing]?.focus();
  };
  const keep = async () => {
    // One at a time, and only while others are missing: the last missing one settles the ask.
    for (const [at, part] of parts.entries()) {
      const answer = part.answer();
      if (answer === null || equal(answer, drafts[part.id])) continue;
      if (!(await send(answer, at + 1))) return;
    }
    setText(progress, 'Saved. You can go on later, on any device.');
  };
  let drafts = ask.drafts;
  const changed = () => {
    const given = parts.filter((part) => part.answer() !== null).length;
    setText(progress, `${given} of ${parts.length} answered`);
    // It stays pressable: pressed too early, it shows which answer is missing.
    sending.classList.toggle('incomplete', given < parts.length);
    saving.hidden = given === 0 || given === parts.length;
  };
  const sending = h('button', { type: 'button', class: 'primary', onclick: submit }, sendWord(questions.length));
  const saving = h('button', { type: 'button', class: 'quiet', hidden: true, onclick: () => void keep() }, 'Save for later');
  const parts = questions.map((question) => questionPart(question, ask.drafts[question.id], submit, changed));
  changed();

  return {
    element: h('div', { class: 'several' }, ...parts.map((part) => part.element), h('div', { class: 'row end' }, progress, saving, sending)),
    update: (next) => {
      for (const part of parts) {
        const draft = next.drafts[part.id];
        if (draft !== undefined && !equal(draft, drafts[part.id])) part.draft(draft);
      }
      drafts = next.drafts;
      changed();
    },
    misfits: (errors) => {
      let shown = false;
      for (const { question, pointer, rule } of errors) {
        const at = Number(/^\/answers\/(\d+)/.exec(pointer)?.[1] ?? NaN);
        const part = parts.find((one) => one.id === question) ?? parts[at];
        part?.error(ruleText(rule));
        shown ||= part !== undefined;
      }
      return shown;
    },
    clear: () => parts.forEach((part) => part.error('')),
  };
}

/** @param {number} count */
const sendWord = (count) => (count > 1 ? 'Send answers' : 'Send');

/**
 * @param {Question} question
 * @param {Json | undefined} draft
 * @param {() => void} submit
 * @param {() => void} changed
 */
function questionPart(question, draft, submit, changed) {
  const name = newId();
  const error = h('p', { class: 'field-error', id: newId() });
  const inputs = question.choices.map((choice) => choiceInput(question, choice, name));
  const box = textBox({
    'aria-label': `Your own words: ${question.question}`, 'aria-describedby': error.id,
    placeholder: question.choices.length > 0 ? 'Or in your own words…' : 'Your answer',
  }, submit);
  /** @returns {Given} */
  const given = () => ({
    picked: inputs.filter(({ input }) => input.checked).map(({ value }) => value),
    text: box.value,
  });
  /** Whether the person changed it here: then a draft from elsewhere does not overwrite it. */
  let own = false;
  /** @param {Json | undefined} answer */
  const set = (answer) => {
    const { picked, text } = givenBy(question, answer);
    for (const { input, value } of inputs) input.checked = picked.includes(value);
    box.value = text;
  };
  set(draft);
  const element = h('fieldset', { class: 'question', 'aria-describedby': error.id },
    h('legend', {}, question.header === '' ? null : h('span', { class: 'tag' }, question.header), question.question),
    question.multiple ? h('p', { class: 'hint' }, 'Choose any number') : null,
    h('div', { class: 'choices' }, ...inputs.map(({ element: one }) => one)),
    box,
    error,
  );
  element.addEventListener('input', () => {
    own = true;
    setText(error, '');
    changed();
  });
  // A choice taken by mistake can be given back: pressing it once more takes it off.
  if (!question.multiple) {
    let before = inputs.find(({ input }) => input.checked)?.input ?? null;
    for (const { input } of inputs) {
      input.addEventListener('click', () => {
        if (before === input) {
          input.checked = false;
          before = null;
          changed();
        } else before = input;
      });
    }
  }
  return {
    id: question.id,
    element,
    answer: () => answerOf(question, given()),
    draft: (/** @type {Json} */ answer) => {
      if (!own) set(answer);
    },
    error: (/** @type {string} */ text) => {
      setText(error, text);
      element.classList.toggle('wrong', text !== '');
    },
    focus: () => (inputs[0]?.input ?? box).focus(),
  };
}

/**
 * @param {Question} question
 * @param {Choice} choice
 * @param {string} name
 */
function choiceInput(question, choice, name) {
  const input = h('input', { type: question.multiple ? 'checkbox' : 'radio', name, id: newId() });
  const label = h('label', { class: 'choice', for: input.id }, input,
    h('span', {}, choice.label),
    choice.description === '' ? null : h('small', {}, choice.description),
  );
  return { element: label, input, value: choice.value };
}
