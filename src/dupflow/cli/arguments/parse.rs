//! Parses the command line and collects all of its problems.
//!
//! clap stops at the first argument that it does not accept. This module records that argument as a problem,
//! replaces it by clap's suggestion or removes it, and parses the rest again until clap accepts it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::ops::Range;

use clap::builder::{EnumValueParser, PossibleValue, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory, FromArgMatches as _};

use super::problems::Problems;
use crate::cli::{Cli, help};
use crate::config::{MOST_WORKERS, OutputAnswer};
use dupflow_run::missing_feature;

/// What a replay emits: the name of an answer, with a number where it takes one.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct AnswerParser;

impl TypedValueParser for AnswerParser {
    type Value = OutputAnswer;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        typed: &OsStr,
    ) -> Result<OutputAnswer, clap::Error> {
        if typed.to_str().is_some_and(OutputAnswer::is_sized) {
            return (|text: &str| text.parse::<OutputAnswer>()).parse_ref(command, argument, typed);
        }
        EnumValueParser::<OutputAnswer>::new().parse_ref(command, argument, typed)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(OutputAnswer::possible_values()))
    }
}

/// Parses a share, from 0 to 1.
///
/// # Errors
/// What is expected instead.
pub(in crate::cli) fn share(typed: &str) -> Result<f64, String> {
    let share = typed.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

/// A threshold.
pub(in crate::cli) fn threshold(typed: &str) -> Result<f64, String> {
    let threshold = typed.parse().ok().filter(|threshold| *threshold > 0.0 && *threshold <= 1.0);
    threshold.ok_or_else(|| "expected a number above 0 and at most 1".to_owned())
}

/// Settings as they were typed, the threshold of an option last: it counts.
pub(in crate::cli) fn overrides(typed: &[String], threshold: Option<f64>) -> Vec<String> {
    let threshold = threshold.iter().map(|threshold| format!("threshold={threshold:?}"));
    typed.iter().cloned().chain(threshold).collect()
}

/// Parses `typed`, with the program's name first. Returns what was accepted, and the problems.
///
/// # Errors
/// A request for help. Also a command line that is incomplete; if that is the only problem, the error is
/// clap's own.
pub(in crate::cli) fn read(mut typed: Vec<OsString>) -> anyhow::Result<(Cli, Problems)> {
    let mut problems = Problems::default();
    let mut rejected = BTreeSet::new();
    loop {
        let error = match parsed(&typed) {
            Ok(cli) => return Ok((cli, problems)),
            Err(error) => error,
        };
        let Some(wrong) = wrong_part(&error, &typed) else {
            if problems.is_empty() || !error.use_stderr() {
                return Err(explained(error).into());
            }
            // An argument is not missing where its value was rejected before.
            if !missing(&error).is_some_and(|names| names.iter().all(|name| rejected.contains(name))) {
                problems.note(in_short(&error));
            }
            return problems.settle(None).map_err(Into::into);
        };
        problems.note(in_short(&error));
        rejected.extend(text(&error, ContextKind::InvalidArg).map(str::to_owned));
        let meant = text(&error, ContextKind::SuggestedArg).map(OsString::from);
        typed.splice(wrong, meant);
    }
}

/// Parses the arguments; help is in groups.
fn parsed(typed: &[OsString]) -> Result<Cli, clap::Error> {
    let mut command = help::grouped(Cli::command(), typed.iter().any(|word| word == "-h"));
    let mut matches = command.try_get_matches_from_mut(typed)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// Commands that a build may lack: the command, its feature, and whether it is in this build.
const OPTIONAL_COMMANDS: [(&str, &str, bool); 4] = [
    ("evaluate", "lab", cfg!(feature = "lab")),
    ("generate", "lab", cfg!(feature = "lab")),
    ("produce", "kafka", cfg!(feature = "kafka")),
    ("record", "kafka", cfg!(feature = "kafka")),
];

/// The error with more help in two cases: `replay` without an input gets examples of inputs, and a command
/// that this build lacks gets the name of its feature.
fn explained(error: clap::Error) -> clap::Error {
    if let Some(name) = text(&error, ContextKind::InvalidSubcommand) {
        let missing = OPTIONAL_COMMANDS.iter().find(|(command, _, is_in)| *command == name && !is_in);
        if let Some((command, feature, _)) = missing {
            let problem = missing_feature(&format!("`{command}`"), feature);
            return Cli::command().error(error.kind(), problem);
        }
    }
    let is_replay = matches!(error.get(ContextKind::Usage), Some(ContextValue::StyledStr(usage))
        if usage.to_string().contains("dupflow replay "));
    let has_no_input =
        missing(&error).is_some_and(|names| names.iter().any(|name| name.starts_with("<INPUT>")));
    if is_replay && has_no_input {
        let mut command = Cli::command();
        command.build();
        if let Some(replay) = command.find_subcommand_mut("replay") {
            return replay.error(error.kind(), WITHOUT_INPUT);
        }
    }
    error
}

/// What `replay` prints without an input.
const WITHOUT_INPUT: &str = "\
    an input is missing: a file, a folder, a quoted pattern, an address, or \"-\"\n\n\
    \x20 dupflow replay feed.jsonl              JSON Lines, as in {\"id\":\"a\",\"text\":\"some words\"}\n\
    \x20 dupflow replay folder/                 each file of the folder is a document\n\
    \x20 dupflow replay 'crawl/**/*.warc.gz'    web archives; tables too: .csv, .tsv, .parquet\n\
    \x20 cat feed.jsonl | dupflow replay -      standard input\n\n\
    No input at hand:  dupflow demo";

/// The argument, or the option with its value, that causes the error; `None` if no single one does.
fn wrong_part(error: &clap::Error, typed: &[OsString]) -> Option<Range<usize>> {
    let name = text(error, ContextKind::InvalidArg)?;
    let place_of = |argument: &str| typed.iter().position(|typed| typed == argument);
    match error.kind() {
        ErrorKind::UnknownArgument => place_of(name).map(|place| place..place + 1),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            // clap names an option with its value, as in `--epoch <RULE>`. A positional argument has no such
            // name, as in `[STUDY]...`.
            let name = name.split(' ').next()?;
            let value = text(error, ContextKind::InvalidValue)?;
            if !name.starts_with('-') {
                return place_of(value).map(|place| place..place + 1);
            }
            let holds = |list: &str| list.split(',').any(|part| part == value) || list == value;
            let words: Vec<_> = typed.iter().map(|word| word.to_string_lossy()).collect();
            let apart = words.windows(2).position(|two| two[0] == name && holds(&two[1]));
            let joined =
                |word: &Cow<'_, str>| word.split_once('=').is_some_and(|(n, list)| n == name && holds(list));
            let joined = || words.iter().position(joined).map(|place| place..place + 1);
            apart.map(|place| place..place + 2).or_else(joined)
        }
        _ => None,
    }
}

/// The required arguments that were not given, if that is the error.
fn missing(error: &clap::Error) -> Option<&[String]> {
    match error.get(ContextKind::InvalidArg)? {
        ContextValue::Strings(names) if error.kind() == ErrorKind::MissingRequiredArgument => Some(names),
        _ => None,
    }
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text),
        _ => None,
    }
}

