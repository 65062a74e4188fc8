-- Drops what has been kept long enough. KEYS 1: ended runs by the time of their going, 2: idle
-- threads, 3: all runs.
-- ARGV 4: how many of each, 5: how long a thread is kept in ms, 6: when to look again at a run
-- that a live thread keeps, in ms.
local many = ARGV[4]
local idle = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', text(now - ARGV[5]), 'LIMIT', 0, many)
for _, name in ipairs(idle) do
  local v = redis.call('HGET', prefix .. 'thread:' .. name, 'v')
  if not v or tonumber(v) <= newest then
    redis.call('UNLINK', prefix .. 'thread:' .. name, prefix .. 'past:' .. name)
    redis.call('ZREM', KEYS[2], name)
  end
end

for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', text(now), 'LIMIT', 0, many)) do
  local run = prefix .. 'run:' .. id
  local held = redis.call('HMGET', run, 'v', 'o', 's', 't')
  local v, owner, starter, thread = held[1], held[2], held[3], held[4]
  local since = false
  local kept = false
  if v and thread then
    local name = owner .. ':' .. thread
    kept = redis.call('EXISTS', prefix .. 'thread:' .. name) == 1
    since = redis.call('ZSCORE', KEYS[2], name)
  end
  if v and tonumber(v) > newest then
    -- Its own program drops it; here it only makes room for others.
    redis.call('ZADD', KEYS[1], text(now + ARGV[6]), id)
  elseif kept then
    local again = since and math.max(since + ARGV[5], now) or now + ARGV[6]
    redis.call('ZADD', KEYS[1], text(again), id)
  else
    local commands = redis.call('LRANGE', prefix .. 'cmds:' .. id, 0, -1)
    for _, command in ipairs(commands) do
      redis.call('UNLINK', command)
    end
    redis.call('UNLINK', run, prefix .. 'header:' .. id, prefix .. 'asks:' .. id,
      prefix .. 'msgs:' .. id, prefix .. 'steps:' .. id, prefix .. 'cmds:' .. id)
    redis.call('ZREM', KEYS[1], id)
    redis.call('ZREM', KEYS[3], id)
    if starter then
      redis.call('ZREM', prefix .. 'runs:' .. starter, id)
    end
    -- A system run's log goes with it; a person's head never goes back.
    if owner == 's:' .. id then
      redis.call('UNLINK', prefix .. 'log:' .. owner, prefix .. 'head:' .. owner)
    end
  end
end
return { now }
