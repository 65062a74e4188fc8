-- A hint was not taken: where the run still needs one, it is due again soon, and this hint does
-- not count among those that space the next.
-- KEYS 1: run, 2: ready. ARGV 4: the run's id, 5: how soon in ms.
local held = redis.call('HMGET', KEYS[1], 'v', 'pushes')
local score = redis.call('ZSCORE', KEYS[2], ARGV[4])
local soon = now + ARGV[5]
if held[1] and tonumber(held[1]) <= newest and score and tonumber(score) > soon then
  redis.call('ZADD', KEYS[2], text(soon), ARGV[4])
  if tonumber(held[2] or 0) > 0 then
    redis.call('HINCRBY', KEYS[1], 'pushes', -1)
  end
end
return { now }
