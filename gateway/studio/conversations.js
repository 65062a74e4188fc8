// @ts-check
// Runs gathered into conversations: those of one thread belong together, any other run is a
// conversation of its own.

import { isLive } from './state.js';

/** @import { Ask } from './wire.js' */
/** @import { Run, State } from './state.js' */

/**
 * @typedef {{ key: string, thread: string | null, agent: string, runs: readonly Run[], open: readonly Ask[], title: string }} Conversation
 */

/**
 * @param {State} state
 * @param {readonly string[]} order run ids, the oldest first; those it lacks come last
 * @returns {readonly Conversation[]} the one with the newest run first
 */
export function conversations(state, order) {
  const place = new Map(order.map((run, at) => [run, at]));
  const at = (/** @type {Run} */ run) => place.get(run.run) ?? Infinity;
  const runs = Object.values(state.runs).sort((a, b) => Math.sign(at(a) - at(b)) || 0);
  const open = Object.values(state.asks).filter((ask) => ask.state === 'open');
  /** @type {Map<string, Run[]>} */
  const groups = new Map();
  for (const run of runs) {
    const key = keyOf(run);
    groups.set(key, [...(groups.get(key) ?? []), run]);
  }
  return [...groups].reverse().map(([key, members]) => ({
    key,
    thread: members[0]?.thread ?? null,
    agent: members.at(-1)?.agent ?? '',
    runs: members,
    open: open.filter((ask) => members.some((run) => run.run === ask.run)),
    title: members.flatMap((run) => run.messages).find((message) => message.role === 'user')?.text ?? '',
  }));
}

/** @param {{ run: string, thread: string | null }} run */
export const keyOf = ({ run, thread }) => (thread === null ? `run/${run}` : `thread/${thread}`);

/** @param {Conversation} conversation */
export const liveRun = (conversation) => conversation.runs.find(isLive) ?? null;
