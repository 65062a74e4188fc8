// @ts-check
// JSON whose numbers keep their digits (SPEC 3.6): a number that a double cannot hold is kept
// as `JSON.rawJSON` where the browser has it, so that it is shown and sent as it was written.

/** @import { Json } from './wire.js' */

/** @type {{ rawJSON?: (text: string) => Json, isRawJSON?: (value: unknown) => boolean }} */
const engine = /** @type {any} */ (JSON);

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
// Only texts with a long or exponential number pay for the slower parse.
const RISKY = /[\d.]{16}|\d[eE][+-]?\d/;

/**
 * The value of a decimal text as sign, digits and exponent, so that `1.0` and `1` are equal.
 * @param {string} text a JSON number
 * @returns {{ minus: boolean, digits: string, exponent: number }}
 */
function decimal(text) {
  const [mantissa = '', power = '0'] = text.toLowerCase().split('e');
  const minus = mantissa.startsWith('-');
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.');
  const all = (whole + fraction).replace(/^0+/, '');
  const digits = all.replace(/0+$/, '');
  if (digits === '') return { minus: false, digits: '0', exponent: 0 };
  return { minus, digits, exponent: Number(power) - fraction.length + (all.length - digits.length) };
}

/**
 * @param {string} left a JSON number
 * @param {string} right a JSON number
 */
function sameNumber(left, right) {
  const [a, b] = [decimal(left), decimal(right)];
  return a.minus === b.minus && a.digits === b.digits && a.exponent === b.exponent;
}

/**
 * A number from a text that is a JSON number as a whole; `undefined` for any other text and
 * for one that this browser could not send without changing its value.
 * @param {string} text
 * @returns {Json | undefined}
 */
export function number(text) {
  if (!NUMBER.test(text)) return undefined;
  const value = Number(text);
  if (Number.isFinite(value) && sameNumber(text, String(value))) return value === 0 ? 0 : value;
  return engine.rawJSON?.(text);
}

/**
 * Whether a text that is a JSON number is a whole number by value.
 * @param {string} text
 */
export function isWhole(text) {
  return decimal(text).exponent >= 0;
}

/**
 * Parses JSON and keeps the digits of numbers that a double would change.
 * @param {string} text
 * @returns {any}
 * @throws {SyntaxError} when the text is no JSON
 */
export function parse(text) {
  if (!engine.rawJSON || !RISKY.test(text)) return JSON.parse(text);
  /** @type {(key: string, value: unknown, context?: { source?: string }) => unknown} */
  const keep = (_key, value, context) =>
    typeof value === 'number' && context?.source !== undefined ? number(context.source) ?? value : value;
  return JSON.parse(text, /** @type {any} */ (keep));
}

/**
 * @param {unknown} value
 * @returns {string | undefined} the digits of a kept number
 */
function digitsOf(value) {
  if (typeof value === 'number') return String(value);
  if (engine.isRawJSON?.(value)) return /** @type {{ rawJSON: string }} */ (value).rawJSON;
  return undefined;
}

/**
 * Equality of JSON values: numbers by value, objects without order.
 * @param {Json | undefined} left
 * @param {Json | undefined} right
 * @returns {boolean}
 */
export function equal(left, right) {
  if (left === right) return true;
  const [a, b] = [digitsOf(left), digitsOf(right)];
  if (a !== undefined || b !== undefined) return a !== undefined && b !== undefined && sameNumber(a, b);
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) return false;
  if (left === undefined || right === undefined || Array.isArray(left) !== Array.isArray(right)) return false;
  const one = /** @type {Record<string, Json>} */ (left);
  const two = /** @type {Record<string, Json>} */ (right);
  const keys = Object.keys(one);
  return (
    keys.length === Object.keys(two).length &&
    keys.every((key) => Object.hasOwn(two, key) && equal(one[key], two[key]))
  );
}

/**
 * A value as a person reads it: text as it is, anything else as JSON.
 * @param {Json | undefined} value
 * @param {boolean} [wide] spread over lines
 * @returns {string}
 */
export function show(value, wide = false) {
  return typeof value === 'string' ? value : JSON.stringify(value ?? null, null, wide ? 2 : undefined);
}

/**
 * Whether a value is a JSON object, neither a list nor a kept number.
 * @param {unknown} value
 * @returns {value is import('./wire.js').JsonObject}
 */
export function isObject(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !engine.isRawJSON?.(value);
}
