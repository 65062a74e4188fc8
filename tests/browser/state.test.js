// @ts-check
// The reducer: order, gaps, doubles, settlement, streamed text, and equality with a snapshot.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isLive, nothing, receive, withDetail } from '../../gateway/studio/state.js';

/** @param {any} more */
const ask = (more = {}) => ({
  id: 'ask_1', run: 'r', agent: 'a', step: 'question 1.1', repeat: 1, kind: 'question', tool: 'question',
  input: { question: 'Which size?', choices: ['S', 'M'] }, questions: 1, state: 'open', opened: '2030-01-01T00:00:00.000Z',
  deadline: '2030-01-02T00:00:00.000Z', drafts: {}, outcome: null, by: null, at: null, data: null, ...more,
});
const you = { sub: 'ada', roles: [] };
const welcome = (/** @type {any} */ more = {}) => ({ type: 'welcome', epoch: 'e1', seq: 0, mode: 'snapshot', why: 'new', you, ...more });
const snapshot = (/** @type {any} */ more = {}) => ({ type: 'snapshot', seq: 0, asks: [], runs: [], more: false, ...more });
const status = (/** @type {number} */ seq, /** @type {string} */ to, rev = seq) => ({ type: 'run.status', seq, run: 'r', agent: 'a', thread: null, status: to, rev });
const message = (/** @type {number} */ seq, /** @type {number} */ turn, /** @type {string} */ text, role = 'assistant') => ({ type: 'run.message', seq, run: 'r', turn, role, text });
const opened = (/** @type {number} */ seq, /** @type {any} */ more = {}) => ({ type: 'ask.opened', seq, ask: ask(more) });
const settled = (/** @type {number} */ seq, /** @type {any} */ more = {}) => ({ type: 'ask.settled', seq, run: 'r', step: 'question 1.1', repeat: 1, outcome: 'answered', by: you, at: 't', data: 'M', ...more });
const delta = (/** @type {number} */ offset, /** @type {string} */ text, turn = 1, attempt = 1) => ({ type: 'run.delta', run: 'r', turn, attempt, offset, text });

/**
 * @param {...any} frames
 * @returns {import('../../gateway/studio/state.js').State}
 */
const after = (...frames) => frames.reduce((state, frame) => receive(state, frame), nothing);
/** @param {import('../../gateway/studio/state.js').State} state what a snapshot tells */
const visible = (state) => ({
  seq: state.seq,
  asks: Object.values(state.asks).filter((one) => one.state === 'open'),
  runs: Object.values(state.runs).filter(isLive).map(({ run, agent, thread, status: is, rev }) => ({ run, agent, thread, status: is, rev })),
});
const begun = [welcome(), snapshot(), status(1, 'queued'), message(2, 0, 'hi', 'user'), status(3, 'running')];

test('a trace from start to end', () => {
  const state = after(...begun, message(4, 1, ''), opened(5), status(6, 'waiting'), settled(7), status(8, 'queued'), status(9, 'running'), message(10, 2, 'M it is.'), status(11, 'succeeded'));
  const run = state.runs['r'];
  assert.equal(run?.status, 'succeeded');
  assert.deepEqual(run?.messages.map((one) => one.text), ['hi', '', 'M it is.']);
  assert.equal(run?.whole, true, 'the log brought it all');
  assert.equal(Object.values(state.asks)[0]?.data, 'M');
  assert.deepEqual(visible(state), { seq: 11, asks: [], runs: [] });
});

test('frames come doubled and out of order and count once, in order', () => {
  const frames = [status(1, 'queued'), message(2, 0, 'hi', 'user'), status(3, 'running'), opened(4), status(5, 'waiting'), settled(6)];
  const wanted = after(welcome(), snapshot(), ...frames);
  const mixed = [5, 0, 0, 3, 2, 1, 4, 2, 5].map((at) => frames[at]);
  const state = after(welcome(), snapshot(), ...mixed);
  assert.deepEqual(state, wanted);
  assert.equal(state.gap, false);
});

