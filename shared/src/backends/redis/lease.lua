-- Claims a run, or says why not. What it writes is what `Run::apply` decides for
-- `Event::Leased`: the header stays as it is and the fields beside it tell what has changed, so
-- that no JSON is written here (numbers keep their digits).
-- KEYS 1: run, 2: header, 3: asks, 4: messages, 5: journal, 6: ready, 7: leases.
-- ARGV 4: the run's id, 5: nonce, 6: how long in ms, 7: how many frames are kept.
local id, nonce = ARGV[4], ARGV[5]
local held = redis.call('HMGET', KEYS[1], 'v', 'rev', 'status', 'head', 'nb', 'fence', 'tok',
  'until', 'o', 'claim')
local v, rev, status, head, not_before = unpack(held, 1, 5)
local fence, token, lease_end, owner, claim = unpack(held, 6, 10)
if not v then
  return { now, 'none' }
end
if tonumber(v) > newest then
  return { now, 'newer', 'run ' .. id, tonumber(v) }
end

local again = token == fence .. ' ' .. nonce and tonumber(lease_end) > now
if not again then
  if status == 'running' then
    return { now, 'held' }
  end
  if (status ~= 'queued' and status ~= 'stalled') or head ~= '1' then
    return { now, 'none' }
  end
  if tonumber(not_before) > now then
    return { now, 'early', tonumber(not_before) }
  end
  local seq = text(redis.call('GET', prefix .. 'head:' .. owner) + 1)
  local ends = text(now + ARGV[6])
  redis.call('XADD', prefix .. 'log:' .. owner, 'MAXLEN', '~', ARGV[7], seq .. '-0', 's',
    id .. ' running ' .. text(rev + 1))
  redis.call('SET', prefix .. 'head:' .. owner, seq)
  fence = text(fence + 1)
  claim = text(rev + 1) .. ' ' .. seq
  redis.call('HSET', KEYS[1], 'rev', text(rev + 1), 'status', 'running', 'fence', fence,
    'tok', fence .. ' ' .. nonce, 'until', ends, 'up', text(now), 'claim', claim)
  redis.call('HDEL', KEYS[1], 'pushes')
  redis.call('ZREM', KEYS[6], id)
  redis.call('ZADD', KEYS[7], ends, id)
end
return { now, 'leased', claim, run_of(KEYS[1], KEYS[2]), redis.call('LRANGE', KEYS[3], 0, -1),
  redis.call('LRANGE', KEYS[4], 0, -1), redis.call('HVALS', KEYS[5]),
  online(prefix .. 'online:' .. owner) }
