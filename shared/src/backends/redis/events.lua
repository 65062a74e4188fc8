-- An owner's frames from one on, each with what it refers to. KEYS 1: head, 2: log.
-- ARGV 4: the first, 5: how many.
local function referent(kind, value)
  local run, number = string.match(value, '^(%S+) (%S+)')
  if kind == 'm' then
    return redis.call('LINDEX', prefix .. 'msgs:' .. run, number)
  elseif kind == 'a' then
    return redis.call('LINDEX', prefix .. 'asks:' .. run, number)
  elseif kind == 's' then
    local held = redis.call('HMGET', prefix .. 'run:' .. run, 'a', 't')
    return held[1] and held
  end
  return false
end

local frames = {}
local entries = redis.call('XRANGE', KEYS[2], ARGV[4] .. '-0', '+', 'COUNT', ARGV[5])
for place, entry in ipairs(entries) do
  local kind, value = unpack(entry[2])
  frames[place] = { entry[1], kind, value, referent(kind, value) }
end
return { redis.call('GET', KEYS[1]), frames }
