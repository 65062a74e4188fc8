-- The embedded store, version 1. Columns beside a JSON record exist for indexes and conditions;
-- the record is the truth. Times are milliseconds since 1970 by the store's clock.

CREATE TABLE meta (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- An owner's head: the seq of the newest frame. A person's is never deleted.
CREATE TABLE heads (
  owner TEXT PRIMARY KEY,
  seq   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE log (
  owner TEXT NOT NULL,
  seq   INTEGER NOT NULL,
  frame TEXT NOT NULL,
  PRIMARY KEY (owner, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE runs (
  id          TEXT PRIMARY KEY,
  owner       TEXT NOT NULL,
  starter     TEXT NOT NULL,
  agent       TEXT NOT NULL,
  thread      TEXT,
  created     INTEGER NOT NULL,
  v           INTEGER NOT NULL,
  rev         INTEGER NOT NULL,
  status      TEXT NOT NULL,
  live        INTEGER NOT NULL,
  ended       INTEGER,
  -- The lease. Its end is kept here alone, since a renewal changes nothing else.
  token       TEXT,
  lease_until INTEGER,
  -- The revision and seq of the newest claim, for its repetition.
  claim       TEXT,
  -- A worker's newest op and its reply; only a worker's commit writes it.
  last_op     TEXT,
  -- When it is hinted first by its state, when next, and how often it was since it changed.
  ready_from  INTEGER,
  ready_at    INTEGER,
  pushes      INTEGER NOT NULL DEFAULT 0,
  header      TEXT NOT NULL
) STRICT;
CREATE INDEX runs_created ON runs (created, id);
CREATE INDEX runs_starter ON runs (starter, created, id);
CREATE INDEX runs_thread ON runs (starter, thread, created, id) WHERE thread IS NOT NULL;
CREATE INDEX runs_status ON runs (status, created, id);
CREATE INDEX runs_live ON runs (owner, created, id) WHERE live = 1;
CREATE INDEX runs_ready ON runs (ready_at) WHERE ready_at IS NOT NULL;
CREATE INDEX runs_lease ON runs (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX runs_ended ON runs (ended) WHERE live = 0;

CREATE TABLE asks (
  id      TEXT PRIMARY KEY,
  run     TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  number  INTEGER NOT NULL,
  v       INTEGER NOT NULL,
  owner   TEXT NOT NULL,
  starter TEXT NOT NULL,
  agent   TEXT NOT NULL,
  opened  INTEGER NOT NULL,
  -- The deadline, while it is open.
  due     INTEGER,
  record  TEXT NOT NULL,
  UNIQUE (run, number)
) STRICT;
CREATE INDEX asks_due ON asks (due) WHERE due IS NOT NULL;
CREATE INDEX asks_open ON asks (opened, id) WHERE due IS NOT NULL;
CREATE INDEX asks_open_agent ON asks (agent, opened, id) WHERE due IS NOT NULL;
CREATE INDEX asks_open_starter ON asks (starter, opened, id) WHERE due IS NOT NULL;
CREATE INDEX asks_open_owner ON asks (owner, opened, run, number) WHERE due IS NOT NULL;

CREATE TABLE messages (
  run    TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  record TEXT NOT NULL,
  UNIQUE (run, number)
) STRICT;

-- In the order of first writing, which the rowid keeps when an entry is written over.
CREATE TABLE journal (
  run    TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  step   TEXT NOT NULL,
  record TEXT NOT NULL,
  UNIQUE (run, step)
) STRICT;

CREATE TABLE commands (
  key       TEXT PRIMARY KEY,
  -- The run whose ask it settled: it is kept as long as that.
  kept_with TEXT REFERENCES runs (id) ON DELETE CASCADE,
  at        INTEGER NOT NULL,
  record    TEXT NOT NULL
) STRICT;
CREATE INDEX commands_kept_with ON commands (kept_with) WHERE kept_with IS NOT NULL;
CREATE INDEX commands_at ON commands (at) WHERE kept_with IS NULL;

CREATE TABLE threads (
  owner      TEXT NOT NULL,
  name       TEXT NOT NULL,
  v          INTEGER NOT NULL,
  rev        INTEGER NOT NULL,
  idle_since INTEGER,
  record     TEXT NOT NULL,
  PRIMARY KEY (owner, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX threads_idle ON threads (idle_since) WHERE idle_since IS NOT NULL;

CREATE TABLE thread_ended (
  owner  TEXT NOT NULL,
  name   TEXT NOT NULL,
  number INTEGER NOT NULL,
  run    TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  PRIMARY KEY (owner, name, number),
  FOREIGN KEY (owner, name) REFERENCES threads (owner, name) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX thread_ended_run ON thread_ended (run);

CREATE TABLE agents (
  name      TEXT NOT NULL,
  revision  TEXT NOT NULL,
  v         INTEGER NOT NULL,
  announced INTEGER NOT NULL,
  seen      INTEGER NOT NULL,
  record    TEXT NOT NULL,
  PRIMARY KEY (name, revision)
) STRICT, WITHOUT ROWID;
