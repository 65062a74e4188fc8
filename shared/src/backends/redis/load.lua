-- A run with its asks, and a command: one reading. KEYS 1: run, 2: header, 3: asks, 4: command,
-- which may be left out.
return { now, run_of(KEYS[1], KEYS[2]), redis.call('LRANGE', KEYS[3], 0, -1),
  KEYS[4] and command(KEYS[4]) }
