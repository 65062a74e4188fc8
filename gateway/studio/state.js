// @ts-check
// What a client knows, as a pure function of the frames it received (PROTOCOL 2 and 4).
// Frames with `seq` are applied in order and once; a settled ask never opens again; the open
// asks and live runs equal a snapshot at the same `seq`. Transcripts are kept beside them.

import { questionsOf } from './questions.js';

/** @import { Ask, Call, Durable, Json, RunBrief, RunDelta, RunDetail, RunStatus, ServerFrame, Snapshot, Welcome } from './wire.js' */

/**
 * @typedef {{ turn: number, role: 'user' | 'assistant', text: string, calls: readonly Call[], truncated: boolean }} Message
 * @typedef {{ turn: number, call: string, tool: string, state: 'started' | 'done' | 'failed', result?: Json, truncated: boolean }} Tool
 * @typedef {{ turn: number, attempt: number, text: string }} Partial text that streams in, until the turn's message
 * @typedef {object} Run
 * @property {string} run
 * @property {string} agent
 * @property {string | null} thread
 * @property {RunStatus | 'ended'} status `ended`: over while this client was away; a read tells how
 * @property {number} rev
 * @property {string | null} reason
 * @property {string} created RFC 3339, or empty when it is not known
 * @property {readonly Message[]} messages by turn
 * @property {Readonly<Record<string, Tool>>} tools by `<turn> <call>`
 * @property {Partial | null} partial
 * @property {boolean} whole false: the transcript is to be read by GET
 *
 * @typedef {object} State
 * @property {string | null} epoch the store's, null before the first welcome
 * @property {number} seq the last frame applied, -1 before the first snapshot
 * @property {{ sub: string, roles: readonly string[] } | null} you
 * @property {Readonly<Record<string, Ask>>} asks by `askKey`, open and settled
 * @property {Readonly<Record<string, Run>>} runs
 * @property {readonly Durable[]} held frames above a gap
 * @property {boolean} gap a frame is missing: ask for it
 * @property {{ fresh: boolean, asks: readonly Ask[], runs: readonly RunBrief[] } | null} parts of a snapshot
 */

/** Held frames beyond this are dropped: a resync brings them again. */
const HELD = 1024;

/** @type {State} */
export const nothing = Object.freeze({
  epoch: null, seq: -1, you: null, asks: {}, runs: {}, held: [], gap: false, parts: null,
});

/**
 * @param {{ run: string, step: string, repeat: number }} where
 * @returns {string}
 */
export const askKey = ({ run, step, repeat }) => `${run} ${step} ${repeat}`;

/** @param {{ status: string }} run */
export const isLive = ({ status }) => ['queued', 'running', 'waiting', 'stalled'].includes(status);

/**
 * The state after a frame. Frames that change nothing here give back the same state.
 * @param {State} state
 * @param {ServerFrame} frame
 * @returns {State}
 */
export function receive(state, frame) {
  switch (frame.type) {
    case 'welcome':
      return welcome(state, frame);
    case 'snapshot':
      return snapshot(state, frame);
    case 'run.delta':
      return delta(state, frame);
    case 'ask.opened':
    case 'ask.draft':
    case 'ask.settled':
    case 'run.status':
    case 'run.message':
    case 'run.tool':
      return inOrder(state, frame);
    default:
      return state;
  }
}

/**
 * @param {State} state
 * @param {Welcome} frame
 * @returns {State}
 */
function welcome(state, frame) {
  const known = { ...state, epoch: frame.epoch, you: frame.you, held: [], gap: false };
  if (frame.mode === 'resumed') return { ...known, parts: null };
  // Another store, or one that lost what this client saw: nothing kept here can be trusted.
  const fresh = frame.why === 'ahead' || (state.epoch !== null && state.epoch !== frame.epoch);
  return { ...known, parts: { fresh, asks: [], runs: [] } };
}

/**
 * @param {State} state
 * @param {Snapshot} frame
 * @returns {State}
 */
