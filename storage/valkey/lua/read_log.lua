-- Reads the next entries of a log.
-- KEYS: the stream that holds the log. ARGV: id of the last event that was read, number of bytes of the next
-- entry that were read, maximum number of bytes to return.
-- Returns a list of entries: id, id of the first event, '1' if the entry is the last one, length, frames. If
-- the next entry is longer than the maximum, only a part of it is returned, unless it also holds events that
-- were read.
local after, offset, most = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local at = ARGV[1] .. '-0'
local found, size = {}, 0
repeat
    local entry = redis.call('XRANGE', KEYS[1], '(' .. at, '+', 'COUNT', 1)[1]
    if not entry then break end
    local fields = {}
    for i = 1, #entry[2], 2 do fields[entry[2][i]] = entry[2][i + 1] end
    local frames, length = fields.frames, #fields.frames
    if #found > 0 and size + length > most then break end
    if tonumber(fields.first) > after then frames = string.sub(frames, offset + 1, offset + most) end
    found[#found + 1] = {entry[1], fields.first, fields.closing, length, frames}
    at, offset, size = entry[1], 0, size + #frames
until size >= most or #found >= 256
return found
