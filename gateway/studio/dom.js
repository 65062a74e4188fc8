// @ts-check
// Making elements. Text goes in as text and never as markup, whoever wrote it.

/**
 * @typedef {Record<string, string | number | boolean | ((event: any) => void) | undefined>} Properties
 *   `on<event>` is a listener, `true` and `false` set or leave out an attribute
 */

let count = 0;

/** @returns {string} an id that no other element has */
export const newId = () => `a${(count += 1)}`;

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Properties} [properties]
 * @param {...(Node | string | null)} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === 'function') element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/**
 * Sets a text, and touches the element only when it differs, so that a selection survives.
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Whether a key press is Enter that sends. Not with Shift, which breaks the line, not while it
 * is held down, and not when it ends the composition of an input method: one engine reports
 * that key after the composition, with nothing but the key code 229 to tell.
 * @param {KeyboardEvent} event
 * @returns {boolean}
 */
export function sendsOnEnter(event) {
  const plain = !event.shiftKey && !event.ctrlKey && !event.altKey && !event.metaKey && !event.repeat;
  return event.key === 'Enter' && plain && !event.isComposing && event.keyCode !== 229;
}

/**
 * A text box that grows with its text and sends on Enter.
 * @param {Properties} properties
 * @param {() => void} send
 * @returns {HTMLTextAreaElement}
 */
export function textBox(properties, send) {
  return h('textarea', {
    rows: 1,
    autocomplete: 'off',
    ...properties,
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== 'Enter' || event.shiftKey) return;
      // An Enter that belongs to an input method is left to it.
      if (event.isComposing || event.keyCode === 229) return;
      event.preventDefault();
      if (sendsOnEnter(event)) send();
    },
  });
}

/**
 * How long until a time, in words.
 * @param {number} ms
 * @returns {string}
 */
export function left(ms) {
  if (ms <= 0) return 'time is up';
  const seconds = Math.ceil(ms / 1000);
  if (seconds < 60) return `${seconds} s left`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min left`;
  const hours = Math.round(minutes / 60);
  return hours < 48 ? `${hours} h left` : `${Math.round(hours / 24)} days left`;
}
