-- A person's live runs and open asks, and their head: one reading. KEYS 1: head, 2: live runs,
-- 3: open asks.
local runs, asks = {}, {}
for _, id in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
  local run = run_of(prefix .. 'run:' .. id, prefix .. 'header:' .. id)
  if run[1] and tonumber(run[1]) <= newest then
    runs[#runs + 1] = run
  end
end
for _, member in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do
  local run, place = string.match(member, ' (%S+) (%d+)$')
  local v = redis.call('HGET', prefix .. 'run:' .. run, 'v')
  if v and tonumber(v) <= newest then
    asks[#asks + 1] = redis.call('LINDEX', prefix .. 'asks:' .. run, place)
  end
end
return { now, redis.call('GET', KEYS[1]), runs, asks }
