-- Drops agents that nobody has seen for long. KEYS 1: what is known of agents. ARGV 4: how long
-- they are kept in ms, 5: the newest version of their records known here.
local all = redis.call('HGETALL', KEYS[1])
for at = 1, #all, 2 do
  local v, seen = string.match(all[at + 1], '^(%d+) %d+ (%d+)')
  if v and tonumber(v) <= tonumber(ARGV[5]) and tonumber(seen) <= now - ARGV[4] then
    redis.call('HDEL', KEYS[1], all[at])
  end
end
return { now }
