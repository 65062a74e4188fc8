-- What every script begins with.
-- ARGV 1: milliseconds to add to the server's clock; 0 but in tests.
-- ARGV 2: what the partition's keys begin with. 3: the newest version of records known here.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[1]
local prefix = ARGV[2]
local newest = tonumber(ARGV[3])

-- A whole number as text; Lua's own way turns large ones into 1.8e+12.
local function text(number)
  return string.format('%.0f', number)
end

-- The gateways where an owner is online.
local function online(key)
  return redis.call('ZRANGEBYSCORE', key, '(' .. text(now), '+inf')
end

-- The record of a command, unless it has been kept long enough. It begins with its end.
local function command(key)
  local record = redis.call('GET', key)
  if not record then
    return false
  end
  local over = tonumber(string.match(record, '^%d+'))
  return (over == 0 or over > now) and record
end

-- What a run's record is made of again in Rust.
local function run_of(key, header)
  local fields = redis.call('HMGET', key, 'v', 'rev', 'tok', 'until', 'up')
  fields[6] = redis.call('GET', header)
  return fields
end