test('a gap is told, and nothing above it is applied', () => {
  const state = after(...begun, opened(5));
  assert.equal(state.gap, true);
  assert.equal(state.seq, 3);
  assert.deepEqual(visible(state).asks, []);
  const mended = receive(state, /** @type {any} */ (message(4, 1, 'x')));
  assert.equal(mended.gap, false);
  assert.equal(mended.seq, 5);
  assert.equal(visible(mended).asks.length, 1);
});

test('held frames are bounded', () => {
  let state = after(...begun);
  for (let seq = 5; seq < 5000; seq += 1) state = receive(state, /** @type {any} */ (status(seq, 'running')));
  assert.ok(state.held.length <= 1024);
});

test('a settled ask never opens again, by a replay, a snapshot or a read', () => {
  const done = after(...begun, opened(4), settled(5));
  for (const frame of [opened(6), snapshot({ seq: 6, asks: [ask()] })]) {
    assert.deepEqual(visible(receive(done, /** @type {any} */ (frame))).asks, []);
  }
  const read = withDetail(done, /** @type {any} */ ({ ...status(0, 'waiting'), messages: [], asks: [ask()] }));
  assert.deepEqual(visible(read).asks, []);
});

test('a read never opens an ask and never brings a run to life that the log does not know', () => {
  const state = withDetail(after(welcome(), snapshot()), /** @type {any} */ ({ ...status(0, 'waiting'), asks: [ask()], messages: [] }));
  assert.deepEqual(visible(state), { seq: 0, asks: [], runs: [] });
});

test('a snapshot replaces: what is not in it is open and live no more', () => {
  const before = after(...begun, opened(4), opened(5, { id: 'ask_2', step: 'question 1.2' }));
  const brief = { run: 's', agent: 'a', thread: null, status: 'waiting', rev: 1 };
  const half = receive(receive(before, /** @type {any} */ (welcome({ why: 'trimmed', seq: 90 }))), /** @type {any} */ (snapshot({ seq: 90, asks: [ask({ id: 'ask_3', run: 's' })], more: true })));
  assert.equal(half.seq, 5, 'not before its last part');
  const early = receive(half, /** @type {any} */ ({ ...status(91, 'running', 2), run: 's' }));
  const state = receive(early, /** @type {any} */ (snapshot({ seq: 90, runs: [brief] })));
  assert.equal(state.seq, 91, 'a frame that came between the parts is not lost');
  assert.deepEqual(visible(state).asks.map(({ id }) => id), ['ask_3']);
  assert.deepEqual(visible(state).runs, [{ ...brief, status: 'running', rev: 2 }]);
  assert.equal(state.runs['r']?.status, 'ended');
  assert.equal(state.runs['r']?.whole, false, 'how it ended has to be read');
  const read = withDetail(state, /** @type {any} */ ({ ...status(0, 'failed', 9), reason: 'model: 503', messages: [] }));
  assert.equal(read.runs['r']?.status, 'failed');
  assert.equal(read.runs['r']?.reason, 'model: 503');
});

test('another epoch, or a store that lost what was seen, wipes everything', () => {
  for (const change of [{ epoch: 'e2', why: 'epoch' }, { why: 'ahead' }]) {
    const state = [welcome({ ...change, seq: 1 }), snapshot({ seq: 1, asks: [ask()] })].reduce(
      (one, frame) => receive(one, /** @type {any} */ (frame)),
      after(...begun, opened(4), settled(5)),
    );
    assert.equal(state.seq, 1);
    assert.deepEqual(visible(state).asks.map((one) => one.state), ['open']);
    assert.deepEqual(Object.keys(state.runs), []);
  }
});

