#!/bin/bash
# A broker of one node for tests: Apache Kafka from Maven Central, in KRaft mode, all its data in one folder.
#
#   broker.sh start DIR PORT     formats a store in DIR, starts a broker, waits until it answers, prints 127.0.0.1:PORT
#   broker.sh restart DIR PORT   ends the broker of DIR and starts it again on the data that it has
#   broker.sh kill DIR           ends it at once, as a crash does (SIGKILL); restart goes on from there
#   broker.sh stop DIR           ends it in order; the data stays
#   broker.sh allow DIR PORT TOPIC OPERATION   lets "guest" do that (READ, DESCRIBE, …); needs the compiler of a JDK
#
# The jars are resolved once, into $XDG_CACHE_HOME (or ~/.cache), outside of the repository. DIR/pid is the only process that is ever
# ended. A second listener, whose port is in DIR/sasl_port, takes SASL/PLAIN as "guest" with the password "guest", who may do nothing.
# A third one, whose port is in DIR/tls_port, takes SASL/PLAIN and SCRAM-SHA-256 over TLS, as "operator" with the password "operated", who may do
# all; its certificate is made anew and lies in DIR/ca.pem. It is left out where keytool, which is a part of Java, is missing.
#
# Exit codes: 0 it is as asked; 1 it failed, with the reason; 2 wrong usage; 3 this machine has no Java, no Maven or no network.
set -euo pipefail

VERSION=4.1.0
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
CACHE="${XDG_CACHE_HOME:-$HOME/.cache}/dupflow-kafka-$VERSION"
# Seconds until a start or an end counts as failed.
BOUND=${BROKER_SECONDS:-90}
# Little memory, and only the quick compiler: a broker of tests lives for a minute.
JAVA=(java -Xms128m -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dorg.slf4j.simpleLogger.defaultLogLevel=warn)

usage() { sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
unavailable() { echo "no broker: $1" >&2; exit 3; }
failed() { echo "broker: $1" >&2; exit 1; }

# The jars, once. Two callers at a time must not see half a folder: it is made beside and moved.
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

# Whether something listens there.
listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# The first port from $1 on at which nothing listens.
free_port() {
  local port=$1
  while listens "$port"; do port=$((port + 1)); done
  echo "$port"
}

# Whether a broker answers there: to a request for the versions of its interface, with no error.
answers() {
  (
    exec 3<>"/dev/tcp/127.0.0.1/$1"
    # Length 10; request 18 of version 0; number 7; no client's name.
    printf '\0\0\0\012\0\022\0\0\0\0\0\007\377\377' >&3
    # Of the answer: its length, the number, the error.
    [ "$(timeout 5 head -c 10 <&3 | od -An -tx1 -j4 | tr -d ' \n')" = 000000070000 ]
  ) 2>/dev/null
}

running() { [ -f "$1/pid" ] && kill -0 "$(cat "$1/pid")" 2>/dev/null; }

# Waits until the command after it succeeds; false once the bound has passed.
wait_until() {
  local end=$((SECONDS + BOUND))
  until "$@"; do
    [ $SECONDS -lt $end ] || return 1
    read -rt 0.1 <> <(:) || true
  done
}

# A key with a certificate of its own for this machine's loopback, and the certificate as PEM.
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
# Feeds are older than any retention.
log.retention.ms=-1
auto.create.topics.enable=false
message.max.bytes=20000000
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.min.isr=1
# A transaction that has timed out is ended within this time, not within ten seconds.
transaction.abort.timed.out.transaction.cleanup.interval.ms=200
# What can be compacted is, not after fifteen seconds.
log.cleaner.backoff.ms=100
group.initial.rebalance.delay.ms=0
# After a kill the broker is taken back as soon as its old session is over.
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=400
PROPERTIES
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
