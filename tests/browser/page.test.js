// @ts-check
// The page in a real Chromium against the small gateway: every kind of ask, what is sent and
// what is not, errors at their fields, other devices, lost connections.

import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { launch, openPage, signIn } from './chromium.js';
import { Fake } from './fake.js';

/** @type {import('playwright-core').Browser} */
let browser;
/** @type {Fake} */
let fake;
/** @type {string} */
let address;
/** @type {import('playwright-core').Page} */
let page;
/** @type {string[]} */
let faults;

before(async () => {
  browser = await launch();
});
after(() => browser.close());
beforeEach(async () => {
  fake = new Fake();
  address = await fake.open();
  ({ page, faults } = await openPage(browser));
});
afterEach(async () => {
  await page.context().close();
  await fake.close();
  assert.deepEqual(faults, [], 'no console error, no CSP report');
  assert.deepEqual(fake.misses, [], 'no file is missing');
});

/**
 * The commands that the page sent, without their ids.
 * @param {string} [type]
 * @returns {any[]}
 */
const sent = (type = 'approve') => fake.received.filter((frame) => frame.type === type).map(({ cmd: _, type: __, run: ___, ...rest }) => rest);

/**
 * Signs in and shows an ask.
 * @param {any} input
 * @param {any} [more]
 */
async function asked(input, more) {
  await signIn(page, address);
  const run = fake.start('tshirt', 'hi', 'chat-x');
  const ask = fake.ask(run, input, more);
  await page.goto(`${address}/#thread%2Fchat-x`);
  await page.locator('askwell-ask[data-state="open"]').waitFor();
  return ask;
}
const shape = (/** @type {any} */ one) => asked({ question: 'Please fill in', shape: one });
const button = (/** @type {string | RegExp} */ name) => page.locator('askwell-ask').getByRole('button', { name, exact: typeof name === 'string' });
const settled = () => page.locator('askwell-ask[data-state="settled"]').last();
const outcome = async () => (await settled().innerText()).replace(/\s+/g, ' ');
const rule = (/** @type {string} */ field) => page.locator(`.field[data-field="${field}"] .field-error`).innerText();

/**
 * Waits until nothing that was pressed can still be on its way: what the page sent before this
 * went over the same socket as the pong.
 */
async function quiet() {
  const pongs = () => fake.received.filter((frame) => frame.type === 'pong').length;
  const had = pongs();
  fake.push({ type: 'ping', head: fake.seq });
  for (let tries = 0; pongs() === had && tries < 500; tries += 1) await new Promise((done) => setTimeout(done, 5));
  assert.ok(pongs() > had, 'the page is alive');
}

test('from the first look to the end of a run', async () => {
  await signIn(page, address);
  await page.getByRole('radio', { name: /support/ }).check({ force: true });
  await page.getByRole('button', { name: 'My parcel has not arrived' }).click();
  await page.locator('.bubble.user', { hasText: 'My parcel has not arrived' }).waitFor();
  const [start] = sent('start');
  assert.equal(start.agent, 'support');
  const [run = ''] = fake.runs.keys();
  fake.status(run, 'running');
  fake.push({ type: 'run.delta', run, turn: 1, attempt: 1, offset: 0, text: 'Let me <b>see</b>' });
  await page.getByText('Let me <b>see</b>').waitFor();
  const ask = fake.ask(run, { question: 'Which one?', choices: ['red', 'blue'] }, { text: 'Let me <b>see</b>.' });
  await button('red').click();
  await settled().waitFor();
  assert.equal(await outcome(), 'Which one? red Answered');
  assert.deepEqual(sent(), [{ step: ask.step, repeat: 1, data: 'red' }]);
  fake.finish(run, 'Done with <i>red</i>.');
  await page.getByText('Done with <i>red</i>.').waitFor();
  await page.getByText('Finished', { exact: true }).waitFor();
  assert.equal(await page.locator('.bubble b, .bubble i').count(), 0, 'text is never markup');
  assert.equal(await page.title(), 'Askwell');

  await page.reload();
  await page.getByText('Done with <i>red</i>.').waitFor();
  assert.equal(await outcome(), 'Which one? red Answered', 'after a reload too');
});

