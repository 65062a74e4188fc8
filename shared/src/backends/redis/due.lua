-- Takes what is due. Ready runs are moved back in the same change, so that one process hints
-- each. KEYS 1: ready, 2: open asks by deadline, 3: leases.
-- ARGV 4: how many of each, 5..: the waits in ms after the first, second, ... hint.
local function take(index, run_of_member)
  local taken, offset, wanted = {}, 0, tonumber(ARGV[4])
  while #taken < wanted do
    local part = redis.call('ZRANGEBYSCORE', index, '-inf', text(now), 'LIMIT', offset, wanted)
    for _, member in ipairs(part) do
      local v = redis.call('HGET', prefix .. 'run:' .. run_of_member(member), 'v')
      -- A newer program's records are its own to look after.
      if v and tonumber(v) <= newest then
        taken[#taken + 1] = member
      end
      if #taken == wanted then
        break
      end
    end
    if #part < wanted then
      break
    end
    offset = offset + wanted
  end
  return taken
end

local function itself(member)
  return member
end
local function last_word(member)
  return string.match(member, '%S+$')
end

local ready = take(KEYS[1], itself)
for _, id in ipairs(ready) do
  local pushes = redis.call('HINCRBY', prefix .. 'run:' .. id, 'pushes', 1)
  local wait = ARGV[math.min(4 + pushes, #ARGV)]
  redis.call('ZADD', KEYS[1], text(now + wait), id)
end
return { now, ready, take(KEYS[2], last_word), take(KEYS[3], itself) }
