-- Moves the end of a lease that is not over. KEYS 1: run, 2: leases.
-- ARGV 4: the run's id, 5: token, 6: how long in ms.
local held = redis.call('HMGET', KEYS[1], 'v', 'tok', 'o', 'until')
if held[1] and tonumber(held[1]) > newest then
  return { now, 'newer', 'run ' .. ARGV[4], tonumber(held[1]) }
end
if held[2] ~= ARGV[5] or tonumber(held[4]) <= now then
  return { now, 'lost' }
end
local ends = text(now + ARGV[6])
redis.call('HSET', KEYS[1], 'until', ends)
redis.call('ZADD', KEYS[2], ends, ARGV[4])
return { now, 'held', online(prefix .. 'online:' .. held[3]) }
