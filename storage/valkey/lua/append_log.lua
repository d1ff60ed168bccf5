-- Appends events to a log, unless another process has taken over the stream.
-- KEYS: the stream that holds the log, the process that has taken it over (missing if none has).
-- ARGV: process that appends, id of the last event, id of the first event, frames (empty only to check the log), '1'
-- if they end the stream, '1' if the process keeps no earlier events, ms after which the log expires.
-- Returns 'ok', 'begun' if the log is new, 'lost' if events before the first one are missing, because Valkey has lost
-- them, or 'taken'. If the process keeps no earlier events either, a log that lacks some is deleted: a reader would
-- find out about the hole only in the middle of its response.
local owner = redis.call('GET', KEYS[2])
if owner and owner ~= ARGV[1] then return 'taken' end
local newest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
local last = newest and tonumber(string.match(newest[1], '^%d+')) or 0
if last < ARGV[3] - 1 and ARGV[6] ~= '1' then return 'lost' end
if ARGV[4] == '' then return 'ok' end
local begins = not newest or last < ARGV[3] - 1
if begins then redis.call('DEL', KEYS[1]) end
local added = redis.pcall('XADD', KEYS[1], ARGV[2] .. '-0', 'first', ARGV[3], 'frames', ARGV[4], 'closing', ARGV[5])
-- An id that is not greater than the last one is that of a batch whose first try succeeded without a response, or
-- that a log written anew still has.
if type(added) == 'table' and added.err and not string.find(added.err, 'equal or smaller', 1, true) then
    return added
end
redis.call('PEXPIRE', KEYS[1], ARGV[7])
if owner then redis.call('PEXPIRE', KEYS[2], ARGV[7]) end
return begins and 'begun' or 'ok'
