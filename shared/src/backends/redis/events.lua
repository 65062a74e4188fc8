-- An owner's frames from one on, each with what it refers to. KEYS 1: head, 2: log.
-- ARGV 4: the first, 5: how many.
local kept = { m = 'msgs:', a = 'asks:' }
local frames = {}
local entries = redis.call('XRANGE', KEYS[2], ARGV[4] .. '-0', '+', 'COUNT', ARGV[5])
for place, entry in ipairs(entries) do
  local kind, value = unpack(entry[2])
  local referent = false
  if kept[kind] then
    local run, number = string.match(value, '^(%S+) (%d+)$')
    referent = redis.call('LINDEX', prefix .. kept[kind] .. run, number)
  end
  frames[place] = { entry[1], kind, value, referent }
end
return { redis.call('GET', KEYS[1]), frames }
