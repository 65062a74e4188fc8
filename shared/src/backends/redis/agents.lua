-- Notes that a worker with these agents is alive. KEYS 1: what is known of agents.
-- ARGV 4: whether the worker has just started, then of each: field, version, record.
for at = 5, #ARGV, 3 do
  local field, v, record = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local held = redis.call('HGET', KEYS[1], field)
  local announced = text(now)
  local known, first = nil, nil
  if held then
    known, first = string.match(held, '^(%d+) (%d+)')
  end
  -- A record of a newer version is left alone.
  if not known or tonumber(known) <= tonumber(v) then
    if first and ARGV[4] == '0' then
      announced = first
    end
    redis.call('HSET', KEYS[1], field, v .. ' ' .. announced .. ' ' .. text(now) .. ' ' .. record)
  end
end
return { now }
