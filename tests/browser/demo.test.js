// @ts-check
// The built program and its three demo agents, used in a Chromium as a person would: start, be
// asked, answer wrongly and be told why, answer, see the run end. `ASKWELL_BIN` names the program.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { launch, openPage, signIn } from './chromium.js';

const program = process.env['ASKWELL_BIN'];

/** @type {import('playwright-core').Browser} */
let browser;
/** @type {import('playwright-core').Page} */
let page;
/** @type {string[]} */
let faults;
/** @type {import('node:child_process').ChildProcess} */
let server;
/** @type {string} */
let address;
/** @type {string} */
let data;
/** What the program wrote to its log, for a test that fails. */
let log = '';

/**
 * @param {string} binary
 * @returns {Promise<string>} its address
 */
function serve(binary) {
  const settings = Object.entries(process.env).filter(([name]) => !name.startsWith('ASKWELL_'));
  const child = spawn(binary, ['--listen', '127.0.0.1:0', '--data', data], {
    env: Object.fromEntries(settings),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  server = child;
  child.stderr.on('data', (piece) => (log += String(piece)));
  return new Promise((done, fail) => {
    child.once('error', fail);
    child.once('exit', () => fail(new Error(`the program ended before it served: ${log}`)));
    createInterface({ input: child.stdout }).on('line', (line) => {
      const found = /^listening on (http:\/\/\S+)$/.exec(line)?.[1];
      if (found !== undefined) done(found);
    });
  });
}

/**
 * Changes the next frame that the page sends and that holds `from`: what a page with a fault, or
 * someone who goes round the page's own checks, would send.
 * @param {string} from
 * @param {string} to
 */
async function tamper(from, to) {
  await page.evaluate((change) => {
    const { send } = WebSocket.prototype;
    WebSocket.prototype.send = function (frame) {
      const text = String(frame);
      if (!text.includes(change.from)) return send.call(this, frame);
      WebSocket.prototype.send = send;
      return send.call(this, text.replace(change.from, change.to));
    };
  }, { from, to });
}

/**
 * @param {string} path
 * @returns {Promise<any>}
 */
async function api(path) {
  const reply = await page.evaluate(async (at) => {
    const token = sessionStorage.getItem('askwell.token');
    const got = await fetch(at, { headers: { authorization: `Bearer ${token}` } });
    return { status: got.status, body: await got.text() };
  }, path);
  assert.equal(reply.status, 200, reply.body);
  return JSON.parse(reply.body);
}

/**
 * Starts an agent by its suggested message, and waits for what it asks.
 * @param {string} agent
 */
async function start(agent) {
  await page.getByRole('radio', { name: new RegExp(`^${agent}`) }).check({ force: true });
  await page.locator('.first').getByRole('button').click();
  await open().waitFor();
}
const open = () => page.locator('askwell-ask[data-state="open"]');
const button = (/** @type {string} */ name) => open().getByRole('button', { name, exact: true });

/**
 * The ask is still open, for the page and for the store.
 * @param {string} step
 */
async function stillWaits(step) {
  assert.equal(await open().count(), 1);
  const { asks } = await api('/v1/asks?state=open');
  assert.deepEqual(asks.map((/** @type {any} */ ask) => ask.step), [step]);
}

/**
 * The run ends with a text, and its record agrees.
 * @param {RegExp} text
 * @param {any} answer
 */
async function ends(text, answer) {
  await page.locator('.bubble.assistant', { hasText: text }).waitFor();
  await page.getByText('Finished', { exact: true }).waitFor();
  const { runs } = await api('/v1/runs?limit=1');
  const run = await api(`/v1/runs/${runs[0].run}`);
  assert.equal(run.status, 'succeeded');
  assert.match(run.output, text);
  assert.deepEqual(run.asks.map((/** @type {any} */ ask) => [ask.state, ask.outcome, ask.data]), [['settled', 'answered', answer]]);
}

describe('the demo agents', () => {
  before(async () => {
    assert.ok(program, 'ASKWELL_BIN names no program: build askwell and name it, as tests/run does');
    data = await mkdtemp(join(tmpdir(), 'askwell-demo-'));
    address = await serve(program);
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    if (server !== undefined && server.exitCode === null) {
      const gone = new Promise((done) => server.once('exit', done));
      server.kill('SIGTERM');
      assert.equal(await gone, 0, `it drains and ends well: ${log}`);
    }
    await rm(data, { recursive: true, force: true });
  });
  beforeEach(async () => {
    ({ page, faults } = await openPage(browser));
    const reply = await page.goto(address);
    const policy = reply?.headers()['content-security-policy'] ?? '';
    for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"]) {
      assert.ok(policy.includes(part), policy);
    }
    await signIn(page, address);
  });
  afterEach(async () => {
    await page.context().close();
    assert.deepEqual(faults, [], `no console error, no CSP report; the program's log: ${log}`);
  });

  test('tshirt: one question with choices', async () => {
    await start('tshirt');
    assert.deepEqual(await open().locator('button.choice').allInnerTexts(), ['S', 'M', 'L']);
    await tamper('"data":"M"', '"data":"XL"');
    await button('M').click();
    await open().getByText('This does not fit yet.').waitFor();
    await stillWaits('question 1.1');
    // The tab may go away meanwhile: the ask does not.
    await page.reload();
    await button('M').click();
    await ends(/M it is/, 'M');
  });

  test('support: two questions at once', async () => {
    await start('support');
    await open().getByText('High', { exact: true }).click();
    await button('Send answers').click();
    await open().getByText('Pick one, or write your own words.').waitFor();
    await open().getByLabel('Your own words: Which support channel should we use?').fill('a letter');
    await tamper('"choice":"high"', '"choice":"higher"');
    await button('Send answers').click();
    await open().locator('.question.wrong', { hasText: 'priority' }).getByText('This is none of the choices.').waitFor();
    await stillWaits('ask_question 1.1');
    await button('Send answers').click();
    await ends(/filed/, { answers: [
      { questionId: 'priority', answer: 'High', choice: 'high' },
      { questionId: 'channel', answer: 'a letter', custom: true },
    ] });
  });

  test('order: a small form', async () => {
    await start('order');
    const error = (/** @type {string} */ field) => open().locator(`.field[data-field="${field}"] .field-error`);
    await open().getByRole('textbox', { name: 'How many' }).fill('0');
    await open().getByLabel('E-mail for the receipt').fill('ada');
    await button('Send').click();
    await error('count').getByText('At least 1, please.').waitFor();
    await error('email').getByText(/an e-mail address/).waitFor();
    await open().getByRole('textbox', { name: 'How many' }).fill('2');
    await open().getByLabel('E-mail for the receipt').fill('ada@example.org');
    for (const [from, to, field, text] of /** @type {const} */ ([
      ['"count":2', '"count":0', 'count', 'At least 1, please.'],
      ['"count":2', '"count":"2"', 'count', 'This has to be a whole number, like 5.'],
      ['ada@example.org', 'ada', 'email', 'This has to be an e-mail address, like ada@example.org.'],
    ])) {
      await tamper(from, to);
      await button('Send').click();
      await error(field).and(page.getByText(text)).waitFor();
      await stillWaits('question 1.1');
      assert.equal(await open().getByRole('textbox', { name: 'How many' }).inputValue(), '2', 'what was typed stays');
    }
    await open().getByText('No', { exact: true }).click();
    await button('Send').click();
    await ends(/order is in/, { count: 2, email: 'ada@example.org', gift: false });
  });

  test('refused: the run goes on and the record says so', async () => {
    await start('tshirt');
    await button('Refuse').click();
    await page.getByText('Refused', { exact: true }).waitFor();
    await page.getByText('Finished', { exact: true }).waitFor();
    const { runs } = await api('/v1/runs?limit=1');
    const run = await api(`/v1/runs/${runs[0].run}`);
    assert.match(run.output, /The person refused this\./);
    assert.equal(run.asks[0].outcome, 'refused');
  });

  test('two devices: the second sees the ask, and what the first answered', async () => {
    await start('tshirt');
    const other = await openPage(browser);
    await signIn(other.page, address);
    await other.page.getByRole('link', { name: 'Open it' }).click();
    const there = other.page.locator('askwell-ask').last();
    await there.getByRole('button', { name: 'L', exact: true }).waitFor();
    await button('S').click();
    await there.getByText('Answered on another device').waitFor();
    await other.page.locator('.bubble', { hasText: 'S it is' }).waitFor();
    assert.deepEqual(other.faults, []);
    await other.context.close();
  });
});
