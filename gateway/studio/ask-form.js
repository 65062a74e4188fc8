// @ts-check
// The form for a shape, drawn from the plan of form.js. It shows what is wrong at the field,
// keeps every text, and writes nothing that the person has not seen.

import { h, newId, sendsOnEnter, setText, textBox } from './dom.js';
import { collect, fieldAt, plan } from './form.js';
import { show } from './json.js';
import { ruleText } from './refusal.js';

/** @import { Json } from './wire.js' */
/** @import { Control, Send } from './ask.js' */
/** @import { Entry, Field } from './form.js' */

/**
 * @param {Json} shape
 * @param {Send} send
 * @returns {Control}
 */
export function formControl(shape, send) {
  const form = plan(shape);
  const whole = h('p', { class: 'field-error' });
  const clear = () => {
    setText(whole, '');
    for (const part of parts) part.error('');
  };
  const submit = () => {
    if (button.disabled) return;
    clear();
    const { data, errors } = collect(form, parts.map((part) => part.entry()));
    if (errors === null) return void send(data);
    for (const { field, rule } of errors) parts[field]?.error(ruleText(rule, form.fields[field]?.shape));
    parts[errors[0]?.field ?? 0]?.focus();
  };
  const changed = () => {
    // A single value has no answer before it is given; an object may be fine as it stands.
    const [entry] = parts.map((part) => part.entry());
    button.disabled = !form.object && entry !== undefined && empty(entry);
  };
  const button = h('button', { type: 'button', class: 'primary', onclick: submit }, 'Send');
  const parts = form.fields.map((field) => fieldPart(field, form.object, submit, changed));
  changed();

  return {
    element: h('div', { class: 'form' }, ...parts.map((part) => part.element), whole, h('div', { class: 'row end' }, button)),
    misfits: (errors) => {
      for (const { pointer, rule } of errors) {
        const at = fieldAt(form, pointer);
        const missing = rule === 'required' && at < 0 ? parts.filter((part, i) => form.fields[i]?.required && empty(part.entry())) : [];
        const part = parts[at];
        if (part !== undefined) part.error(ruleText(rule, inner(form.fields[at], form.object, pointer)));
        else if (missing.length > 0) missing.forEach((one) => one.error(ruleText(rule)));
        else setText(whole, ruleText(rule));
      }
      return errors.length > 0;
    },
    clear,
  };
}

/**
 * The shape that a rule's text may quote: the field's own, but nothing for a place inside it.
 * @param {Field | undefined} field
 * @param {boolean} object
 * @param {string} pointer
 */
function inner(field, object, pointer) {
  return pointer.split('/').length > (object ? 2 : 1) ? {} : field?.shape;
}

/** @param {Entry} entry */
function empty(entry) {
  return entry.text.trim() === '' && entry.pick === null && !entry.none && entry.broken !== true;
}

/**
 * @param {Field} field
 * @param {boolean} named whether it is one of several, with a name
 * @param {() => void} submit
 * @param {() => void} changed
 */
function fieldPart(field, named, submit, changed) {
  const error = h('p', { class: 'field-error', id: newId() });
  const hint = h('p', { class: 'hint', id: newId() }, field.hint);
  const drawn = drawField(field, submit, `${hint.id} ${error.id}`);
  const none = field.nullable ? h('input', { type: 'checkbox', id: newId() }) : null;
  if (none !== null) none.checked = field.start.none;
  const group = field.widget === 'boolean';
  const label = named || field.label !== '' ? field.label : 'Your answer';
  const mark = named && !field.required ? h('span', { class: 'optional' }, ' optional') : null;
  const element = h(group ? 'fieldset' : 'div', { class: 'field', 'data-field': field.name },
    h(group ? 'legend' : 'label', group ? {} : { for: drawn.focus.id }, label, mark),
    field.hint === '' ? null : hint,
    ...drawn.elements,
    none === null ? null : h('label', { class: 'none', for: none.id }, none, 'No value'),
    field.filled ? h('p', { class: 'hint filled' }, 'Filled in for you; sent as it stands here.') : null,
    field.widget === 'json' && Object.keys(field.shape).length > 0
      ? h('details', {}, h('summary', {}, 'What is expected'), h('pre', { class: 'code', tabindex: 0 }, show(field.shape, true)))
      : null,
    error,
  );
  element.addEventListener('input', () => {
    setText(error, '');
    drawn.focus.removeAttribute('aria-invalid');
    changed();
  });
  return {
    element,
    entry: () => ({ ...drawn.entry(), none: none?.checked === true }),
    focus: () => drawn.focus.focus(),
    error: (/** @type {string} */ text) => {
      setText(error, text);
      element.classList.toggle('wrong', text !== '');
      if (text === '') drawn.focus.removeAttribute('aria-invalid');
      else drawn.focus.setAttribute('aria-invalid', 'true');
    },
  };
}

