#!/bin/bash
# A single-node broker for tests: Apache Kafka from Maven Central, in KRaft mode, with all its data in one folder.
#
#   broker.sh fetch              downloads the jars, if they are not there
#   broker.sh start DIR PORT     formats a store in DIR, if DIR/data is none, starts a broker, waits for it, prints 127.0.0.1:PORT
#   broker.sh restart DIR PORT   stops the broker of DIR and starts it again on its data
#   broker.sh kill DIR           kills it with SIGKILL, like a crash; restart continues from there
#   broker.sh stop DIR           stops it in order; the data stays
#   broker.sh allow DIR PORT TOPIC OPERATION   grants "guest" READ, DESCRIBE, …; needs the compiler of a JDK
#
# The jars are downloaded once, into $XDG_CACHE_HOME (or ~/.cache). The process in DIR/pid is the only one that
# the script ever stops. There are three listeners:
#
#   PORT             plaintext, all rights
#   DIR/sasl_port    SASL/PLAIN; user "guest", password "guest", without rights
#   DIR/tls_port     SASL/PLAIN and SCRAM-SHA-256 over TLS; user "operator", password "operated", all rights
#
# The certificate is new for each DIR, and in DIR/ca.pem. Without keytool (a part of Java) there is no TLS listener.
#
# Exit codes: 0 success; 1 failure, with the reason; 2 wrong usage; 3 Java, Maven or the network is missing.
set -euo pipefail

VERSION=4.1.0
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
CACHE="${XDG_CACHE_HOME:-$HOME/.cache}/dupflow-kafka-$VERSION"
# Seconds after which a start or a stop counts as failed.
BOUND=${BROKER_SECONDS:-90}
# Little memory, and only the first tier of the compiler: a test broker runs for a minute.
JAVA=(java -Xms128m -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dorg.slf4j.simpleLogger.defaultLogLevel=warn)

