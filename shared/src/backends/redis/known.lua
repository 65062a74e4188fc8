-- All agents that are known. KEYS 1: what is known of agents.
return { now, redis.call('HVALS', KEYS[1]) }
