-- Writes one transition, or says why not. Checked in the order of `ports::verdict`: op known,
-- token, revisions, clock. Everything is checked before anything is written: Redis takes nothing
-- back.
-- KEYS 1: the owner's head, 2: log, 3: presence, 4: leases. The others are named by number.
local at = 3
local function take()
  at = at + 1
  return ARGV[at]
end
local function number()
  return tonumber(take())
end
local function key()
  return KEYS[number()]
end

local by, slot, right, op = take(), nil, nil, nil
if by == 'worker' then
  slot, right, op = key(), take(), take()
  local held = redis.call('HMGET', slot, 'op', 'told', 'tok')
  if held[1] == right .. ' ' .. op then
    return { 'done', unpack(cmsgpack.unpack(held[2])) }
  end
  if held[3] ~= right then
    return { 'lost' }
  end
elseif by == 'caller' then
  slot = key()
  local known = command(slot)
  if known then
    return { 'known', known }
  end
end

local conflict = false
local runs = {}
for place = 1, number() do
  local run = { key = key(), id = take(), rev = number(), token = take(), lease_end = take() }
  local held = redis.call('HMGET', run.key, 'v', 'rev', 'tok')
  if held[1] and tonumber(held[1]) > newest then
    return { 'newer', 'run ' .. run.id, tonumber(held[1]) }
  end
  conflict = conflict or run.rev ~= tonumber(held[2] or 0)
  run.held = held[3]
  runs[place] = run
end
for _ = 1, number() do
  local thread, rev = key(), number()
  local held = redis.call('HMGET', thread, 'v', 'rev')
  if held[1] and tonumber(held[1]) > newest then
    return { 'newer', 'a thread', tonumber(held[1]) }
  end
  conflict = conflict or rev ~= tonumber(held[2] or 0)
end
if conflict then
  return { 'conflict' }
end

local clock, when = take(), number()
if (clock == 'before' and now >= when) or (clock == 'from' and now < when) then
  return { 'untimely', now }
end

-- The log first: Redis itself refuses an entry that does not follow the newest.
local seq = tonumber(redis.call('GET', KEYS[1]) or 0)
local frames, kept = number(), take()
for frame = 1, frames do
  seq = seq + 1
  local id, kind, value = text(seq) .. '-0', take(), take()
  if kind == 'm' then
    -- The messages of this commit come after those that are there.
    value = value .. ' ' .. text(redis.call('LLEN', key()) + number())
  end
  if frame == frames then
    redis.call('XADD', KEYS[2], 'MAXLEN', '~', kept, id, kind, value)
  else
    redis.call('XADD', KEYS[2], id, kind, value)
  end
end
if frames > 0 then
  redis.call('SET', KEYS[1], text(seq))
end

-- A renewal changes no revision, so whoever writes under the same token may know an older end of
-- the lease than the store.
for _, run in ipairs(runs) do
  if run.token == '' then
    if run.held then
      redis.call('HDEL', run.key, 'tok', 'until')
      redis.call('ZREM', KEYS[4], run.id)
    end
  elseif run.token ~= run.held then
    redis.call('HSET', run.key, 'tok', run.token, 'until', run.lease_end)
    redis.call('ZADD', KEYS[4], run.lease_end, run.id)
  end
end

-- Asks by their number, journal entries by their step in the order of first writing.
for _ = 1, number() do
  local asks, place, ask = key(), number(), take()
  if place < redis.call('LLEN', asks) then
    redis.call('LSET', asks, place, ask)
  else
    redis.call('RPUSH', asks, ask)
  end
end
for _ = 1, number() do
  local steps, step, entry = key(), take(), take()
  local held = redis.call('HGET', steps, step)
  local place = held and string.match(held, '^%d+') or redis.call('HLEN', steps)
  redis.call('HSET', steps, step, place .. ' ' .. entry)
end

-- All else is as the caller lists it: a command, its key, its arguments.
for _ = 1, number() do
  local size, name, target = number(), take(), key()
  redis.call(name, target, unpack(ARGV, at + 1, at + size))
  at = at + size
end

local gateways = online(KEYS[3])
if by == 'worker' then
  local told = cmsgpack.pack({ now, seq, gateways })
  redis.call('HSET', slot, 'op', right .. ' ' .. op, 'told', told)
elseif by == 'caller' then
  -- 0: as long as the run whose ask it settled.
  local kept, rest = number(), take()
  if kept == 0 then
    redis.call('SET', slot, '0 ' .. text(seq) .. ' ' .. rest)
    redis.call('RPUSH', key(), slot)
  else
    redis.call('SET', slot, text(now + kept) .. ' ' .. text(seq) .. ' ' .. rest, 'PX', kept)
  end
end
return { 'done', now, seq, gateways }
