// @ts-check
// The first thing a person sees: a name is enough on one's own machine, a token elsewhere.

import { h, newId, setText } from './dom.js';
import { explain } from './refusal.js';

/** @import { Account } from './account.js' */
/** @import { Http } from './http.js' */

/**
 * @param {Account} account
 * @param {Http} http
 * @param {string} why shown above, as after a token ran out
 * @param {() => void} done
 * @returns {HTMLElement}
 */
export function signInView(account, http, why, done) {
  const problem = h('p', { class: 'problem', role: 'alert' }, why);
  const name = h('input', { type: 'text', id: newId(), autocomplete: 'nickname', maxlength: 100, required: true });
  const token = h('textarea', { id: newId(), rows: 4, class: 'code', autocomplete: 'off', spellcheck: 'false' });
  const button = h('button', { type: 'submit', class: 'primary' }, 'Start');
  name.value = account.name;
  const nameField = h('div', { class: 'field' }, h('label', { for: name.id }, 'Your name'), name,
    h('p', { class: 'hint' }, 'Any name will do on this machine. Your runs are kept under it.'));
  const tokenField = h('div', { class: 'field' }, h('label', { for: token.id }, 'Your token'), token,
    h('p', { class: 'hint' }, 'This server knows you by a token. Paste the one that you were given.'));
  tokenField.hidden = true;

  let busy = false;
  const submit = async () => {
    if (busy) return;
    busy = true;
    setText(problem, '');
    try {
      if (!tokenField.hidden) {
        if (token.value.trim() === '') return;
        account.use(token.value.trim());
        // Found out here and not by a socket that closes: a token that does not serve.
        await http.get('/v1/agents');
        done();
      } else if (name.value.trim() === '') name.focus();
      else if (await account.signIn(http, name.value.trim())) done();
      else {
        nameField.hidden = true;
        name.required = false;
        tokenField.hidden = false;
        token.focus();
      }
    } catch (fault) {
      if (!tokenField.hidden) account.leave();
      setText(problem, explain(fault));
    } finally {
      busy = false;
    }
  };
  return h('main', { class: 'sign-in' },
    h('h1', {}, 'An agent that asks you, and waits'),
    h('p', { class: 'lead' }, 'Start an agent. When it needs to know something, it asks here. You answer, now or later, and it goes on.'),
    h('form', {
      novalidate: true,
      onsubmit: (/** @type {Event} */ event) => {
        event.preventDefault();
        void submit();
      },
    }, nameField, tokenField, problem, h('div', { class: 'row' }, button)),
  );
}
