// The types of PROTOCOL sections 2, 3 and 5, as the page uses them.

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type JsonObject = { readonly [key: string]: Json };

export type Code =
  | 'T0001' | 'T0002' | 'T0003' | 'T0004' | 'T0005' | 'T0006' | 'T0007' | 'T0008'
  | 'T0009' | 'T0010' | 'T0011' | 'T0012' | 'T1009' | 'T3101';

export type Kind = 'question' | 'ask_question' | 'approval' | 'redo';
export type Outcome = 'answered' | 'refused' | 'expired' | 'cancelled' | 'superseded';
export type RunStatus =
  | 'queued' | 'running' | 'waiting' | 'stalled' | 'succeeded' | 'failed' | 'cancelled';

export interface By { readonly sub: string; readonly device?: string | null }
export interface Settled { readonly outcome: Outcome; readonly by: By | null; readonly at: string }

export interface Ask {
  readonly id: string;
  readonly run: string;
  readonly agent: string;
  readonly step: string;
  readonly repeat: number;
  readonly kind: Kind;
  readonly tool: string;
  readonly input: Json;
  readonly questions: number;
  /** An approval whose input may be replaced. */
  readonly editable?: boolean;
  readonly state: 'open' | 'settled';
  readonly opened: string;
  readonly deadline: string;
  readonly drafts: { readonly [question: string]: Json };
  readonly outcome: Outcome | null;
  readonly by: By | null;
  readonly at: string | null;
  readonly data?: Json;
  /** Of a refusal. */
  readonly reason?: string | null;
}

export interface Call { readonly call: string; readonly step: string; readonly tool: string; readonly input: Json }
export interface Misfit { readonly question?: string | null; readonly pointer: string; readonly rule: string }

export interface RunBrief {
  readonly run: string;
  readonly agent: string;
  readonly thread?: string | null;
  readonly status: RunStatus;
  readonly rev: number;
}

export interface Hello { type: 'hello'; v: 1; node: string; pingS: number; deadlineS: number }
export interface Welcome {
  type: 'welcome'; epoch: string; seq: number; mode: 'resumed' | 'snapshot'; why?: string | null;
  you: { sub: string; roles: readonly string[] };
}
export interface Snapshot {
  type: 'snapshot'; seq: number; asks: readonly Ask[]; runs: readonly RunBrief[]; more: boolean;
}
export interface AskOpened { type: 'ask.opened'; seq: number; ask: Ask }
export interface AskDraft {
  type: 'ask.draft'; seq: number; run: string; step: string; repeat: number; n: number; data: Json;
}
export interface AskSettled {
  type: 'ask.settled'; seq: number; run: string; step: string; repeat: number;
  outcome: Outcome; by: By | null; at: string; data?: Json; cmd?: string | null;
  truncated?: boolean;
}
export interface RunStatusFrame extends RunBrief {
  type: 'run.status'; seq: number; reason?: string | null; output?: string | null;
}
export interface RunMessage {
  type: 'run.message'; seq: number; run: string; turn: number; role: 'user' | 'assistant';
  text: string; calls?: readonly Call[] | null; truncated?: boolean;
}
export interface RunTool {
  type: 'run.tool'; seq: number; run: string; turn: number; call: string; tool: string;
  state: 'started' | 'done' | 'failed'; result?: Json; truncated?: boolean;
}
export interface RunDelta {
  type: 'run.delta'; run: string; turn: number; attempt: number; offset: number; text: string;
}
export interface Ok {
  type: 'ok'; cmd: string; seq?: number; run?: string; step?: string; repeat?: number;
  outcome?: Outcome; status?: RunStatus;
}
export interface ErrorFrame {
  type: 'error'; cmd?: string | null; code: Code; detail: string; temporary: boolean;
  retryMs?: number | null; errors?: readonly Misfit[] | null; settled?: Settled | null;
}
export interface Ping { type: 'ping'; head: number }
export interface Drain { type: 'drain'; afterMs: number }

export type Durable = AskOpened | AskDraft | AskSettled | RunStatusFrame | RunMessage | RunTool;
export type ServerFrame =
  | Hello | Welcome | Snapshot | Durable | RunDelta | Ok | ErrorFrame | Ping | Drain;

export type Command =
  | { type: 'start'; agent: string; input: Json; thread?: string }
  | { type: 'approve'; run: string; step: string; repeat?: number; n?: number; data?: Json }
  | { type: 'refuse'; run: string; step: string; repeat?: number; reason?: string }
  | { type: 'cancel'; run: string }
  | { type: 'retry'; run: string };

export interface Agent {
  readonly name: string; readonly description?: string | null; readonly revision: string;
  readonly questions: boolean; readonly live: boolean;
}

/** `GET /v1/runs/{run}`; the list leaves `messages`, `tools` and perhaps `asks` out. */
export interface RunDetail extends RunBrief {
  readonly reason?: string | null;
  readonly output?: string | null;
  readonly created?: string;
  readonly updated?: string;
  readonly asks?: readonly Ask[];
  readonly messages?: readonly {
    readonly turn: number; readonly role: 'user' | 'assistant'; readonly text: string;
    readonly calls?: readonly Call[] | null;
  }[];
  readonly tools?: readonly {
    readonly turn: number; readonly call: string; readonly tool: string;
    readonly state: 'started' | 'done' | 'failed'; readonly result?: Json;
  }[];
}

/** What an ask's control needs from the outside. */
export interface Port {
  approve(answer: { run: string; step: string; repeat: number; n?: number; data?: Json }): Promise<Ok>;
  refuse(refusal: { run: string; step: string; repeat: number; reason?: string }): Promise<Ok>;
  /** The server's clock, in milliseconds since 1970. */
  now(): number;
  /** This device's own name, as it comes back in `by.device`. */
  readonly device: string;
}