usage() { sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
unavailable() { echo "no broker: $1" >&2; exit 3; }
failed() { echo "broker: $1" >&2; exit 1; }

# Downloads the jars, once. A concurrent caller must not see an incomplete folder: it is filled, then renamed.
resolve() {
  command -v java >/dev/null || unavailable "java is not installed (Java 17 or later)"
  [ -d "$CACHE/libs" ] && return
  command -v mvn >/dev/null || unavailable "mvn is not installed, which fetches Apache Kafka"
  mkdir -p "$CACHE"
  local made
  made=$(mktemp -d "$CACHE/new.XXXXXX")
  if ! timeout 600 mvn -q -B -f "$HERE/pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
    -DoutputDirectory="$made" >"$CACHE/mvn.log" 2>&1; then
    rm -rf "$made"
    unavailable "Apache Kafka could not be fetched: $(grep -m1 ERROR "$CACHE/mvn.log" || echo "see $CACHE/mvn.log")"
  fi
  mv -T "$made" "$CACHE/libs" 2>/dev/null || rm -rf "$made"
}

# Whether port $1 is in use.
listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# The first free port from $1 on.
free_port() {
  local port=$1
  while listens "$port"; do port=$((port + 1)); done
  echo "$port"
}

# Whether a broker on port $1 answers an ApiVersions request without an error.
answers() {
  (
    exec 3<>"/dev/tcp/127.0.0.1/$1"
    # Length 10; API key 18, version 0; correlation id 7; no client id.
    printf '\0\0\0\012\0\022\0\0\0\0\0\007\377\377' >&3
    # The answer: length, correlation id, error code.
    [ "$(timeout 5 head -c 10 <&3 | od -An -tx1 -j4 | tr -d ' \n')" = 000000070000 ]
  ) 2>/dev/null
}

running() { [ -f "$1/pid" ] && kill -0 "$(cat "$1/pid")" 2>/dev/null; }

# Repeats a command until it succeeds; fails after BOUND seconds.
wait_until() {
  local end=$((SECONDS + BOUND))
  until "$@"; do
    [ $SECONDS -lt $end ] || return 1
    read -rt 0.1 <> <(:) || true
  done
}

# Creates a key with a self-signed certificate for the loopback address, and the certificate as PEM.
certify() {
  local dir=$1 store=(-keystore "$1/broker.p12" -storetype PKCS12 -storepass changeit -alias broker)
  keytool -genkeypair "${store[@]}" -keyalg EC -groupname secp256r1 -validity 2 -dname CN=dupflow-test \
    -ext SAN=ip:127.0.0.1,dns:localhost -ext BC=ca:true >"$dir/keytool.log" 2>&1 &&
    keytool -exportcert "${store[@]}" -rfc >"$dir/ca.pem" 2>>"$dir/keytool.log"
}

format() {
  local dir=$1 port=$2 sasl controller tls='' tls_map='' tls_settings=''
  sasl=$(free_port $((port + 1)))
  controller=$(free_port $((sasl + 1)))
  mkdir -p "$dir"
  if command -v keytool >/dev/null && certify "$dir"; then
    local tls_port
    tls_port=$(free_port $((controller + 1)))
    echo "$tls_port" >"$dir/tls_port"
    tls=,SASL_SSL://127.0.0.1:$tls_port
    tls_map=,SASL_SSL:SASL_SSL
    tls_settings="listener.name.sasl_ssl.ssl.keystore.location=$dir/broker.p12
listener.name.sasl_ssl.ssl.keystore.type=PKCS12
listener.name.sasl_ssl.ssl.keystore.password=changeit
listener.name.sasl_ssl.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256
listener.name.sasl_ssl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_operator=\"operated\";
listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;"
  fi
  echo "$sasl" >"$dir/sasl_port"
  cat >"$dir/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:$port,SASL_PLAINTEXT://127.0.0.1:$sasl$tls,CONTROLLER://127.0.0.1:$controller
advertised.listeners=PLAINTEXT://127.0.0.1:$port,SASL_PLAINTEXT://127.0.0.1:$sasl$tls
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT$tls_map,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:$controller
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256
listener.name.sasl_plaintext.sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_guest="guest";
$tls_settings
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:operator
log.dirs=$dir/data
# Records of feeds are older than the default retention.
log.retention.ms=-1
auto.create.topics.enable=false
message.max.bytes=20000000
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.min.isr=1
# Aborts transactions that have timed out within this time instead of ten seconds.
transaction.abort.timed.out.transaction.cleanup.interval.ms=200
# Compacts segments soon instead of after fifteen seconds.
log.cleaner.backoff.ms=100
group.initial.rebalance.delay.ms=0
# A killed broker can register again once its old session has timed out.
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=400
PROPERTIES
  # A store that an earlier broker has left keeps its topics and their ids.
  [ ! -f "$dir/data/meta.properties" ] || return 0
  local cluster
  cluster=$("${JAVA[@]}" -cp "$CACHE/libs/*" kafka.tools.StorageTool random-uuid 2>/dev/null)
  "${JAVA[@]}" -cp "$CACHE/libs/*" kafka.tools.StorageTool format --standalone --cluster-id "$cluster" \
    --add-scram 'SCRAM-SHA-256=[name=operator,password=operated]' --config "$dir/server.properties" >"$dir/format.log" 2>&1 || failed "no store in $dir: $(tail -n 1 "$dir/format.log")"
}

start() {
  local dir=$1 port=$2
  running "$dir" && failed "one runs in $dir already"
  resolve
  if [ ! -f "$dir/server.properties" ]; then
    listens "$port" && failed "port $port is in use"
    format "$dir" "$port"
  fi
  nohup "${JAVA[@]}" -cp "$CACHE/libs/*" kafka.Kafka "$dir/server.properties" >>"$dir/broker.log" 2>&1 </dev/null &
  echo $! >"$dir/pid"
  ready() { answers "$port" || ! running "$dir"; }
  wait_until ready || { stop_by KILL "$dir"; failed "no answer within $BOUND s, see $dir/broker.log"; }
  running "$dir" || failed "it ended while it started: $(grep -m1 -i -E 'error|exception' "$dir/broker.log" || echo "see $dir/broker.log")"
  echo "127.0.0.1:$port"
}

stop_by() {
  local signal=$1 dir=$2
  if running "$dir"; then
    kill -"$signal" "$(cat "$dir/pid")"
    ended() { ! running "$dir"; }
    wait_until ended || { kill -KILL "$(cat "$dir/pid")"; wait_until ended || failed "it does not end"; }
  fi
  rm -f "$dir/pid"
}

[ "$*" != fetch ] || { resolve; exit; }
[ $# -ge 2 ] || usage
DIR=$(mkdir -p "$2" && cd "$2" && pwd)
case $1 in
  start) [ $# -eq 3 ] || usage; start "$DIR" "$3" ;;
  restart) [ $# -eq 3 ] || usage; stop_by TERM "$DIR"; start "$DIR" "$3" ;;
  kill) stop_by KILL "$DIR" ;;
  stop) stop_by TERM "$DIR" ;;
  allow)
    [ $# -eq 5 ] || usage
    "${JAVA[@]}" -cp "$CACHE/libs/*" "$HERE/Allow.java" "127.0.0.1:$3" guest "$4" "$5" ;;
  *) usage ;;
esac
