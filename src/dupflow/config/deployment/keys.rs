//! The keys of a deployment file.

use super::source::{QUOTE_EXPECTED, http, reference};
use super::{monitor, outputs, tables, views, watch};
use crate::config::settings::DeploymentKey;
use dupflow_connectors::intake::EpochRule;
use dupflow_connectors::kafka::Start;

/// Every key of a deployment file, by module.
pub(in crate::config) const KEYS: &[&[DeploymentKey]] = &[
    OWN_KEYS,
    &tables::SOURCE_KEYS,
    outputs::SINK_KEYS,
    outputs::KEYS,
    &monitor::KEYS,
    &views::KEYS,
    &watch::KEYS,
    &reference::KEYS,
    &http::KEYS,
];

/// The keys of all other modules of this folder.
const OWN_KEYS: &[DeploymentKey] = &[
    DeploymentKey { name: "workers", expected: "a whole number from 1 to 1024, or \"cores\"" },
    DeploymentKey {
        name: "memory",
        expected: "a size from \"64MiB\" on, as in \"8GiB\", \"500MB\" or 500000000, or a share of the \
            machine's memory, as in \"60%\"; \"\" for no limit",
    },
    DeploymentKey { name: "spill.path", expected: "a path, or \"\" for a folder beside the state" },
    DeploymentKey { name: "shutdown_seconds", expected: "a whole number from 0 to 3600" },
    DeploymentKey {
        name: "source.kind",
        expected: "\"files\", \"kafka\", \"sqlite\", \"postgres\" or \"http\"",
    },
    DeploymentKey {
        name: "source.inputs",
        expected: "a list of paths, at least one; \"-\" is standard input",
    },
    DeploymentKey { name: "source.files_from", expected: "a path, or \"\" for none" },
    DeploymentKey { name: "source.epoch", expected: EpochRule::EXPECTED },
    DeploymentKey { name: "source.speed", expected: "\"max\", \"real\" or \"Nx\" with N greater than 0" },
    DeploymentKey { name: "source.topic", expected: "the name of a topic" },
    DeploymentKey { name: "source.start", expected: Start::EXPECTED },
    DeploymentKey {
        name: "source.format",
        expected: "\"auto\", \"text\", \"json\" or \"debezium\"; of \
            files \"auto\", \"jsonl\", \"csv\", \"tsv\", \"warc\", \"parquet\", \"text\" or \"html\"",
    },
    DeploymentKey {
        name: "source.text_path",
        expected: "names with points between them, as in \"page.body\"",
    },
    DeploymentKey {
        name: "source.id_path",
        expected: "names with points between them, as in \"page.id\", or \"\": the record's key",
    },
    DeploymentKey { name: "source.ts_path", expected: "names with points between them, as in \"page.date\"" },
    DeploymentKey {
        name: "source.op_path",
        expected: "names with points between them, as in \"page.op\", or \"\" for none",
    },
    DeploymentKey { name: "source.headers", expected: "a list of names" },
    DeploymentKey {
        name: "source.fields",
        expected: "a list of fields, as in [\"lang\", \"site = host(url)\"]",
    },
    DeploymentKey { name: "source.refresh_seconds", expected: "a whole number from 1 to 3600" },
    DeploymentKey { name: "source.ids", expected: "\"once\", \"file\" or \"last\"" },
    DeploymentKey { name: "source.canonical_url", expected: "true or false" },
    DeploymentKey { name: "source.gone", expected: "\"refuse\", \"keep\" or \"delete\"" },
    DeploymentKey { name: "source.max_bad", expected: "a number from 0 to 1, or \"\" for any" },
    DeploymentKey { name: "source.max_unread", expected: "a whole number of files from 0 on, or \"\"" },
    DeploymentKey {
        name: "csv.delimiter",
        expected: "one character of ASCII that is no quote, or \"tab\"; \"\": that of the format",
    },
    DeploymentKey {
        name: "csv.escape",
        expected: "one character of ASCII that is no quote, or \"\" for none",
    },
    DeploymentKey { name: "csv.quote", expected: QUOTE_EXPECTED },
    DeploymentKey { name: "json.surrogates", expected: "\"bad\" or \"replace\"" },
    DeploymentKey { name: "warc.id", expected: "\"record\" or \"uri\"" },
    DeploymentKey { name: "warc.not_found", expected: "\"skip\" or \"delete\"" },
    DeploymentKey { name: "commit.interval", expected: "a time from \"1ms\" to \"60s\"" },
    DeploymentKey { name: "commit.records", expected: "a whole number from 1 to 2^53" },
    DeploymentKey {
        name: "commit.bytes",
        expected: "a size from 1 to 2^53 bytes, as in 16777216 or \"16MiB\"",
    },
    DeploymentKey { name: "dead_letter.path", expected: "a path, or \"\" for none" },
    DeploymentKey { name: "dead_letter.topic", expected: "the name of a topic, or \"\" for none" },
    DeploymentKey {
        name: "kafka.brokers",
        expected: "addresses, as in \"host:9092,other:9092\", or a list of them",
    },
    DeploymentKey { name: "kafka.connect_seconds", expected: "a whole number from 1 to 3600" },
    DeploymentKey { name: "kafka.settings.**", expected: "text, a number, true or false" },
    DeploymentKey { name: "state.path", expected: "a path or an address, or \"\" for none" },
    DeploymentKey { name: "state.commit_every", expected: "a time from \"1ms\" to \"3600s\"" },
    DeploymentKey {
        name: "state.history",
        expected: "an age as in \"30d\", \"12h\", \"5m\" or \"90s\", up to \"36500d\", or \"\" for none",
    },
    DeploymentKey { name: "processes.secret", expected: "text, or \"\" for none" },
    DeploymentKey { name: "processes.secret_file", expected: "a path, or \"\" for none" },
    DeploymentKey { name: "processes.connect_seconds", expected: "a whole number from 1 to 3600" },
    DeploymentKey { name: "processes.lost_seconds", expected: "a whole number from 1 to 3600" },
    DeploymentKey {
        name: "logging.level",
        expected: "\"error\", \"warn\", \"info\", \"debug\" or \"trace\"",
    },
    DeploymentKey { name: "logging.format", expected: "\"text\" or \"json\"" },
];

/// Keys, and tables of keys, of secret values: they are never printed or served.
pub(super) const HIDDEN: [&str; 10] = [
    "monitor.token",
    "monitor.read_token",
    "processes.secret",
    "kafka.settings",
    "source.url",
    "sink.url",
    "output.#.url",
    "watch.url",
    "notices.hook.secret",
    "notices.hook.url",
];
