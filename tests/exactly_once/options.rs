//! Command-line options.

use std::path::PathBuf;

use dupflow::connectors::sinks::DecisionMode;

/// The kind of sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sink {
    Lines,
    Kafka,
    Sqlite,
    Postgres,
}

impl Sink {
    const ALL: [Self; 4] = [Self::Lines, Self::Kafka, Self::Sqlite, Self::Postgres];

    /// The name on the command line; except for files, also the name of the feature needed.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Lines => "lines",
            Self::Kafka => "kafka",
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }
}

/// See the [crate].
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// `None`: all that need nothing but this program.
    pub(crate) sink: Option<Sink>,
    pub(crate) kills: usize,
    pub(crate) points: bool,
    pub(crate) seed: u64,
    pub(crate) feed: Option<PathBuf>,
    pub(crate) processes: bool,
    pub(crate) lose_state: bool,
    pub(crate) reconcile: bool,
    pub(crate) compacted: bool,
    pub(crate) pipeline: String,
    /// Documents are compared with a reference too, then with another one.
    pub(crate) reference: bool,
    /// Decisions are written in place of deltas.
    pub(crate) decisions: Option<DecisionMode>,
    /// Whether only other tests were named on the command line.
    pub(crate) passed_by: bool,
}

impl Options {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            sink: None,
            kills: 6,
            points: false,
            seed: 1,
            feed: None,
            processes: false,
            lose_state: false,
            reconcile: false,
            compacted: false,
            pipeline: "minhash".to_owned(),
            reference: false,
            decisions: None,
            passed_by: false,
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            let number = |text: String| text.parse().map_err(|_| format!("{text:?} is no number"));
            match word.as_str() {
                "--sink" => {
                    let name = value()?;
                    let named = Sink::ALL.into_iter().find(|sink| sink.name() == name);
                    options.sink = Some(named.ok_or(format!("no sink {name:?}"))?);
                }
                "--kills" => options.kills = usize::try_from(number(value()?)?).unwrap_or(usize::MAX),
                "--seed" => options.seed = number(value()?)?,
                "--feed" => options.feed = Some(value()?.into()),
                "--pipeline" => options.pipeline = value()?,
                "--decisions" => options.decisions = Some(value()?.parse()?),
                "--points" => options.points = true,
                "--processes" => options.processes = true,
                "--lose-state" => options.lose_state = true,
                "--reconcile" => options.reconcile = true,
                "--compacted" => options.compacted = true,
                "--reference" => options.reference = true,
                // Arguments that cargo and its callers pass to every test.
                "--nocapture" | "--quiet" | "-q" | "--show-output" | "--list" => {}
                other if other.starts_with("--") => return Err(format!("no option {other:?}")),
                name => options.passed_by |= !"exactly_once".contains(name),
            }
        }
        if options.points && cfg!(not(feature = "failpoints")) {
            return Err("--points takes a program with failpoints: --features full,failpoints".to_owned());
        }
        if options.decisions.is_some() && (options.reconcile || options.compacted) {
            return Err("--decisions goes with neither --reconcile nor --compacted".to_owned());
        }
        if options.reference
            && (options.sink != Some(Sink::Lines) || options.decisions.is_some() || options.processes)
        {
            return Err("--reference takes --sink lines, and neither --decisions nor --processes".to_owned());
        }
        if options.decisions.is_some()
            && let Some(sink @ (Sink::Sqlite | Sink::Postgres)) = options.sink
        {
            // A table has the last decision of each document, and the checks need all.
            return Err(format!("--decisions goes with the sinks lines and kafka, not with {}", sink.name()));
        }
        Ok(options)
    }

    /// The lines of a deployment file that choose what is written, to follow the table of the sink.
    pub(crate) fn emit(&self) -> String {
        self.decisions
            .map_or_else(String::new, |mode| format!("emit = \"decisions\"\ndecisions = \"{mode}\"\n"))
    }
}