test('a press that is doubled answers once', async () => {
  await asked({ question: 'Size?', choices: ['S', 'M'] });
  /** @type {any} */
  let held = null;
  fake.onCommand = (frame) => {
    held = frame;
    return { type: 'nothing yet' };
  };
  await button('M').dblclick();
  await button('S').click({ force: true });
  await button('Refuse').click({ force: true });
  await quiet();
  assert.deepEqual(fake.received.filter((frame) => frame.cmd).map((frame) => [frame.type, frame.data]), [['approve', 'M']]);
  assert.ok(held);
});

test('choices that are no text are sent as they came, digits and all', async () => {
  await signIn(page, address);
  const run = fake.start('tshirt', 'hi', 'chat-x');
  const ask = fake.ask(run, { question: 'Which?', choices: ['1', 1, null, { a: [1] }] });
  await page.goto(`${address}/#thread%2Fchat-x`);
  await page.locator('button.choice.code', { hasText: '1' }).first().click();
  await settled().waitFor();
  assert.equal(sent()[0].data, 1);
  assert.equal(ask.data, 1);
});

test('an open question: Enter sends, but not while composing, not when empty, not with Shift', async () => {
  await asked({ question: 'Your lunch?' });
  const box = page.getByLabel('Your answer');
  await box.focus();
  const key = (/** @type {any} */ init) => box.evaluate((element, given) => element.dispatchEvent(new KeyboardEvent('keydown', { bubbles: true, cancelable: true, ...given })), init);
  await key({ key: 'Enter', keyCode: 13 });
  await box.fill('  ');
  await page.keyboard.press('Enter');
  await box.fill('寿司');
  await key({ key: 'Enter', isComposing: true, keyCode: 229 });
  await key({ key: 'Enter', isComposing: false, keyCode: 229 });
  await key({ key: 'Escape', isComposing: true, keyCode: 229 });
  await page.keyboard.press('Escape');
  await quiet();
  assert.deepEqual(fake.received.filter((frame) => frame.cmd), []);
  assert.equal(await box.inputValue(), '寿司');
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.type('no');
  await page.keyboard.press('Enter');
  await settled().waitFor();
  assert.deepEqual(sent().map(({ data }) => data), ['寿司\nno']);
});

test('several questions: own words beside choices, nothing goes out before Send', async () => {
  await asked({ questions: [
    { id: 'p', question: 'How urgent?', choices: [{ label: 'Low', value: 'low' }, { label: 'Other', value: 'other' }] },
    { id: 'c', question: 'Which channels?', multiple: true, choices: [{ label: 'Mail', value: 'mail' }, { label: 'Phone', value: 'phone' }] },
    { id: 'd', question: 'And?', choices: [{ label: 'Yes', value: 'yes' }] },
  ] }, { kind: 'ask_question' });
  await page.getByText('0 of 3 answered').waitFor();
  await button('Send answers').click();
  await page.getByText('Pick one, or write your own words.').first().waitFor();
  await page.getByText('Other', { exact: true }).click();
  await page.getByLabel('Your own words: How urgent?').fill('by Friday');
  await page.getByText('Low', { exact: true }).click();
  await page.getByText('Mail', { exact: true }).click();
  await page.getByText('Phone', { exact: true }).click();
  await page.getByText('2 of 3 answered').waitFor();
  assert.equal(await page.getByLabel('Your own words: How urgent?').inputValue(), 'by Friday', 'picking keeps what was typed');
  await page.getByLabel('Your own words: How urgent?').press('Enter');
  await quiet();
  assert.deepEqual(sent(), [], 'one is missing');
  await page.getByLabel('Your own words: And?').fill('no');
  await button('Send answers').click();
  await settled().waitFor();
  assert.deepEqual(sent()[0].data, { answers: [
    { questionId: 'p', answer: 'by Friday', choice: 'low', custom: true },
    { questionId: 'c', answer: 'Mail, Phone', choices: ['mail', 'phone'] },
    { questionId: 'd', answer: 'no', custom: true },
  ] });
  assert.equal(await outcome(), 'How urgent? Low, “by Friday” Which channels? Mail, Phone And? “no” Answered');
});

