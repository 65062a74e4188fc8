// @ts-check
// From a shape to a form and back (SPEC 3.5, the page's part). Pure: no element is touched.
// A form never writes by itself: what nobody filled in is left out. The gateway decides; what
// is checked here (type, required, enum, bounds, formats) is never stricter than it is.

import { equal, isObject, isWhole, number, parse, show } from './json.js';

/** @import { Json, JsonObject } from './wire.js' */

/**
 * @typedef {'line' | 'lines' | 'number' | 'boolean' | 'select' | 'json'} Widget
 * @typedef {object} Field
 * @property {string} name the property, empty for a shape that is no object
 * @property {string} label
 * @property {string} hint
 * @property {boolean} required
 * @property {boolean} nullable `null` can be given with a box of its own
 * @property {Widget} widget
 * @property {string} input the type of an `<input>`
 * @property {readonly { label: string, value: Json }[]} options of a select
 * @property {JsonObject} shape
 * @property {Entry} start what stands there at first: nothing, or the default
 * @property {boolean} filled whether `start` is a default
 *
 * @typedef {{ text: string, pick: number | null, none: boolean, broken?: boolean }} Entry
 *   what stands in a field: its text, the chosen option (boolean: 0 yes, 1 no), the null box, and
 *   whether the browser holds a text that it does not hand out (a half-typed date)
 * @typedef {{ object: boolean, fields: readonly Field[] }} Plan
 * @typedef {{ data: Json, errors: null } | { data: undefined, errors: readonly { field: number, rule: string }[] }} Collected
 */

/** @type {Entry} */
const EMPTY = Object.freeze({ text: '', pick: null, none: false });

/** Keywords beside which an object's properties still tell all that may be given. */
const PLAIN_OBJECT = new Set([
  'type', 'properties', 'required', 'additionalProperties', 'title', 'description', 'default',
  'examples', '$schema', '$defs', 'definitions', '$comment', 'minProperties', 'maxProperties',
]);

/** How far a chain of references is followed before the field becomes a box for JSON. */
const HOPS = 8;

/**
 * The form for a shape.
 * @param {Json} shape
 * @returns {Plan}
 */
export function plan(shape) {
  const root = isObject(shape) ? shape : {};
  const properties = root['properties'];
  const required = Array.isArray(root['required']) ? root['required'] : [];
  if (
    isObject(properties) &&
    Object.keys(properties).length > 0 &&
    (root['type'] === undefined || root['type'] === 'object') &&
    Object.keys(root).every((key) => PLAIN_OBJECT.has(key)) &&
    required.every((name) => Object.hasOwn(properties, String(name)))
  ) {
    const fields = Object.entries(properties).map(([name, part]) => fieldOf(root, name, part, required.includes(name)));
    return { object: true, fields };
  }
  return { object: false, fields: [fieldOf(root, '', root, true)] };
}

/**
 * @param {JsonObject} root
 * @param {string} name
 * @param {Json} part
 * @param {boolean} required
 * @returns {Field}
 */
function fieldOf(root, name, part, required) {
  const given = followed(root, part);
  const { shape, nullable } = withoutNull(given);
  const options = optionsOf(shape);
  const { widget, input } = options ? { widget: /** @type {Widget} */ ('select'), input: '' } : widgetOf(shape);
  const about = isObject(part) ? { ...given, ...part } : given;
  const field = {
    name,
    label: typeof about['title'] === 'string' ? about['title'] : name,
    hint: hintOf(about, shape, widget),
    required,
    nullable: nullable && widget !== 'json' && widget !== 'select',
    widget,
    input,
    options: options ? (nullable ? [...options, { label: 'none', value: null }] : options) : [],
    shape: widget === 'json' ? given : shape,
    start: EMPTY,
    filled: false,
  };
  const start = about['default'] === undefined ? null : entryOf(field, about['default']);
  return start === null ? field : { ...field, start, filled: true };
}

/**
 * @param {JsonObject} root
 * @param {Json} part
 * @returns {JsonObject}
 */
