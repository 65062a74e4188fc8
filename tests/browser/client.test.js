// @ts-check
// The client against a gateway that misbehaves: lost connections, gaps, doubles, close codes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WebSocket } from 'ws';
import { Client } from '../../gateway/studio/client.js';
import { Refusal } from '../../gateway/studio/refusal.js';
import { isLive } from '../../gateway/studio/state.js';
import { Fake } from './fake.js';

/** Short waits, so that a test of many reconnects is quick; their order is kept. */
const QUICK = { resync: 300, grace: 20, answer: 150, base: 20, cap: 60, overBase: 100, overCap: 400, good: 10_000 };

/**
 * @param {(context: { fake: Fake, client: Client, tokens: boolean[], until: (is: () => boolean, what?: string) => Promise<void> }) => Promise<void>} act
 * @param {Partial<import('../../gateway/studio/client.js').Options>} [options]
 */
async function withClient(act, options = {}) {
  const fake = new Fake();
  const address = await fake.open();
  /** @type {boolean[]} */
  const tokens = [];
  const client = new Client({
    url: `${address.replace('http', 'ws')}/v1/ws`,
    device: 'here',
    token: async (fresh) => {
      tokens.push(fresh);
      return 'h.e.s';
    },
    connect: (url, protocol) => /** @type {any} */ (new WebSocket(url, protocol)),
    timing: QUICK,
    ...options,
  });
  /** @param {() => boolean} is */
  const until = (is, what = is.toString()) =>
    /** @type {Promise<void>} */ (new Promise((done, fail) => {
      const timer = setTimeout(() => fail(new Error(`never: ${what}`)), 5000);
      const look = () => {
        if (!is()) return;
        clearTimeout(timer);
        clearInterval(poll);
        leave();
        done();
      };
      // The fake's own records change without the client's knowing, hence the poll beside.
      const poll = setInterval(look, 5);
      const leave = client.subscribe(look);
      look();
    }));
  try {
    client.open();
    await act({ fake, client, tokens, until });
  } finally {
    client.close();
    await fake.close();
  }
}
const live = (/** @type {Client} */ client) => client.snapshot.link.phase === 'live';
const openAsks = (/** @type {Client} */ client) => Object.values(client.snapshot.state.asks).filter((ask) => ask.state === 'open');

test('a connection that is cut resumes where it was, with nothing lost or doubled', () =>
  withClient(async ({ fake, client, until }) => {
    await until(() => live(client));
    const run = fake.start('tshirt', 'hi');
    const ask = fake.ask(run, { question: 'Size?', choices: ['M'] });
    await until(() => openAsks(client).length === 1);
    for (let round = 0; round < 3; round += 1) {
      fake.cut();
      await until(() => !live(client));
      // Asked and answered while nobody listened.
      if (round === 0) fake.settle(ask, 'answered', { data: 'M' });
      if (round === 1) fake.ask(run, { question: 'Colour?' }, { turn: 2 });
      await until(() => live(client) && client.snapshot.state.seq === fake.seq);
    }
    assert.deepEqual(openAsks(client).map((one) => one.step), ['question 2.1']);
    assert.ok(fake.hellos.slice(1).every((hello) => hello.resume.epoch === 'e1' && hello.resume.seq > 0));
  }));

test('a store of another epoch is told by a snapshot and replaces everything', () =>
  withClient(async ({ fake, client, until }) => {
    await until(() => live(client));
    fake.ask(fake.start('tshirt', 'hi'), { question: 'Size?' });
    await until(() => openAsks(client).length === 1);
    Object.assign(fake, { epoch: 'e2', log: [], runs: new Map(), asks: [] });
    fake.closeAll(4201);
    await until(() => client.snapshot.state.epoch === 'e2' && client.snapshot.state.seq === 0);
    assert.deepEqual(openAsks(client), []);
    assert.deepEqual(Object.values(client.snapshot.state.runs).filter(isLive), []);
  }));

test('a frame that is missing is asked for, at most once in a while', () =>
  withClient(async ({ fake, client, until }) => {
    await until(() => live(client));
    const run = fake.start('tshirt', 'hi');
    let dropped = 0;
    fake.swallow = (frame) => frame.seq === 3 && (dropped += 1) > 0;
    for (let count = 0; count < 20; count += 1) fake.status(run, 'running');
    await until(() => client.snapshot.state.seq === fake.seq);
    const resyncs = fake.received.filter((frame) => frame.type === 'resync');
    assert.deepEqual(resyncs, [{ type: 'resync', seq: 2 }], 'twenty frames above a gap, one request');
  }));

test('a ping with a newer head uncovers a silent hole', () =>
  withClient(async ({ fake, client, until }) => {
    await until(() => live(client));
    fake.swallow = () => true;
    fake.ask(fake.start('tshirt', 'hi'), { question: 'Size?' });
    fake.swallow = null;
    fake.push({ type: 'ping', head: fake.seq });
    await until(() => openAsks(client).length === 1);
    assert.deepEqual(fake.received.filter((frame) => frame.type === 'pong'), [{ type: 'pong', seq: 0 }]);
  }));