test('drafts: saved on demand, seen from elsewhere, never over what was typed here', async () => {
  const ask = await asked({ questions: ['a', 'b', 'c'].map((id) => ({ id, question: `${id}?`, choices: [{ label: `${id}1`, value: '1' }, { label: `${id}2`, value: '2' }] })) }, { kind: 'ask_question' });
  await page.getByText('a2', { exact: true }).click();
  await button('Save for later').click();
  await page.getByText('Saved.').waitFor();
  assert.deepEqual(sent(), [{ step: ask.step, repeat: 1, n: 1, data: { questionId: 'a', answer: 'a2', choice: '2' } }]);
  await page.getByLabel('Your own words: c?').fill('mine');
  const draft = (/** @type {number} */ n, /** @type {any} */ data) => {
    Object.assign(ask.drafts, { [data.questionId]: data });
    fake.commit({ type: 'ask.draft', run: ask.run, step: ask.step, repeat: 1, n, data });
  };
  draft(2, { questionId: 'b', answer: 'b1', choice: '1' });
  draft(3, { questionId: 'c', answer: 'theirs', custom: true });
  await page.getByText('3 of 3 answered').waitFor();
  assert.ok(await page.getByLabel('b1').isChecked());
  assert.equal(await page.getByLabel('Your own words: c?').inputValue(), 'mine');
  await page.reload();
  await page.getByText('3 of 3 answered').waitFor();
  assert.equal(await page.getByLabel('Your own words: c?').inputValue(), 'theirs');
});

test('a form marks what is not right, sends nothing, and then sends numbers', async () => {
  await shape({ type: 'object', properties: { count: { type: 'integer', minimum: 1 }, email: { type: 'string', format: 'email' }, price: { type: 'number' } }, required: ['count'] });
  await page.getByLabel('count').fill('50abc');
  await page.getByLabel('email').fill('ada');
  await page.getByLabel('price').fill('19,99');
  await button('Send').click();
  assert.equal(await rule('count'), 'This has to be a whole number, like 5.');
  assert.match(await rule('email'), /an e-mail address/);
  assert.equal(await rule('price'), 'This has to be a number, like 5 or 19.99.');
  await quiet();
  assert.deepEqual(sent(), []);
  await page.getByLabel('count').fill('1.0');
  await page.getByLabel('email').fill('');
  await page.getByLabel('price').fill('12345678901234567890.5');
  await page.getByLabel('price').press('Enter');
  await settled().waitFor();
  assert.match(fake.raw, /"data":\{"count":1,"price":12345678901234567890\.5\}/, 'no digit is lost');
});

test('the server says no: at the field, the text stays, the second try goes through', async () => {
  await shape({ type: 'object', properties: { n: { type: 'number', multipleOf: 0.01 }, x: { type: 'string' } } });
  fake.onCommand = (frame) =>
    frame.data.n === 1.005 ? { type: 'error', code: 'T0002', detail: 'no', temporary: false, errors: [{ question: null, pointer: '/n', rule: 'multipleOf' }] } : undefined;
  await page.getByLabel('n optional').fill('1.005');
  await button('Send').click();
  await page.getByText('A multiple of 0.01, please.').waitFor();
  assert.equal(await rule('n'), 'A multiple of 0.01, please.');
  assert.equal(await page.getByLabel('n optional').inputValue(), '1.005');
  await page.getByLabel('n optional').fill('1.01');
  assert.equal(await rule('n'), '');
  await button('Send').click();
  await settled().waitFor();
  assert.deepEqual(sent().map(({ data }) => data), [{ n: 1.005 }, { n: 1.01 }]);
});