function snapshot(state, frame) {
  const before = state.parts ?? { fresh: false, asks: [], runs: [] };
  const parts = { ...before, asks: [...before.asks, ...frame.asks], runs: [...before.runs, ...frame.runs] };
  if (frame.more) return { ...state, parts };
  if (!parts.fresh && frame.seq < state.seq) return { ...state, parts: null };

  /** @type {Record<string, Ask>} */
  const asks = {};
  /** @type {Record<string, Run>} */
  const runs = {};
  if (!parts.fresh) {
    for (const [key, ask] of Object.entries(state.asks)) if (ask.state === 'settled') asks[key] = ask;
    for (const [id, run] of Object.entries(state.runs)) {
      runs[id] = isLive(run) ? { ...run, status: 'ended', partial: null, whole: false } : run;
    }
  }
  for (const ask of parts.asks) if (asks[askKey(ask)] === undefined) asks[askKey(ask)] = ask;
  for (const brief of parts.runs) {
    const old = parts.fresh ? undefined : state.runs[brief.run];
    const whole = old !== undefined && old.whole && old.rev === brief.rev;
    runs[brief.run] = { ...(old ?? newRun(brief)), status: brief.status, rev: brief.rev, whole };
  }
  return release({ ...state, seq: frame.seq, asks, runs, parts: null, gap: false });
}

/**
 * @param {State} state
 * @param {Durable} frame
 * @returns {State}
 */
function inOrder(state, frame) {
  const partial = state.seq < 0 || state.parts !== null;
  if (!partial && frame.seq <= state.seq) return state;
  if (!partial && frame.seq === state.seq + 1) return release(apply(state, frame));
  const doubled = state.held.some((held) => held.seq === frame.seq);
  const held = doubled || state.held.length >= HELD ? state.held : [...state.held, frame];
  return { ...state, held, gap: state.gap || !partial };
}

/**
 * Applies the held frames that follow on.
 * @param {State} state
 * @returns {State}
 */
function release(state) {
  if (state.held.length === 0) return state.gap ? { ...state, gap: false } : state;
  const waiting = [...state.held].sort((a, b) => a.seq - b.seq);
  let next = state;
  let left = waiting.filter((frame) => frame.seq > next.seq);
  for (let first = left[0]; first !== undefined && first.seq === next.seq + 1; first = left[0]) {
    next = apply(next, first);
    left = left.slice(1);
  }
  return { ...next, held: left, gap: left.length > 0 };
}

/**
 * @param {State} state
 * @param {Durable} frame the one after the last
 * @returns {State}
 */
function apply(state, frame) {
  const next = { ...state, seq: frame.seq };
  switch (frame.type) {
    case 'ask.opened':
      return putAsk(next, frame.ask);
    case 'ask.draft': {
      const ask = state.asks[askKey(frame)];
      if (ask === undefined) return next;
      const named = /** @type {{ questionId?: unknown }} */ (frame.data ?? {}).questionId;
      const id = typeof named === 'string' ? named : questionsOf(ask.input)[frame.n - 1]?.id;
      if (id === undefined) return next;
      return putAsk(next, { ...ask, drafts: { ...ask.drafts, [id]: frame.data } });
    }
    case 'ask.settled': {
      const ask = state.asks[askKey(frame)];
      if (ask === undefined) return next;
      const { outcome, by, at, data } = frame;
      const settled = { ...ask, state: /** @type {const} */ ('settled'), outcome, by, at, ...(data === undefined ? {} : { data }) };
      const run = state.runs[frame.run];
      const cut = frame.truncated === true && run !== undefined;
      return putAsk(cut ? putRun(next, { ...run, whole: false }) : next, settled);
    }
    case 'run.status': {
      // A run whose first frame is this one is seen from its start; any other has to be read.
      const run = state.runs[frame.run] ?? { ...newRun(frame), whole: frame.status === 'queued' };
      const partial = isLive(frame) && frame.status !== 'queued' ? run.partial : null;
      return putRun(next, { ...run, status: frame.status, rev: frame.rev, reason: frame.reason ?? null, partial });
    }
    case 'run.message': {
      const run = state.runs[frame.run];
      if (run === undefined) return next;
      const { turn, role, text } = frame;
      const message = { turn, role, text, calls: frame.calls ?? [], truncated: frame.truncated === true };
      const partial = run.partial !== null && run.partial.turn <= turn ? null : run.partial;
      const messages = withMessage(run.messages, message);
      return putRun(next, { ...run, messages, partial, whole: run.whole && !message.truncated });
    }
    case 'run.tool': {
      const run = state.runs[frame.run];
      if (run === undefined) return next;
      const { turn, call, tool, state: stage, result } = frame;
      const one = { turn, call, tool, state: stage, truncated: frame.truncated === true, ...(result === undefined ? {} : { result }) };
      const tools = { ...run.tools, [`${turn} ${call}`]: one };
      return putRun(next, { ...run, tools, whole: run.whole && !one.truncated });
    }
  }
}