/// The error in one line, without clap's usage and hints.
fn in_short(error: &clap::Error) -> String {
    let rendered = error.render().to_string();
    let lines = rendered.lines().map(str::trim).filter(|line| !line.is_empty());
    let text: Vec<_> =
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more")).collect();
    text.join("; ").replace("; [", " [").replace(":; ", ": ").trim_start_matches("error: ").to_owned()
}

/// The value of an option that takes a count.
///
/// # Errors
/// The expected values.
#[cfg(feature = "lab")]
pub(in crate::cli) fn at_least_one(typed: &str) -> Result<NonZeroUsize, String> {
    typed.parse().map_err(|_| "expected a whole number, 1 or more".to_owned())
}

/// A number of worker threads.
///
/// # Errors
/// The expected values.
pub(in crate::cli) fn workers(typed: &str) -> Result<NonZeroUsize, String> {
    let number = typed.parse().ok().filter(|number: &NonZeroUsize| number.get() <= MOST_WORKERS);
    number.ok_or_else(|| format!("expected a whole number from 1 to {MOST_WORKERS}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems_of(typed: &str) -> String {
        let typed = typed.split(' ').map(OsString::from).collect();
        let (_, problems) = read(typed).unwrap();
        problems.settle(Some(())).map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn a_valid_command_line_has_no_problem() {
        assert_eq!(problems_of("dupflow replay --epoch ts --workers 2 feed"), "");
    }

    #[test]
    fn every_wrong_argument_is_reported() {
        let text = problems_of(
            "dupflow replay --epoch hourly --emit=groups --worker 0 --log-format xml --no-such feed",
        );
        let expected = [
            "6 problems",
            "invalid value 'hourly' for '--epoch <RULE>': expected \"events:N\", \"every:T\" with T as in",
            "invalid value 'groups' for '--emit <WHAT>' [possible",
            "unexpected argument '--worker' found; tip: a similar argument exists: '--workers'",
            "invalid value '0' for '--workers <N>': expected a whole number from 1 to 1024",
        ];
        assert!(expected.iter().all(|line| text.contains(line)), "{text}");
    }

    #[test]
    fn an_incomplete_command_line_reports_what_is_missing() {
        let read = |typed: &[&str]| read(typed.iter().map(OsString::from).collect()).unwrap_err();
        let unknown = read(&["dupflow", "completions", "nope"]).to_string();
        assert!(unknown.starts_with("invalid value 'nope' for '<SHELL>'"), "{unknown}");
        let text = read(&["dupflow", "replay", "--epoch", "hourly"]).to_string();
        assert!(text.starts_with("2 problems\n  invalid value 'hourly'"), "{text}");
        assert!(text.ends_with("required arguments were not provided: <INPUT>..."), "{text}");
        for typed in [&["dupflow", "replay"][..], &["dupflow", "replay", "--epoch", "hourly", "--help"]] {
            assert!(read(typed).is::<clap::Error>(), "{typed:?}");
        }
        for typed in [&["dupflow", "replay"][..], &["dupflow", "--log-format", "json", "replay"]] {
            let help = read(typed).to_string();
            assert!(help.contains("Usage: dupflow replay") && help.contains("cat feed.jsonl"), "{help}");
        }
    }
}