test('an answer of several that does not fit is told at its question', async () => {
  await asked({ questions: [{ id: 'p', question: 'P?', choices: ['a'] }, { id: 'q', question: 'Q?', choices: ['b'] }] }, { kind: 'ask_question' });
  fake.onCommand = () => ({ type: 'error', code: 'T0002', detail: 'no', temporary: false, errors: [{ question: 'q', pointer: '/answers/1/answer', rule: 'size' }] });
  await page.getByText('a', { exact: true }).click();
  await page.getByText('b', { exact: true }).click();
  await button('Send answers').click();
  await page.locator('.question.wrong', { hasText: 'Q?' }).getByText('This is too long.').waitFor();
  assert.equal(await page.locator('.question.wrong').count(), 1);
  assert.ok(await page.getByLabel('a', { exact: true }).isChecked());
});

/** @type {[string, any, ((page: import('playwright-core').Page) => Promise<void>) | null, any][]} what `Send` sends; undefined: it is off */
const FORMS = [
  ['an optional single null', { type: 'object', properties: { why: { title: 'Unknown', oneOf: [{ const: null, title: 'no reason' }] } } }, null, {}],
  ['an optional oneOf left alone', { type: 'object', properties: { who: { oneOf: [{ type: 'object' }, { type: 'object', required: ['t'] }] } } }, null, {}],
  ['a text cleared again', { type: 'object', properties: { note: { type: 'string' } } }, async (at) => {
    await at.getByLabel('note').fill('x');
    await at.getByLabel('note').fill('');
  }, {}],
  ['a number cleared again', { type: 'object', properties: { n: { type: 'number' } } }, async (at) => {
    await at.getByLabel('n optional').fill('5');
    await at.getByLabel('n optional').fill('');
  }, {}],
  ['nothing chosen', { type: 'string', enum: ['approve', 'reject'] }, null, undefined],
  ['the first choice', { type: 'string', enum: ['approve', 'reject'] }, async (at) => void (await at.getByLabel('Your answer').selectOption('approve')), 'approve'],
  ['no yes and no no', { type: 'boolean' }, null, undefined],
  ['no', { type: 'boolean' }, async (at) => at.getByText('No', { exact: true }).click(), false],
  ['a default', { type: 'object', properties: { city: { type: 'string', default: 'Oslo' } }, required: ['city'] }, null, { city: 'Oslo' }],
  ['JSON for what cannot be drawn', { type: 'object', properties: { m: { type: 'array', items: { type: 'array' } } }, required: ['m'] }, async (at) => at.getByLabel('m', { exact: true }).fill('[[1]]'), { m: [[1]] }],
  ['a text of one line', { type: 'string', maxLength: 5 }, async (at) => at.getByLabel('Your answer').fill(' no '), ' no '],
];
for (const [name, one, act, data] of FORMS) {
  test(`a form does not write by itself: ${name}`, async () => {
    await shape(one);
    assert.ok(await button('Refuse').isVisible());
    await act?.(page);
    if (data === undefined) {
      assert.ok(await button('Send').isDisabled());
      await button('Refuse').click();
      await settled().waitFor();
      assert.deepEqual(sent(), []);
      return;
    }
    await button('Send').click();
    await settled().waitFor();
    assert.deepEqual(sent().map((frame) => frame.data), [data]);
  });
}

test('refusing: with and without a reason, and never by the word no', async () => {
  const ask = await asked({ question: 'Anything else?' });
  await page.getByLabel('Your answer').fill('half typed');
  await button('Add a reason').click();
  await page.getByLabel('Reason (optional)').fill('not now');
  await button('Refuse').click();
  await settled().waitFor();
  assert.deepEqual(sent('refuse'), [{ step: ask.step, repeat: 1, reason: 'not now' }]);
  assert.match(await outcome(), /Anything else\? Refused/);
  fake.ask(ask.run, { question: 'Ship it?', choices: ['yes', 'no'] }, { turn: 2 });
  await button('no').click();
  await page.getByText('Ship it?').and(page.locator('.settled *')).waitFor();
  assert.deepEqual(sent().map(({ data }) => data), ['no']);
});

