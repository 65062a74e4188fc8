-- An owner's frames from one on. KEYS 1: head, 2: log. ARGV 4: the first, 5: how many.
return { redis.call('GET', KEYS[1]), redis.call('XRANGE', KEYS[2], ARGV[4] .. '-0', '+', 'COUNT',
  ARGV[5]) }
