-- What the scripts of a fleet need: the server's time, and to write after reading it. Leaves nothing behind.
local now = redis.call('TIME')
redis.call('SET', KEYS[1], now[1], 'PX', 1000)
return redis.call('DEL', KEYS[1])
