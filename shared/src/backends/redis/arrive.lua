-- Says that owners are online at a gateway. KEYS: their presence. ARGV 4: the gateway, 5: for how
-- long in ms.
for _, key in ipairs(KEYS) do
  redis.call('ZREMRANGEBYSCORE', key, '-inf', text(now))
  redis.call('ZADD', key, 'GT', text(now + ARGV[5]), ARGV[4])
  -- The key goes a while after the longest.
  local longest = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]
  redis.call('PEXPIRE', key, text(longest - now + 60000))
end
return { now }
