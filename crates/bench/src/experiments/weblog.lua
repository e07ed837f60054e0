-- How many of the records have status 200 and more than 5,000 bytes: the last two words of each, parted by tabs.
local found = 0
for number = 0, tonumber(ARGV[1]) - 1 do
  local record = redis.call('GET', string.format('key:%012d', number))
  local status, bytes = string.match(record, '\t(%d+)\t(%S+)$')
  if status == '200' and (tonumber(bytes) or 0) > 5000 then
    found = found + 1
  end
end
return found
