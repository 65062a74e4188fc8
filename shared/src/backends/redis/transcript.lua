-- A run's conversation. KEYS 1: messages, 2: journal.
return { now, redis.call('LRANGE', KEYS[1], 0, -1), redis.call('HVALS', KEYS[2]) }
