-- A system run's state and its log's head: one reading. KEYS 1: head, 2: run, 3: header, 4: asks.
return { now, redis.call('GET', KEYS[1]), run_of(KEYS[2], KEYS[3]),
  redis.call('LRANGE', KEYS[4], 0, -1) }