test('a command is sent again under its id until it is answered, over a lost connection too', () =>
  withClient(async ({ fake, client, until }) => {
    await until(() => live(client));
    const ask = fake.ask(fake.start('tshirt', 'hi'), { question: 'Size?' });
    let first = true;
    fake.onCommand = () => {
      if (!first) return undefined;
      first = false;
      fake.cut();
      return { type: 'nothing' };
    };
    const { run, step, repeat } = ask;
    const ok = await client.command({ type: 'approve', run, step, repeat, data: 'M' });
    assert.equal(ok.outcome, 'answered');
    const sent = fake.received.filter((frame) => frame.type === 'approve');
    assert.ok(sent.length >= 2);
    assert.equal(new Set(sent.map((frame) => frame.cmd)).size, 1);
    assert.match(sent[0].cmd, /^[0-9a-f-]{36}$/);
  }));

test('a temporary error is tried again, a final one is told once', () =>
  withClient(async ({ fake, client, until }) => {
    await until(() => live(client));
    let times = 0;
    fake.onCommand = (frame) => {
      if (frame.type !== 'start') return { type: 'error', code: 'T0010', detail: 'over', temporary: false };
      times += 1;
      return times < 3 ? { type: 'error', code: 'T0011', detail: 'store', temporary: true, retryMs: 10 } : undefined;
    };
    const started = client.command({ type: 'start', agent: 'tshirt', input: 'hi' });
    await until(() => client.snapshot.troubled.length === 1);
    assert.ok((await started).run);
    assert.deepEqual(client.snapshot.troubled, []);
    assert.equal(new Set(fake.received.map((frame) => frame.cmd).filter(Boolean)).size, 1);
    await assert.rejects(client.command({ type: 'cancel', run: 'r' }), (fault) => fault instanceof Refusal && fault.code === 'T0010');
  }));

test('a reply that comes twice, or to nothing, is harmless', () =>
  withClient(async ({ fake, client, until }) => {
    await until(() => live(client));
    fake.push({ type: 'ok', cmd: 'never sent' });
    fake.push({ type: 'error', code: 'T0006', detail: '', temporary: false });
    fake.push({ type: 'something new' });
    const { run } = await client.command({ type: 'start', agent: 'tshirt', input: 'hi' });
    fake.push({ type: 'ok', cmd: fake.received.at(-1).cmd, run });
    await until(() => client.snapshot.state.seq === 2);
  }));

test('40xx stops, and only a person connects again', () =>
  withClient(async ({ fake, client, until }) => {
    await until(() => live(client));
    const waiting = client.command({ type: 'cancel', run: 'x' });
    fake.onCommand = () => ({ type: 'nothing' });
    fake.closeAll(4003);
    await assert.rejects(waiting);
    await until(() => client.snapshot.link.phase === 'stopped');
    assert.equal(client.snapshot.link.signedOut, false);
    client.wake();
    await new Promise((done) => setTimeout(done, 3 * QUICK.overCap));
    assert.equal(fake.hellos.length, 1);
    client.open();
    await until(() => live(client));
  }));

test('41xx backs off: by chance, up to a bound that doubles', async () => {
  /** @type {number[]} */
  const drawn = [];
  await withClient(
    async ({ fake, client, until }) => {
      await until(() => live(client));
      for (const code of [4103, 4103]) {
        const seen = fake.hellos.length;
        const begun = Date.now();
        fake.closeAll(code);
        await until(() => fake.hellos.length > seen && live(client));
        drawn.push(Date.now() - begun);
      }
      const [first = 0, second = 0] = drawn;
      assert.ok(first >= 190, `first ${first}`);
      assert.ok(second >= 390, `second ${second}`);
    },
    { random: () => 1 },
  );
});

test('43xx gets one new token; refused again, the person signs in', () =>
  withClient(async ({ fake, client, tokens, until }) => {
    await until(() => live(client));
    fake.closeAll(4301);
    await until(() => fake.hellos.length === 2 && live(client));
    assert.deepEqual(tokens, [false, true]);
    fake.closeAll(4302);
    await until(() => fake.hellos.length === 3 && live(client));
    assert.equal(tokens.length, 3, 'it served in between, so it may be renewed again');
  }));

test('no new token to be had: signed out', async () => {
  let given = false;
  await withClient(
    async ({ fake, client, until }) => {
      await until(() => live(client));
      fake.closeAll(4301);
      await until(() => client.snapshot.link.phase === 'stopped');
      assert.equal(client.snapshot.link.signedOut, true);
    },
    {
      token: async (fresh) => {
        if (fresh) return null;
        given = true;
        return 'h.e.s';
      },
    },
  );
  assert.ok(given);
});

test('drain: the new socket is there before the old one goes', () =>
  withClient(async ({ fake, client, until }) => {
    await until(() => live(client));
    let most = 0;
    /** @type {string[]} */
    const phases = [];
    const leave = client.subscribe(() => {
      phases.push(client.snapshot.link.phase);
      most = Math.max(most, fake.sockets.size);
    });
    fake.push({ type: 'drain', afterMs: 10 });
    await until(() => fake.hellos.length === 2 && fake.sockets.size === 1);
    leave();
    assert.ok(phases.every((phase) => phase === 'live'), phases.join());
    const run = fake.start('tshirt', 'hi');
    await until(() => client.snapshot.state.runs[run] !== undefined);
  }));

test('a snapshot object stays the same until something changes', () =>
  withClient(async ({ client, until }) => {
    await until(() => live(client));
    const before = client.snapshot;
    assert.equal(client.snapshot, before);
    assert.ok(Object.isFrozen(before));
  }));
