-- A part of a list, newest first. KEYS 1: the index, whose members begin with an id.
-- ARGV 4: runs or asks, 5: after this time, 6: and this id ('' for the first part), 7: how many,
-- 8: how many members are looked at, 9: agent, 10: thread ('' for any), 11..: statuses (none for
-- any). Gives the items and where the next part begins; nothing where this is the last.
local kind, wanted, looks = ARGV[4], tonumber(ARGV[7]), tonumber(ARGV[8])
local after_id = ARGV[6]
local from = after_id == '' and '+inf' or ARGV[5]
local statuses = {}
for place = 11, #ARGV do
  statuses[ARGV[place]] = true
end

local function item(member)
  local id, run, place = member, member, nil
  if kind == 'asks' then
    id, run, place = string.match(member, '^(%S+) (%S+) (%d+)$')
  end
  local held = redis.call('HMGET', prefix .. 'run:' .. run, 'v', 'a', 't', 'status')
  local fits = held[1] and tonumber(held[1]) <= newest
    and (ARGV[9] == '' or held[2] == ARGV[9])
    and (ARGV[10] == '' or held[3] == ARGV[10])
    and (#ARGV < 11 or statuses[held[4]])
  if not fits then
    return id, nil
  end
  if kind == 'asks' then
    return id, redis.call('LINDEX', prefix .. 'asks:' .. run, place)
  end
  return id, run_of(prefix .. 'run:' .. run, prefix .. 'header:' .. run)
end

local items, offset = {}, 0
while true do
  local part = redis.call('ZREVRANGEBYSCORE', KEYS[1], from, '-inf', 'WITHSCORES', 'LIMIT',
    offset, 100)
  for place = 1, #part, 2 do
    local id, found = string.match(part[place], '^%S+'), nil
    -- Those of the same moment that the part before has shown already.
    if after_id == '' or part[place + 1] ~= ARGV[5] or id < after_id then
      id, found = item(part[place])
      if found then
        items[#items + 1] = { part[place + 1], id, found }
      end
    end
    looks = looks - 1
    if #items == wanted or looks <= 0 then
      return { now, items, part[place + 1], id }
    end
  end
  if #part < 200 then
    return { now, items }
  end
  offset = offset + 100
end