/**
 * @typedef {{ elements: HTMLElement[], focus: HTMLElement, entry: () => Omit<Entry, 'none'> }} Drawn
 */

/**
 * @param {Field} field
 * @param {() => void} submit
 * @param {string} described ids of the hint and the error
 * @returns {Drawn}
 */
function drawField(field, submit, described) {
  const common = { id: newId(), 'aria-describedby': described, 'aria-required': field.required ? 'true' : 'false' };
  switch (field.widget) {
    case 'boolean':
      return drawBoolean(field);
    case 'select': {
      const options = field.options.map(({ label }, at) => h('option', { value: at }, label));
      const select = h('select', common, h('option', { value: '' }, field.required ? 'Choose…' : '—'), ...options);
      select.value = field.start.pick === null ? '' : String(field.start.pick);
      return { elements: [select], focus: select, entry: () => ({ text: '', pick: select.value === '' ? null : Number(select.value) }) };
    }
    case 'lines': {
      const box = textBox(common, submit);
      box.value = field.start.text;
      return { elements: [box], focus: box, entry: () => ({ text: box.value, pick: null }) };
    }
    case 'json': {
      // Enter breaks the line here: JSON is written over several.
      const box = h('textarea', { ...common, rows: 4, class: 'code', spellcheck: 'false', autocomplete: 'off' });
      box.value = field.start.text;
      return { elements: [box], focus: box, entry: () => ({ text: box.value, pick: null }) };
    }
    default: {
      const number = field.widget === 'number';
      const input = h('input', {
        ...common, type: field.input, autocomplete: 'off',
        inputmode: number ? (field.shape['type'] === 'integer' ? 'numeric' : 'decimal') : undefined,
        onkeydown: (/** @type {KeyboardEvent} */ event) => {
          if (sendsOnEnter(event)) submit();
        },
      });
      input.value = field.start.text;
      return { elements: [input], focus: input, entry: () => ({ text: input.value, pick: null, broken: input.validity.badInput }) };
    }
  }
}

/**
 * @param {Field} field
 * @returns {Drawn}
 */
function drawBoolean(field) {
  const name = newId();
  const inputs = ['Yes', 'No'].map((label, at) => {
    const input = h('input', { type: 'radio', name, id: newId() });
    input.checked = field.start.pick === at;
    return { input, element: h('label', { class: 'choice', for: input.id }, input, h('span', {}, label)) };
  });
  const clear = h('button', {
    type: 'button', class: 'quiet',
    onclick: () => {
      for (const { input } of inputs) input.checked = false;
      clear.hidden = true;
      clear.dispatchEvent(new Event('input', { bubbles: true }));
    },
  }, 'Clear');
  clear.hidden = field.required || field.start.pick === null;
  for (const { input } of inputs) input.addEventListener('input', () => (clear.hidden = field.required));
  const picked = () => inputs.findIndex(({ input }) => input.checked);
  return {
    elements: [h('div', { class: 'choices' }, ...inputs.map(({ element }) => element), clear)],
    focus: /** @type {HTMLElement} */ (inputs[0]?.input),
    entry: () => ({ text: '', pick: picked() < 0 ? null : picked() }),
  };
}
