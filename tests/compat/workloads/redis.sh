# A server on a socket: written to, saved in the background, started again.
start() {
    redis-server --port 0 --unixsocket "$PWD/redis.sock" --dir "$PWD" --appendonly yes --daemonize yes \
        --pidfile "$PWD/redis.pid" --logfile "$PWD/redis.log" > log
    tries=0
    until redis-cli -s redis.sock ping > log 2>&1; do
        tries=$((tries + 1))
        test "$tries" -lt 100
        sleep 0.1
    done
}
stop() {
    redis-cli -s redis.sock shutdown save > log 2>&1 || :
    tries=0
    while [ -e redis.pid ]; do
        tries=$((tries + 1))
        test "$tries" -lt 100
        sleep 0.1
    done
}
start
trap stop EXIT
redis-cli -s redis.sock set name value > log
redis-cli -s redis.sock bgsave > log
redis-cli -s redis.sock bgrewriteaof > log
redis-benchmark -s redis.sock -n 2000 -c 10 -q -t set,get > log
stop
start
test "$(redis-cli -s redis.sock get name)" = value
stop
trap - EXIT
