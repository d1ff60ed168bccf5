-- Appends events to a log, unless another process has taken over the stream.
-- KEYS: the stream that holds the log, the process that has taken it over (missing if none has).
-- ARGV: process that appends, id of the last event, id of the first event, frames, '1' if they end the stream,
-- '1' if the log must exist, ms after which it expires.
-- Returns 'ok', 'lost' if the log does not exist although it must, or 'taken'.
local owner = redis.call('GET', KEYS[2])
if owner and owner ~= ARGV[1] then return 'taken' end
if ARGV[6] == '1' and redis.call('EXISTS', KEYS[1]) == 0 then return 'lost' end
local added = redis.pcall('XADD', KEYS[1], ARGV[2] .. '-0', 'first', ARGV[3], 'frames', ARGV[4], 'closing', ARGV[5])
-- An id that is not greater than the last one is that of a batch whose first try succeeded without a response.
if type(added) == 'table' and added.err and not string.find(added.err, 'equal or smaller', 1, true) then
    return added
end
redis.call('PEXPIRE', KEYS[1], ARGV[7])
if owner then redis.call('PEXPIRE', KEYS[2], ARGV[7]) end
return 'ok'
