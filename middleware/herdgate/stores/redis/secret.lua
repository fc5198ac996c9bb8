-- The secret that signs the fleet's tickets: the first gateway's, kept for the others.
--
-- KEYS[1]  where it is
-- ARGV[1]  the secret of this gateway, in case there is none
-- Returns  the one that holds

redis.call('SET', KEYS[1], ARGV[1], 'NX')
return redis.call('GET', KEYS[1])