/**
 * @param {State} state
 * @param {RunDelta} frame
 * @returns {State}
 */
function delta(state, frame) {
  const run = state.runs[frame.run];
  if (run === undefined || !isLive(run)) return state;
  if (run.messages.some((one) => one.role === 'assistant' && one.turn >= frame.turn)) return state;
  let { partial } = run;
  const newer =
    partial === null || frame.turn > partial.turn || (frame.turn === partial.turn && frame.attempt > partial.attempt);
  if (newer) partial = { turn: frame.turn, attempt: frame.attempt, text: '' };
  if (partial === null || partial.turn !== frame.turn || partial.attempt !== frame.attempt) return state;
  // `offset` counts UTF-16 units, as `length` does. What begins beyond the text is of no use yet.
  const useful = frame.offset <= partial.text.length && frame.offset + frame.text.length > partial.text.length;
  if (useful) partial = { ...partial, text: partial.text.slice(0, frame.offset) + frame.text };
  return partial === run.partial ? state : putRun(state, { ...run, partial });
}

/**
 * The state with a run as GET tells it. It completes the transcript and tells how a run ended;
 * it never opens an ask, for only the log knows whether one is still open.
 * @param {State} state
 * @param {RunDetail} detail
 * @returns {State}
 */
export function withDetail(state, detail) {
  const known = state.runs[detail.run];
  // A live run that the log has not told of yet: its first frame is on the way.
  if (known === undefined && isLive(detail)) return state;
  const old = known ?? newRun(detail);
  const told = !isLive(detail) && detail.rev >= old.rev;
  const messages = (detail.messages ?? []).reduce(
    (all, { turn, role, text, calls }) => withMessage(all, { turn, role, text, calls: calls ?? [], truncated: false }),
    old.messages,
  );
  const tools = { ...old.tools };
  for (const { turn, call, tool, state: stage, result } of detail.tools ?? []) {
    const known = tools[`${turn} ${call}`];
    // A read may be older than the frames that came while it was under way.
    if (known !== undefined && known.state !== 'started' && !known.truncated) continue;
    tools[`${turn} ${call}`] = { turn, call, tool, state: stage, truncated: false, ...(result === undefined ? {} : { result }) };
  }
  const run = {
    ...old,
    ...(told ? { status: detail.status, rev: detail.rev, reason: detail.reason ?? null, partial: null } : {}),
    created: detail.created ?? old.created,
    messages,
    tools,
    whole: old.whole || detail.messages !== undefined,
  };
  let next = putRun(state, run);
  for (const ask of detail.asks ?? []) if (ask.state === 'settled') next = putAsk(next, ask);
  return next;
}

/**
 * @param {RunBrief & { created?: string }} brief
 * @returns {Run}
 */
function newRun({ run, agent, thread, status, rev, created }) {
  return {
    run, agent, thread: thread ?? null, status, rev, reason: null, created: created ?? '',
    messages: [], tools: {}, partial: null, whole: false,
  };
}

/**
 * @param {State} state
 * @param {Run} run
 * @returns {State}
 */
const putRun = (state, run) => ({ ...state, runs: { ...state.runs, [run.run]: run } });

/**
 * @param {State} state
 * @param {Ask} ask
 * @returns {State}
 */
function putAsk(state, ask) {
  const key = askKey(ask);
  if (state.asks[key]?.state === 'settled' && ask.state === 'open') return state;
  return { ...state, asks: { ...state.asks, [key]: ask } };
}

/**
 * @param {readonly Message[]} messages
 * @param {Message} message
 * @returns {readonly Message[]}
 */
function withMessage(messages, message) {
  const others = messages.filter((one) => one.turn !== message.turn || one.role !== message.role);
  return [...others, message].sort((a, b) => a.turn - b.turn || (a.role === 'user' ? -1 : 1));
}
