// @ts-check
// A refusal of the server's (SPEC 4) as an error, and what a person reads of it.

/** @import { Code, ErrorFrame, Json, JsonObject, Misfit, Settled } from './wire.js' */

/** A command or request that the server turned down, with its code. */
export class Refusal extends Error {
  /**
   * @param {{ code: Code | string, status?: number, detail?: string, temporary?: boolean, retryMs?: number | null, errors?: readonly Misfit[] | null, settled?: Settled | null }} told
   */
  constructor({ code, status = 0, detail = '', temporary = false, retryMs = null, errors = [], settled = null }) {
    super(detail || code);
    this.name = 'Refusal';
    /** @type {string} */
    this.code = code;
    /** @type {number} of HTTP, 0 over a socket */
    this.status = status;
    /** @type {boolean} */
    this.temporary = temporary;
    /** @type {number | null} milliseconds to wait before the next try */
    this.retryMs = retryMs;
    /** @type {readonly Misfit[]} */
    this.errors = errors ?? [];
    /** @type {Settled | null} */
    this.settled = settled;
  }
}

/** @type {Readonly<Record<string, string>>} */
const TEXTS = {
  T0001: 'This is not there any more, or it is not yours to answer.',
  T0002: 'This does not fit yet. Please change it and send again.',
  T0003: 'This was settled already, so your answer was not needed.',
  T0004: 'This was sent before with another content. Please reload the page.',
  T0005: 'There is no such agent, or you may not start it.',
  T0006: 'The server could not read this.',
  T0007: 'This is too long to send.',
  T0008: 'Too much at once. It is sent again in a moment.',
  T0009: 'You are not signed in any more.',
  T0010: 'The run is over.',
  T0011: 'Saving does not work at the moment. It is tried again.',
  T0012: 'The server is busy. It is tried again.',
};

/**
 * What to tell a person about something that failed.
 * @param {unknown} fault
 * @returns {string}
 */
export function explain(fault) {
  if (fault instanceof Refusal) {
    if (fault.code === 'T0003' && fault.settled) return settledText(fault.settled);
    if (fault.code === 'T0006' && fault.message !== fault.code) return `The server could not read this: ${fault.message}`;
    return TEXTS[fault.code] ?? fault.message;
  }
  // `fetch` says no more than that, in words that differ by browser.
  if (fault instanceof TypeError) return 'The server cannot be reached.';
  return fault instanceof Error && fault.message ? fault.message : 'This did not work.';
}

/** @param {Settled} settled */
function settledText({ outcome }) {
  const ends = {
    answered: 'Another answer was first, so yours was not used.',
    refused: 'This was refused already.',
    expired: 'The time for this is over.',
    cancelled: 'The run ended before this was answered.',
    superseded: 'A newer message took the place of this.',
  };
  return ends[outcome];
}

/**
 * Why a value was turned down, by the rule that it failed and the shape it belongs to.
 * @param {string} rule a schema keyword, or a word of SPEC 3.6
 * @param {JsonObject} [shape]
 * @returns {string}
 */
export function ruleText(rule, shape = {}) {
  /** @param {string} key */
  const bound = (key) => JSON.stringify(shape[key] ?? null);
  switch (rule) {
    case 'required':
      return 'This is needed.';
    case 'blank':
      return 'Please write something, or refuse.';
    case 'choices':
    case 'enum':
    case 'const':
      return 'This is none of the choices.';
    case 'unknown':
      return 'There is something here that was not asked for.';
    case 'twice':
      return 'This is answered twice.';
    case 'size':
      return 'This is too long.';
    case 'type':
      return `This has to be ${typeText(shape['type'])}.`;
    case 'minimum':
      return shape['exclusiveMinimum'] === true ? `More than ${bound('minimum')}, please.` : `At least ${bound('minimum')}, please.`;
    case 'maximum':
      return shape['exclusiveMaximum'] === true ? `Less than ${bound('maximum')}, please.` : `At most ${bound('maximum')}, please.`;
    case 'exclusiveMinimum':
      return `More than ${bound('exclusiveMinimum')}, please.`;
    case 'exclusiveMaximum':
      return `Less than ${bound('exclusiveMaximum')}, please.`;
    case 'multipleOf':
      return `A multiple of ${bound('multipleOf')}, please.`;
    case 'minLength':
      return `At least ${bound('minLength')} characters, please.`;
    case 'maxLength':
      return `At most ${bound('maxLength')} characters, please.`;
    case 'pattern':
      return `This has to match the pattern ${String(shape['pattern'] ?? '')}`.trim() + '.';
    case 'format':
      return `This has to be ${FORMATS[String(shape['format'])] ?? `a ${String(shape['format'] ?? 'valid value')}`}.`;
    case 'json':
      return 'This is no valid JSON yet.';
    case 'exact':
      return 'This number has more digits than this browser can send.';
    default:
      return `This does not fit (${rule}).`;
  }
}

/** @type {Readonly<Record<string, string>>} */
const FORMATS = {
  email: 'an e-mail address, like ada@example.org',
  uri: 'a link, like https://example.org',
  date: 'a date, like 2030-01-31',
  time: 'a time with its zone, like 14:30:00Z',
  'date-time': 'a date and time, like 2030-01-31T14:30:00Z',
  uuid: 'a UUID',
  ipv4: 'an IPv4 address, like 192.0.2.1',
  ipv6: 'an IPv6 address, like 2001:db8::1',
  hostname: 'a host name, like example.org',
};

/** @param {Json | undefined} type */
function typeText(type) {
  /** @type {Readonly<Record<string, string>>} */
  const names = {
    integer: 'a whole number, like 5', number: 'a number, like 5 or 19.99', string: 'text',
    boolean: 'yes or no', object: 'a JSON object', array: 'a JSON list', null: 'null',
  };
  const list = Array.isArray(type) ? type : [type];
  return list.map((one) => names[String(one)] ?? 'of another type').join(' or ');
}

/**
 * @param {ErrorFrame} frame
 * @returns {Refusal}
 */
export const refusalOf = (frame) => new Refusal(frame);
