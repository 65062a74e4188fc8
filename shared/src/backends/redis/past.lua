-- The conversations of a thread's ended runs numbered below a number, in their order.
-- KEYS 1: the thread's past. ARGV 4: the number.
local all = {}
for _, run in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. ARGV[4])) do
  all[#all + 1] = { redis.call('LRANGE', prefix .. 'msgs:' .. run, 0, -1),
    redis.call('HVALS', prefix .. 'steps:' .. run) }
end
return { now, all }
