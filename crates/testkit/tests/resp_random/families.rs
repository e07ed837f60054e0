//! Templates of requests by family; their notation is explained in `grammar.rs`. What is asked is one thing, how answers
//! are compared another: see `known.rs`.

pub const KEYS: &str = "
    DEL { $key } $key
    UNLINK $key
    EXISTS $key { $key }
    TOUCH $key { $key }
    TYPE $key
    KEYS $pattern
    DBSIZE
    RENAME $key $key
    RENAMENX $key $key
    COPY $key $key { DB $db | REPLACE }
    MOVE $key $db
    SELECT $db
    SWAPDB $db $db
    EXPIRE $key $secs [ NX | XX | GT | LT ]
    PEXPIRE $key $millis [ NX | XX | GT | LT ]
    EXPIREAT $key $at [ NX | XX | GT | LT ]
    PEXPIREAT $key $atms [ NX | XX | GT | LT ]
    EXPIREAT $key $at { NX | XX | GT | LT }
    TTL $key
    PTTL $key
    EXPIRETIME $key
    PEXPIRETIME $key
    PERSIST $key
    OBJECT ENCODING $key
    OBJECT REFCOUNT $key
    SCAN 0 COUNT 10000 { MATCH $pattern | TYPE ( string | list | set | zset | hash | stream | x ) }
    SCAN 0 COUNT 10000
    SORT ( $list | $set | $zset ) { BY ( w_* | nosort | h1->* | * | s1 | h*->a ) | LIMIT $int $count | GET ( # | w_* | h1->* | s1 | *->a | h1-> ) | ASC | DESC | ALPHA | STORE $key }
    SORT ( $list | $set ) ALPHA { LIMIT $int $count | GET ( # | w_* ) | ASC | DESC | STORE $list }
    SORT_RO ( $list | $set | $zset ) { BY ( w_* | nosort ) | LIMIT $int $count | GET ( # | w_* ) | ASC | DESC | ALPHA }
    MSET w_a $value w_b $value w_1 $int w_2 $float
    DUMP nokey
    RESTORE $key $int $value [ REPLACE ]
    RESTORE $key $int $value { REPLACE | ABSTTL | IDLETIME $int | FREQ $int }
    FLUSHDB [ SYNC | ASYNC | $option ]
    FLUSHALL
    RANDOMKEY $key
    WAIT 0 1
    ECHO $value
    PING [ $value ]
    OBJECT $option $key
";

pub const STRINGS: &str = "
    SET $str $value
    SET $num $int
    SET $num $float
    SET $str $value { NX | XX | GET | EX $secs | PX $millis | EXAT $at | PXAT $atms | KEEPTTL }
    SET $str $value [ NX | XX ] [ GET ]
    SETEX $str $secs $value
    PSETEX $str $millis $value
    SETNX $str $value
    GET $str
    GETSET $str $value
    GETDEL $str
    GETEX $str [ EX $secs | PX $millis | EXAT $at | PXAT $atms | PERSIST ]
    GETEX $str { EX $secs | PERSIST | $option }
    MGET $str { $str }
    MSET $str $value { $str $value }
    MSETNX $str $value { $str $value }
    APPEND $str $value
    STRLEN $str
    GETRANGE $str $int $int
    SUBSTR $str $int $int
    SETRANGE $str $bytes $value
    INCR $num
    DECR $num
    INCRBY $num $int
    DECRBY $num $int
    INCRBY $num $edge
    DECRBY $num $edge
    INCRBYFLOAT $num $float
    INCRBYFLOAT $num $float
    LCS $str $str { LEN | IDX | MINMATCHLEN $int | WITHMATCHLEN }
    LCS $str $str [ LEN | IDX ] [ WITHMATCHLEN ]
    MSET s1 ohmytext s2 mynewtext
    OBJECT ENCODING $num
";

pub const BITS: &str = "
    SET $str $value
    SETBIT $str $offset $bit
    GETBIT $str $offset
    BITCOUNT $str
    BITCOUNT $str $int $int [ BYTE | BIT ]
    BITCOUNT $str $offset $int [ BYTE | BIT | $option ]
    BITPOS $str $bit
    BITPOS $str $bit $int
    BITPOS $str $bit $int $int [ BYTE | BIT ]
    BITPOS $str $bit $offset $int [ BYTE | BIT | $option ]
    BITOP ( AND | OR | XOR | NOT ) $str $str { $str }
    BITOP ( AND | OR | XOR | NOT | $option ) $key $key
    BITFIELD $str { GET $bits $place | SET $bits $place $int | INCRBY $bits $place $int | OVERFLOW ( WRAP | SAT | FAIL ) }
    BITFIELD $str OVERFLOW ( WRAP | SAT | FAIL ) { INCRBY $bits $place $edge | SET $bits $place $edge | INCRBY $bits $place $int }
    BITFIELD $str [ OVERFLOW $option ] { INCRBY $bits $place $int }
    BITFIELD_RO $str { GET $bits $place } [ SET $bits $place $int ]
    STRLEN $str
";

pub const LISTS: &str = "
    LPUSH $list $value { $value }
    RPUSH $list $value { $value }
    RPUSH $list $value { $member } { $member }
    LPUSHX $list $value
    RPUSHX $list { $value }
    LPOP $list [ $count ]
    RPOP $list [ $count ]
    LLEN $list
    LINDEX $list $int
    LSET $list $int $value
    LRANGE $list $int $int
    LRANGE $list 0 -1
    LTRIM $list $int $int
    LREM $list $int $member
    LINSERT $list ( BEFORE | AFTER ) $member $value
    LINSERT $list $option $member $value
    LPOS $list $member { RANK $int | MAXLEN $count | COUNT $count }
    LPOS $list $member RANK $int COUNT $count
    LMOVE $list $list ( LEFT | RIGHT ) ( LEFT | RIGHT )
    RPOPLPUSH $list $list
    LMPOP $lists ( LEFT | RIGHT ) [ COUNT $count ]
    LMPOP $lists ( LEFT | RIGHT ) { COUNT $count }
    BLPOP $list $list $soon
    BRPOP $list $soon
    BLMOVE $list $list ( LEFT | RIGHT ) ( LEFT | RIGHT ) $soon
    BRPOPLPUSH $list $list $soon
    BLMPOP $soon $lists ( LEFT | RIGHT ) [ COUNT $count ]
";

pub const SETS: &str = "
    SADD $set $member { $member }
    SADD $set $int { $int }
    SADD $set $value { $value }
    SREM $set $member { $member }
    SISMEMBER $set $member
    SMISMEMBER $set $member { $member }
    SCARD $set
    SMEMBERS $set
    SMOVE $set $set $member
    SINTER $set { $set }
    SUNION $set { $set }
    SDIFF $set { $set }
    SINTERSTORE $set $set { $set }
    SUNIONSTORE $set $set { $set }
    SDIFFSTORE $set $set { $set }
    SINTERCARD $sets [ LIMIT $count ]
    SINTERCARD $sets { LIMIT $int }
    SPOP $set 1000
    SPOP $set 0
    SRANDMEMBER $set 1000
    SRANDMEMBER nokey
    SRANDMEMBER nokey $int
    SSCAN $set 0 COUNT 1000 [ MATCH $pattern ]
    SSCAN $set $int { MATCH $pattern | COUNT $int }
    OBJECT ENCODING $key
";

pub const HASHES: &str = "
    HSET $hash $field $value { $field $value }
    HMSET $hash $field $value { $field $value }
    HSETNX $hash $field $value
    HGET $hash $field
    HMGET $hash $field { $field }
    HDEL $hash $field { $field }
    HLEN $hash
    HSTRLEN $hash $field
    HEXISTS $hash $field
    HGETALL $hash
    HKEYS $hash
    HVALS $hash
    HINCRBY $hash ( n | $field ) $int
    HINCRBY $hash n $edge
    HINCRBYFLOAT $hash ( m | $field ) $float
    HINCRBYFLOAT $hash m $float
    HSET $hash n $int m $float
    HRANDFIELD $hash 1000 [ WITHVALUES ]
    HRANDFIELD nokey $int [ WITHVALUES ]
    HRANDFIELD nokey
    HSCAN $hash 0 COUNT 1000 [ MATCH $pattern ]
    HSCAN $hash $int { MATCH $pattern | COUNT $int }
    OBJECT ENCODING $hash
";

pub const ZSETS: &str = "
    ZADD $zset $score $member { $score $member }
    ZADD $zset { NX | XX | GT | LT | CH } $score $member { $score $member }
    ZADD $zset [ NX | XX ] [ GT | LT ] [ CH ] [ INCR ] $score $member
    ZADD $zset { INCR | XX | GT } $float $member
    ZINCRBY $zset $float $member
    ZREM $zset $member { $member }
    ZSCORE $zset $member
    ZMSCORE $zset $member { $member }
    ZRANK $zset $member
    ZREVRANK $zset $member
    ZCARD $zset
    ZCOUNT $zset $min $min
    ZLEXCOUNT $lex $lexmin $lexmin
    ZRANGE $zset $int $int { REV | WITHSCORES }
    ZRANGE $zset $min $min BYSCORE { REV | WITHSCORES | LIMIT $int $int }
    ZRANGE $lex $lexmin $lexmin BYLEX { REV | WITHSCORES | LIMIT $int $int }
    ZRANGE $zset 0 -1 WITHSCORES
    ZREVRANGE $zset $int $int [ WITHSCORES ]
    ZRANGEBYSCORE $zset $min $min { WITHSCORES | LIMIT $int $int }
    ZREVRANGEBYSCORE $zset $min $min { WITHSCORES | LIMIT $int $int }
    ZRANGEBYLEX $lex $lexmin $lexmin [ LIMIT $int $int ]
    ZREVRANGEBYLEX $lex $lexmin $lexmin [ LIMIT $int $int ]
    ZRANGESTORE $zset $zset $int $int { REV }
    ZRANGESTORE $zset $zset $min $min BYSCORE { REV | LIMIT $int $int }
    ZRANGESTORE $zset $lex $lexmin $lexmin BYLEX { REV | LIMIT $int $int }
    ZREMRANGEBYRANK $zset $int $int
    ZREMRANGEBYSCORE $zset $min $min
    ZREMRANGEBYLEX $lex $lexmin $lexmin
    ZPOPMIN $zset [ $count ]
    ZPOPMAX $zset [ $count ]
    ZMPOP $zsets ( MIN | MAX ) { COUNT $count }
    BZPOPMIN $zset $zset $soon
    BZPOPMAX $zset $soon
    BZMPOP $soon $zsets ( MIN | MAX ) [ COUNT $count ]
    ZUNION $zsets { WITHSCORES | AGGREGATE ( SUM | MIN | MAX ) | WEIGHTS $float | WEIGHTS $float $score }
    ZINTER $zsets { WITHSCORES | AGGREGATE ( SUM | MIN | MAX ) | WEIGHTS $float | WEIGHTS $float $score }
    ZUNION 2 $zset $zset WEIGHTS $float $float WITHSCORES [ AGGREGATE ( SUM | MIN | MAX ) ]
    ZINTER 2 $zset ( $zset | $set ) WEIGHTS $float $float WITHSCORES [ AGGREGATE ( SUM | MIN | MAX ) ]
    ZDIFF $zsets [ WITHSCORES ]
    ZUNIONSTORE $zset $zsets { AGGREGATE ( SUM | MIN | MAX ) | WEIGHTS $float | WEIGHTS $float $score }
    ZINTERSTORE $zset 2 $zset $zset [ WEIGHTS $float $float ] [ AGGREGATE ( SUM | MIN | MAX ) ]
    ZUNIONSTORE $zset 2 $zset $zset [ WEIGHTS $float $float ] [ AGGREGATE ( SUM | MIN | MAX ) ]
    ZDIFFSTORE $zset $zsets
    ZINTERCARD $zsets { LIMIT $count }
    ZRANDMEMBER $zset 1000
    ZRANDMEMBER nokey $int [ WITHSCORES ]
    ZSCAN $zset 0 COUNT 1000 [ MATCH $pattern ]
    SADD $set $member { $member }
    ZADD $lex 0 $member 0 $member 0 $member 0 $member
    ZADD $lex 0 $member 0 $value
    ZREM $lex $member
";

pub const STREAMS: &str = "
    XADD $stream $newid $field $value { $field $value }
    XADD $stream $newid a 1
    XADD $stream $newid a 1 b 2
    XADD $stream { NOMKSTREAM | MAXLEN $count | MAXLEN ( ~ | = ) $count | MINID $id | MINID ( ~ | = ) $id | LIMIT $count } $newid a $value
    XADD $stream MAXLEN ~ $count LIMIT $count $newid a 1
    XLEN $stream
    XRANGE $stream $from $from [ COUNT $int ]
    XREVRANGE $stream $from $from [ COUNT $int ]
    XRANGE $stream - +
    XDEL $stream $id { $id }
    XTRIM $stream ( MAXLEN | MINID ) [ ~ | = ] $id { LIMIT $count }
    XTRIM $stream MAXLEN $count
    XREAD { COUNT $int } STREAMS $stream $id
    XREAD [ COUNT $int ] [ BLOCK $soonms ] STREAMS $stream $stream $id $id
    XREAD BLOCK $soonms STREAMS $stream $
    XSETID $stream $id { ENTRIESADDED $int | MAXDELETEDID $id }
    XINFO STREAM $stream
    XINFO STREAM $stream FULL [ COUNT $int ]
    XINFO GROUPS $stream
    XINFO CONSUMERS $stream $group
    XGROUP CREATE $stream $group ( $id | $ ) { MKSTREAM | ENTRIESREAD $int }
    XGROUP CREATE $stream g 0 MKSTREAM
    XGROUP SETID $stream $group ( $id | $ ) [ ENTRIESREAD $int ]
    XGROUP DESTROY $stream $group
    XGROUP CREATECONSUMER $stream $group $consumer
    XGROUP DELCONSUMER $stream $group $consumer
    XREADGROUP GROUP $group $consumer { COUNT $count | NOACK | BLOCK $soonms } STREAMS $stream ( > | $id )
    XREADGROUP GROUP g $consumer STREAMS $stream >
    XREADGROUP GROUP g $consumer COUNT 2 STREAMS $stream $stream > >
    XACK $stream $group $id { $id }
    XPENDING $stream $group
    XPENDING $stream $group [ IDLE ( 0 | 1000000 ) ] $from $from $count [ $consumer ]
    XPENDING $stream g - + 10
    XCLAIM $stream $group $consumer ( 0 | 1000000 | $edge ) $id { $id } { IDLE 1000000 | TIME 1000 | RETRYCOUNT $int | FORCE | JUSTID | LASTID $id }
    XCLAIM $stream g $consumer 0 $id $id $id
    XAUTOCLAIM $stream $group $consumer ( 0 | 1000000 | $edge ) $from { COUNT $int | JUSTID }
    XAUTOCLAIM $stream g $consumer 0 0
";

pub const HYPERLOGLOGS: &str = "
    PFADD $hll { $value }
    PFADD $hll $member $member { $member }
    PFCOUNT $hll { $hll }
    PFMERGE $hll { $hll }
    PFDEBUG ENCODING $hll
    PFDEBUG ( DECODE | TODENSE | GETREG ) $hll
    SET $hll $value
    GET $hll
    STRLEN $hll
    GETRANGE $hll $int $int
";

pub const PLACES: &str = "
    GEOADD $geo $lon $lat $member { $lon $lat $member }
    GEOADD $geo { NX | XX | CH } $lon $lat $member
    GEOPOS $geo { $member }
    GEODIST $geo $member $member [ $unit ]
    GEOHASH $geo { $member }
    GEOSEARCH $geo ( FROMMEMBER $member | FROMLONLAT $lon $lat ) ( BYRADIUS $radius $unit | BYBOX $radius $radius $unit ) ( ASC | DESC ) { WITHCOORD | WITHDIST | WITHHASH }
    GEOSEARCH $geo ( FROMMEMBER $member | FROMLONLAT $lon $lat ) ( BYRADIUS $radius $unit | BYBOX $radius $radius $unit ) ( ASC | DESC ) { COUNT $count | WITHDIST | COUNT $count ANY | $option }
    GEOSEARCHSTORE $zset $geo ( FROMMEMBER $member | FROMLONLAT $lon $lat ) ( BYRADIUS $radius $unit | BYBOX $radius $radius $unit ) { ASC | DESC | COUNT $count | STOREDIST | WITHDIST }
    GEORADIUS $geo $lon $lat $radius $unit ASC { WITHCOORD | WITHDIST | WITHHASH | COUNT $count | STORE $geo | STOREDIST $zset }
    GEORADIUSBYMEMBER $geo $member $radius $unit DESC { WITHCOORD | WITHDIST | WITHHASH | COUNT $count | STORE $geo | STOREDIST $zset }
    GEORADIUS_RO $geo $lon $lat $radius $unit ASC { WITHCOORD | WITHDIST | WITHHASH | COUNT $count }
    GEORADIUSBYMEMBER_RO $geo $member $radius $unit ASC { WITHCOORD | WITHDIST | WITHHASH | COUNT $count }
    ZRANGE $geo 0 -1 WITHSCORES
    ZADD $geo $score $member
    ZADD $geo 3479099956230698 a
    GEOADD g1 13.361389 38.115556 a 15.087269 37.502669 b
";

pub const SCRIPTS: &str = "
    EVAL $script 2 $key $key $value $int
    EVAL $script $int $key $key
    EVAL $call 0 $command
    EVAL $call 1 $command
    EVAL_RO $call 0 $command
    EVAL $library 0 $value $float $int
    EVAL $library 0 $int $edge $member
    EVAL $library 0 $float $value
    EVAL $conversion 0
    FUNCTION LOAD [ REPLACE ] $functions
    FUNCTION DELETE ( lib | lib2 | no )
    FUNCTION LIST { WITHCODE | LIBRARYNAME $pattern }
    FCALL ( f | g | no | h ) $count $key $key $value
    FCALL ( c ) 0 $command
    FCALL_RO ( f | g | c ) 0 $command
    SCRIPT EXISTS $value
    SCRIPT $option
    EVALSHA $value 0
    EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0
    FUNCTION $option
    FUNCTION RESTORE $value [ FLUSH | APPEND | REPLACE ]
    FUNCTION KILL
    SCRIPT KILL
    SCRIPT FLUSH [ ASYNC | SYNC | $option ]
    FUNCTION FLUSH [ ASYNC | SYNC | $option ]
";

pub const SERVER: &str = "
    COMMAND GETKEYS $command
    COMMAND GETKEYSANDFLAGS $command
    COMMAND GETKEYS $command
    ACL SETUSER ( u1 | u2 ) { $rule }
    ACL SETUSER ( u1 | u2 ) $rule $rule $rule
    ACL GETUSER ( u1 | u2 | default )
    ACL LIST
    ACL USERS
    ACL DELUSER ( u1 | u2 | u3 | default )
    ACL DRYRUN ( u1 | u2 | u3 | default ) $command
    ACL DRYRUN ( u1 | u2 ) $command
    ACL CAT $category
    ACL WHOAMI
    ACL $option
    ACL GENPASS $edge
    CLIENT SETNAME $value
    CLIENT GETNAME
    CLIENT GETREDIR
    CLIENT REPLY $option
    CLIENT NO-EVICT ( ON | OFF | $option )
    CLIENT TRACKING ( ON | OFF ) { BCAST | PREFIX $member | OPTIN | OPTOUT | NOLOOP | REDIRECT $edge }
    CLIENT TRACKINGINFO
    CLIENT CACHING ( YES | NO | $option )
    CLIENT UNBLOCK $edge [ TIMEOUT | ERROR | $option ]
    CLIENT KILL $edge
    CLIENT KILL { ID 999999 | TYPE $option | ADDR $value | USER $value | SKIPME $option | LADDR $value }
    CLIENT LIST ( TYPE $option | ID $edge )
    CLIENT PAUSE $edge $option
    CLIENT UNPAUSE
    CLIENT $option
    HELLO $edge
    HELLO ( 2 | 3 ) { SETNAME $value | AUTH $value $value | $option }
    AUTH $value [ $value ]
    AUTH u1 $value
    RESET $value
    OBJECT ( ENCODING | REFCOUNT | HELP | $option ) { $key }
    DEBUG $option
    CONFIG GET ( $pattern | $setting ) [ $setting ]
    CONFIG $option $setting
    MEMORY $option
    MEMORY USAGE $key SAMPLES $edge
    LATENCY $option
    LATENCY RESET $value
    LATENCY HISTORY $value
    LATENCY GRAPH $value
    SLOWLOG $option
    SLOWLOG GET $edge
    PUBSUB ( CHANNELS | NUMSUB | NUMPAT | SHARDCHANNELS | SHARDNUMSUB | $option ) { $member }
    PUBLISH $member $value
    SPUBLISH $member $value
    COMMAND COUNT $value
    COMMAND LIST FILTERBY ( MODULE | ACLCAT | PATTERN ) ( $category | get* | $value )
    COMMAND INFO $option
    COMMAND $option $value
    INFO $option
    SAVE $option
    BGSAVE $option
    LASTSAVE $option
    TIME $option
    ROLE $option
    XINFO $option $stream
    XGROUP $option $stream
    UNWATCH
    WATCH $key
    $option $value
    $value $value
";

pub const SETTINGS: &str = "
    CONFIG SET $setting $configured
    CONFIG SET $setting $configured
    CONFIG SET $setting $configured $setting $configured
    CONFIG SET $setting
    CONFIG GET $setting
    CONFIG GET $setting
    CONFIG GET { $setting }
    CONFIG GET $pattern
";