test('an approval shows the input, sends no data, and can be refused', async () => {
  const ask = await asked({ order: '7' }, { kind: 'approval', tool: 'refund' });
  await page.getByText('May refund be used?').waitFor();
  await page.getByLabel('Input of refund').getByText('"order": "7"').waitFor();
  await button('Approve').click();
  await settled().waitFor();
  assert.deepEqual(sent(), [{ step: ask.step, repeat: 1 }]);
  assert.match(await outcome(), /Approved$/);
});

test('another device, the clock and the end of a run settle an ask here', async () => {
  const first = await asked({ question: 'One?', choices: ['a'] });
  fake.settle(first, 'answered', { data: 'a' });
  await settled().waitFor();
  assert.equal(await outcome(), 'One? a Answered on another device');
  const ends = /** @type {const} */ ([['expired', 'Nobody answered in time'], ['cancelled', 'Closed: the run ended'], ['superseded', 'Closed: a newer message took its place'], ['refused', 'Refused on another device']]);
  let turn = 1;
  for (const [end, text] of ends) {
    turn += 1;
    const ask = fake.ask(first.run, { question: `Turn ${turn}?`, choices: ['a'] }, { turn });
    await button('a').waitFor();
    fake.settle(ask, end, end === 'refused' ? {} : { by: null });
    await page.locator('.settled', { hasText: `Turn ${turn}?` }).getByText(text).waitFor();
  }
  assert.equal(await page.locator('askwell-ask').getByRole('button').count(), 0);
});

test('too late: the page says who was first, and shows what counted', async () => {
  const ask = await asked({ question: 'Size?', choices: ['S', 'M'] });
  fake.onCommand = () => ({ type: 'error', code: 'T0003', detail: 'settled', temporary: false, settled: { outcome: 'answered', by: { sub: 'ada' }, at: ask.opened } });
  await button('M').click();
  await page.getByText('Another answer was first, so yours was not used.').waitFor();
  fake.settle(ask, 'answered', { data: 'S' });
  await settled().waitFor();
  assert.equal(await outcome(), 'Size? S Answered on another device');
});

test('a lost connection: what is typed stays, an answer pressed meanwhile arrives once', async () => {
  const ask = await asked({ question: 'Name?' });
  await page.getByLabel('Your answer').fill('Heron');
  fake.swallow = () => true;
  fake.cut();
  await page.locator('#link:not([data-phase="live"])').waitFor();
  fake.swallow = null;
  await page.getByLabel('Your answer').press('Enter');
  await settled().waitFor();
  await page.getByText('Connected').waitFor();
  assert.equal(ask.data, 'Heron');
  assert.equal(fake.log.filter((frame) => frame.type === 'ask.settled').length, 1);
});

test('a store that fails for a while: it is said, and sent again under the same id', async () => {
  await asked({ question: 'Size?', choices: ['S'] });
  let times = 0;
  fake.onCommand = () => ((times += 1) < 3 ? { type: 'error', code: 'T0011', detail: '', temporary: true, retryMs: 50 } : undefined);
  await button('S').click();
  await settled().waitFor();
  assert.equal(new Set(fake.received.filter((frame) => frame.cmd).map((frame) => frame.cmd)).size, 1);
  assert.equal(times, 3);
});

test('focus is not taken by an ask, and stays near when an ask is settled', async () => {
  const ask = await asked({ question: 'One?', choices: ['a'] });
  await button('a').focus();
  await page.keyboard.press('Enter');
  await settled().waitFor();
  assert.equal(await page.evaluate(() => document.activeElement?.className), 'settled answered');
  fake.ask(ask.run, { question: 'Two?' }, { turn: 2 });
  await page.getByLabel('Your answer').waitFor();
  assert.equal(await page.evaluate(() => document.activeElement?.className), 'settled answered');
  assert.match(await page.locator('#news').innerText(), /Two\?/, 'it is announced instead');
});

