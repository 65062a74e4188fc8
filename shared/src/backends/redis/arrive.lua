-- Says that owners are online at a gateway. KEYS: their presence. ARGV 4: the gateway, 5: for how
-- long in ms.
for _, key in ipairs(KEYS) do
  redis.call('ZREMRANGEBYSCORE', key, '-inf', text(now))
  redis.call('ZADD', key, 'GT', text(now + ARGV[5]), ARGV[4])
  -- Nobody's presence is longer than the longest, so the key goes some time after it.
  redis.call('PEXPIRE', key, text(ARGV[5] * 10))
end
return { now }
