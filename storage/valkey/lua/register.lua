-- Records that a process has registered its streams in Valkey, and whether all processes have.
-- KEYS: registrations (hash of processes), the run id of the Valkey in which all live processes are registered.
-- ARGV: process, then nothing to begin; to finish, the run id that the beginning returned, and all live processes.
-- A registration is the run id, empty until it is finished. It counts only if Valkey has neither lost its keys nor
-- restarted since the beginning. Returns the run id, or '' if the registration does not count.
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
if not ARGV[2] then
    redis.call('HSET', KEYS[1], ARGV[1], '')
    return run
end
if ARGV[2] ~= run or redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return '' end
redis.call('HSET', KEYS[1], ARGV[1], run)
for i = 3, #ARGV do
    if redis.call('HGET', KEYS[1], ARGV[i]) ~= run then return run end
end
redis.call('SET', KEYS[2], run)
return run
