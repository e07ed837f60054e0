-- One iteration of PageRank over the objects adj:NODE (32-bit numbers, least byte first) and rank:NODE (a double).
local nodes, damping = tonumber(ARGV[1]), tonumber(ARGV[2])
local sums, nowhere = {}, 0
for node = 0, nodes - 1 do
  sums[node] = 0
end
for node = 0, nodes - 1 do
  local objects = redis.call('MGET', 'adj:' .. node, 'rank:' .. node)
  local targets, rank = objects[1], struct.unpack('<d', objects[2])
  if #targets == 0 then
    nowhere = nowhere + rank
  end
  local share = rank / (#targets / 4)
  for at = 1, #targets, 4 do
    local target = struct.unpack('<I4', targets, at)
    sums[target] = sums[target] + share
  end
end
local base = (1 - damping + damping * nowhere) / nodes
for node = 0, nodes - 1 do
  redis.call('SET', 'rank:' .. node, struct.pack('<d', base + damping * sums[node]))
end
return nodes
