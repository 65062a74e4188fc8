// @ts-check
// The page a newcomer sees: sign in, choose an agent, write, answer what it asks.

import { Account } from './account.js';
import { Chat } from './chat.js';
import { Client } from './client.js';
import { setText } from './dom.js';
import { Http } from './http.js';
import { signInView } from './sign-in.js';

/** @param {string} id */
const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

const account = new Account();
const http = new Http('', () => account.token);
/** @type {Client | null} */
let client = null;

/** @param {string} [why] */
function signIn(why = '') {
  client?.close();
  client = null;
  account.leave();
  byId('who').hidden = true;
  byId('leave').hidden = true;
  setText(byId('link'), '');
  document.title = 'Askwell';
  const view = signInView(account, http, why, start);
  byId('page').replaceChildren(view);
  view.querySelector('input')?.focus();
}

function start() {
  const address = new URL('/v1/ws', location.href);
  address.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
  const own = new Client({
    url: address.href,
    device: account.device,
    token: (fresh) => account.current(http, fresh),
  });
  client = own;
  const chat = new Chat(own, http, account.device);
  byId('page').replaceChildren(chat.element);
  byId('leave').hidden = false;
  own.subscribe(() => {
    if (own !== client) return;
    const { link, state } = own.snapshot;
    if (link.phase === 'stopped' && link.signedOut) return signIn(link.why);
    const words = { idle: '', connecting: 'Connecting…', live: 'Connected', waiting: 'Reconnecting…', stopped: link.why };
    setText(byId('link'), words[link.phase]);
    byId('link').dataset['phase'] = link.phase;
    byId('who').hidden = state.you === null;
    setText(byId('who'), state.you?.sub ?? '');
    chat.render();
  });
  own.open();
  void chat.load(() => signIn('Please sign in again.'));
}

byId('leave').addEventListener('click', () => signIn());
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') client?.wake();
});
addEventListener('pageshow', () => client?.wake());
addEventListener('online', () => client?.wake());

if (account.token === null) signIn();
else start();