function followed(root, part) {
  let at = part;
  for (let hop = 0; hop < HOPS && isObject(at) && typeof at['$ref'] === 'string'; hop += 1) {
    /** @type {Json | undefined} */
    let target = root;
    for (const name of at['$ref'].replace(/^#\/?/, '').split('/').filter((one) => one !== '')) {
      /** @type {string} */
      const key = decodeURIComponent(name).replaceAll('~1', '/').replaceAll('~0', '~');
      target = isObject(target) && Object.hasOwn(target, key) ? target[key] : undefined;
    }
    if (target === undefined) return {};
    at = target;
  }
  return isObject(at) ? at : {};
}

/**
 * Takes `null` out of a shape that allows it beside one other thing.
 * @param {JsonObject} shape
 * @returns {{ shape: JsonObject, nullable: boolean }}
 */
function withoutNull(shape) {
  const { type } = shape;
  if (Array.isArray(type) && type.includes('null') && type.length === 2 && shape['enum'] === undefined) {
    return { shape: { ...shape, type: type.find((one) => one !== 'null') ?? 'null' }, nullable: true };
  }
  const key = ['anyOf', 'oneOf'].find((one) => Array.isArray(shape[one]));
  const branches = key === undefined ? [] : /** @type {readonly Json[]} */ (shape[key]);
  const others = branches.filter((one) => !(isObject(one) && one['type'] === 'null'));
  const [only] = others;
  if (branches.length === 2 && others.length === 1 && isObject(only)) return { shape: only, nullable: true };
  return { shape, nullable: false };
}

/**
 * @param {JsonObject} shape
 * @returns {readonly { label: string, value: Json }[] | null}
 */
function optionsOf(shape) {
  if (Array.isArray(shape['enum'])) return shape['enum'].map((value) => ({ label: show(value), value }));
  if (shape['const'] !== undefined) return [{ label: show(shape['const']), value: shape['const'] }];
  if (shape['type'] === 'null') return [{ label: 'none', value: null }];
  const branches = shape['oneOf'] ?? shape['anyOf'];
  if (!Array.isArray(branches) || branches.length === 0) return null;
  const options = [];
  for (const branch of branches) {
    if (!isObject(branch) || branch['const'] === undefined) return null;
    options.push({ label: show(branch['title'] ?? branch['const']), value: branch['const'] });
  }
  return options;
}

/**
 * @param {JsonObject} shape
 * @returns {{ widget: Widget, input: string }}
 */
function widgetOf(shape) {
  switch (shape['type']) {
    case 'string': {
      const inputs = /** @type {Record<string, string>} */ ({ email: 'email', uri: 'url', date: 'date' });
      const short = Number(shape['maxLength'] ?? Infinity) <= 120;
      if (shape['format'] === undefined && shape['pattern'] === undefined && !short) return { widget: 'lines', input: '' };
      return { widget: 'line', input: inputs[String(shape['format'])] ?? 'text' };
    }
    case 'number':
    case 'integer':
      return { widget: 'number', input: 'text' };
    case 'boolean':
      return { widget: 'boolean', input: '' };
    default:
      return { widget: 'json', input: '' };
  }
}

/**
 * @param {JsonObject} about
 * @param {JsonObject} shape
 * @param {Widget} widget
 */
function hintOf(about, shape, widget) {
  const said = typeof about['description'] === 'string' ? about['description'] : '';
  const format = /** @type {Record<string, string>} */ ({
    time: 'like 14:30:00Z', 'date-time': 'like 2030-01-31T14:30:00Z', ipv4: 'like 192.0.2.1', hostname: 'like example.org',
  })[String(shape['format'])];
  const type = shape['type'] === 'integer' ? 'a whole number' : shape['type'] === 'number' ? 'a number' : '';
  const low = type !== '' && shape['minimum'] !== undefined && shape['exclusiveMinimum'] !== true ? `from ${show(shape['minimum'])}` : '';
  const high = type !== '' && shape['maximum'] !== undefined && shape['exclusiveMaximum'] !== true ? `to ${show(shape['maximum'])}` : '';
  const known = widget === 'json' ? 'as JSON' : [type, low, high, format ?? ''].filter((one) => one !== '').join(' ');
  return [said, known].filter((one) => one !== '').join(' · ');
}

/**
 * The entry that stands for a value, or `null` when the field cannot hold it.
 * @param {Field} field
 * @param {Json} value
 * @returns {Entry | null}
 */
function entryOf(field, value) {
  if (value === null && field.nullable) return { ...EMPTY, none: true };
  switch (field.widget) {
    case 'select': {
      const pick = field.options.findIndex((option) => equal(option.value, value));
      return pick < 0 ? null : { ...EMPTY, pick };
    }
    case 'boolean':
      return typeof value === 'boolean' ? { ...EMPTY, pick: value ? 0 : 1 } : null;
    case 'json':
      return { ...EMPTY, text: show(/** @type {Json} */ (typeof value === 'string' ? JSON.stringify(value) : value), true) };
    default: {
      const entry = { ...EMPTY, text: show(value) };
      const back = read(field, entry);
      return 'value' in back && equal(back.value, value) ? entry : null;
    }
  }
}

/**
 * What a field holds: nothing, a value, or the rule that its text fails.
 * @param {Field} field
 * @param {Entry} entry
 * @returns {{ left: true } | { value: Json } | { rule: string }}
 */
export function read(field, entry) {
  const { shape } = field;
  if (entry.none) return { value: null };
  if (entry.broken) return { rule: field.input === 'date' ? 'format' : 'type' };
  switch (field.widget) {
    case 'boolean':
      return entry.pick === null ? { left: true } : { value: entry.pick === 0 };
    case 'select': {
      const option = entry.pick === null ? undefined : field.options[entry.pick];
      return option === undefined ? { left: true } : { value: option.value };
    }
    case 'number': {
      const text = entry.text.trim();
      if (text === '') return { left: true };
      const value = number(text);
      if (value === undefined) return { rule: /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(text) && !/^-?0\d/.test(text) ? 'exact' : 'type' };
      if (shape['type'] === 'integer' && !isWhole(text)) return { rule: 'type' };
      const rule = boundBroken(shape, Number(text));
      return rule === null ? { value } : { rule };
    }
    case 'json': {
      if (entry.text.trim() === '') return { left: true };
      try {
        return { value: parse(entry.text) };
      } catch {
        return { rule: 'json' };
      }
    }
    default: {
      if (entry.text === '') return { left: true };
      const rule = textBroken(shape, entry.text);
      return rule === null ? { value: entry.text } : { rule };
    }
  }
}

/**
 * The whole answer, or every field that is not right yet.
 * @param {Plan} form
 * @param {readonly Entry[]} entries one per field
 * @returns {Collected}
 */
export function collect(form, entries) {
  /** @type {Record<string, Json>} */
  const object = Object.create(null);
  /** @type {{ field: number, rule: string }[]} */
  const errors = [];
  /** @type {Json} */
  let single = null;
  form.fields.forEach((field, at) => {
    const got = read(field, entries[at] ?? EMPTY);
    if ('rule' in got) errors.push({ field: at, rule: got.rule });
    else if ('left' in got) {
      if (field.required) errors.push({ field: at, rule: 'required' });
    } else if (form.object) object[field.name] = got.value;
    else single = got.value;
  });
  if (errors.length > 0) return { data: undefined, errors };
  return { data: form.object ? { ...object } : single, errors: null };
}

/**
 * The field that a JSON pointer of the server's points into, or -1 for the whole.
 * @param {Plan} form
 * @param {string} pointer RFC 6901
 * @returns {number}
 */
export function fieldAt(form, pointer) {
  if (!form.object) return 0;
  const [, first] = pointer.split('/');
  if (first === undefined) return -1;
  const name = first.replaceAll('~1', '/').replaceAll('~0', '~');
  return form.fields.findIndex((field) => field.name === name);
}

/**
 * @param {JsonObject} shape
 * @param {number} value
 * @returns {string | null} the keyword that fails
 */
function boundBroken(shape, value) {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = shape;
  // In draft-04 the exclusive bounds are booleans beside the plain ones.
  if (typeof minimum === 'number' && (value < minimum || (exclusiveMinimum === true && value === minimum))) return 'minimum';
  if (typeof maximum === 'number' && (value > maximum || (exclusiveMaximum === true && value === maximum))) return 'maximum';
  if (typeof exclusiveMinimum === 'number' && value <= exclusiveMinimum) return 'exclusiveMinimum';
  if (typeof exclusiveMaximum === 'number' && value >= exclusiveMaximum) return 'exclusiveMaximum';
  return null;
}

/**
 * Deliberately wide: they catch slips and let the gateway decide the rest. A pattern is not
 * tried here at all, for it is the model's and a browser's engine may never come back from it.
 * @type {Readonly<Record<string, RegExp>>}
 */
const FORMATS = {
  email: /^.+@.+$/s,
  uri: /^[A-Za-z][A-Za-z0-9+.-]*:/,
  date: /^\d{4}-\d{2}-\d{2}$/,
  time: /^\d{2}:\d{2}:\d{2}/,
  'date-time': /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}/,
  uuid: /^[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}$/,
  ipv4: /^\d{1,3}(?:\.\d{1,3}){3}$/,
  ipv6: /^[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*$/,
  hostname: /^\S+$/,
};

/**
 * @param {JsonObject} shape
 * @param {string} text
 * @returns {string | null} the keyword that fails
 */
function textBroken(shape, text) {
  const { minLength, maxLength, format } = shape;
  const length = [...text].length;
  if (typeof minLength === 'number' && length < minLength) return 'minLength';
  if (typeof maxLength === 'number' && length > maxLength) return 'maxLength';
  const wanted = typeof format === 'string' && Object.hasOwn(FORMATS, format) ? FORMATS[format] : undefined;
  return wanted !== undefined && !wanted.test(text) ? 'format' : null;
}
