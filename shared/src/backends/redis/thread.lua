-- A thread. KEYS 1: its hash.
return { now, redis.call('HMGET', KEYS[1], 'v', 'h') }