test('the state equals a snapshot at the same seq, wherever it is taken', () => {
  const frames = [status(1, 'queued'), status(2, 'running'), opened(3, { kind: 'ask_question', input: { questions: [{ id: 'p', question: '?', choices: ['a'] }] } }), status(4, 'waiting'),
    { type: 'ask.draft', seq: 5, run: 'r', step: 'question 1.1', repeat: 1, n: 1, data: { questionId: 'p', answer: 'a' } }, settled(6), status(7, 'queued'), status(8, 'failed')];
  for (let cut = 1; cut <= frames.length; cut += 1) {
    const live = after(welcome(), snapshot(), ...frames.slice(0, cut));
    const { seq, asks, runs } = visible(live);
    assert.deepEqual(visible(after(welcome(), snapshot({ seq, asks, runs }))), { seq, asks, runs });
    const resumed = [welcome({ mode: 'resumed', seq: 8 }), ...frames.slice(cut)].reduce((one, frame) => receive(one, /** @type {any} */ (frame)), live);
    assert.deepEqual(visible(resumed), visible(after(welcome(), snapshot(), ...frames)));
  }
});

test('a draft is kept by its question, with or without the id in it', () => {
  const two = { kind: 'ask_question', input: { questions: [{ question: '?', choices: ['a'] }, { id: 'z', question: '?', choices: ['a'] }] } };
  const draft = (/** @type {number} */ seq, /** @type {number} */ n, /** @type {any} */ data) => ({ type: 'ask.draft', seq, run: 'r', step: 'question 1.1', repeat: 1, n, data });
  const state = after(...begun, opened(4, two), draft(5, 1, { answer: 'a' }), draft(6, 2, { questionId: 'z', answer: 'b' }));
  assert.deepEqual(Object.values(state.asks)[0]?.drafts, { q1: { answer: 'a' }, z: { questionId: 'z', answer: 'b' } });
});

test('text streams by offset in UTF-16 units; doubled, overlapping and far pieces do no harm', () => {
  const text = (/** @type {any[]} */ ...pieces) => after(...begun, ...pieces).runs['r']?.partial?.text ?? null;
  assert.equal(text(delta(0, 'a🍣'), delta(3, 'b')), 'a🍣b');
  assert.equal(text(delta(0, 'abc'), delta(0, 'ab'), delta(2, 'cd')), 'abcd');
  assert.equal(text(delta(0, 'ab'), delta(5, 'x')), 'ab');
  assert.equal(text(delta(3, 'x')), '');
  assert.equal(text(delta(0, 'old'), delta(0, 'new', 1, 2), delta(3, '!', 1, 1)), 'new');
  assert.equal(text(delta(0, 'ab'), message(4, 1, 'abc')), null, 'the message is the truth');
  assert.equal(text(message(4, 1, 'abc'), delta(0, 'ab')), null, 'none after it');
  assert.equal(text(delta(0, 'ab', 2), delta(0, 'cd', 1)), 'ab');
  assert.equal(text(delta(0, 'ab'), status(4, 'failed')), null);
});

test('a cut text is read as a whole, and a read does not undo what frames told', () => {
  const cut = after(...begun, { ...message(4, 1, 'lo'), truncated: true });
  assert.equal(cut.runs['r']?.whole, false);
  const read = withDetail(cut, /** @type {any} */ ({ ...status(0, 'queued', 1), messages: [{ turn: 1, role: 'assistant', text: 'long' }] }));
  assert.equal(read.runs['r']?.messages.at(-1)?.text, 'long');
  assert.equal(read.runs['r']?.status, 'running', 'an older read says queued');
});

test('frames of other kinds, and of runs and asks that are not known, are harmless', () => {
  const state = after(welcome(), snapshot());
  assert.equal(receive(state, /** @type {any} */ ({ type: 'ops.event', run: {} })), state);
  assert.equal(receive(state, /** @type {any} */ (delta(0, 'x'))), state);
  assert.equal(after(welcome(), snapshot(), settled(1), message(2, 1, 'x')).seq, 2);
});