test('cancel and retry', async () => {
  const ask = await asked({ question: 'One?' });
  await page.getByRole('button', { name: 'Cancel run' }).click();
  await page.getByText('Cancelled', { exact: true }).waitFor();
  assert.match(await outcome(), /Closed: the run ended/);
  fake.status(ask.run, 'failed', { reason: 'model: 503' });
  await page.getByText('Failed: model: 503').waitFor();
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByText('Waiting for a worker…').waitFor();
});

test('several asks of one turn are answered each on its own', async () => {
  const first = await asked({ question: 'One?', choices: ['a', 'b'] });
  const second = { ...first, id: 'ask_2', step: 'question 1.2', input: { question: 'Two?', choices: ['a', 'b'] } };
  fake.asks.push(second);
  fake.commit({ type: 'ask.opened', ask: second });
  const two = page.locator('askwell-ask', { hasText: 'Two?' });
  await two.getByRole('button', { name: 'b', exact: true }).click();
  await two.getByText('Answered').waitFor();
  assert.equal(await page.locator('askwell-ask[data-state="open"]').count(), 1);
  await button('a').click();
  await page.locator('askwell-ask[data-state="open"]').waitFor({ state: 'detached' });
  assert.deepEqual(sent().map(({ step, data }) => [step, data]), [['question 1.2', 'b'], ['question 1.1', 'a']]);
});

test('an ask of another conversation is pointed at', async () => {
  await signIn(page, address);
  fake.ask(fake.start('order', 'x', 'chat-y'), { question: 'Elsewhere?', choices: ['a'] });
  await page.getByRole('link', { name: 'Open it' }).click();
  await button('a').click();
  await settled().waitFor();
});

test('the deadline counts down by the server, not by this device', async () => {
  await page.clock.install({ time: new Date(Date.now() + 7_200_000) });
  await page.clock.resume();
  await asked({ question: 'Soon?' }, { ms: 30 * 60_000 });
  assert.match(await page.locator('.deadline').innerText(), /^(29|30) min left$/);
});

test('a server that knows no names asks for a token, and a bad one is told', async () => {
  fake.byName = false;
  await page.goto(address);
  await page.getByLabel('Your name').fill('Ada');
  await page.getByRole('button', { name: 'Start' }).click();
  await page.getByLabel('Your token').fill('t.o.k');
  await page.getByRole('button', { name: 'Start' }).click();
  await page.getByText('Connected').waitFor();
  assert.equal(fake.hellos[0].token, 't.o.k');
  assert.ok(!page.url().includes('t.o.k'));
  await page.getByRole('button', { name: 'Sign out' }).click();
  assert.equal(await page.getByLabel('Your name').inputValue(), '', 'a name that did not serve is not remembered');
  // Chromium itself reports the 404 of the sign-in as an error.
  faults.splice(0, faults.length, ...faults.filter((fault) => !fault.includes('404')));
});

for (const [name, options] of /** @type {const} */ ([['narrow', { viewport: { width: 320, height: 560 } }], ['dark', { colorScheme: 'dark' }]])) {
  test(`nothing overflows and everything can be reached: ${name}`, async () => {
    const own = await openPage(browser, options);
    await page.context().close();
    ({ page, faults } = own);
    await asked({ questions: [{ id: 'p', question: 'A long question '.repeat(8), choices: ['x'.repeat(90), 'y'] }] }, { kind: 'ask_question' });
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), 0);
    await page.getByText('y', { exact: true }).click();
    await button('Send').click();
    await settled().waitFor();
  });
}

test('agents that come later, and a server that is away, are waited for', async () => {
  const { agents } = fake;
  fake.agents = [];
  await signIn(page, address);
  await page.getByText('There is no agent yet').waitFor();
  fake.agents = agents;
  await page.locator('.agent').first().waitFor();
  assert.equal(await page.locator('.agent').count(), 3);
});
