//! Help: the options of a command in groups, and its short form, with one line for each usual option.

use clap::Command;

/// The groups of options, by their long names. Those of no group are the command's own.
const GROUPS: [(&str, &str); 5] = [
    (
        "Input",
        "files-from corpus id-field text-field ts-field op-field field ids canonical-url csv-delimiter \
         csv-escape csv-quote json-surrogates warc-id warc-not-found until speed max-bad max-unread \
         dead-letter dry-run against benchmark against-id-field against-text-field against-max-bad watch",
    ),
    (
        "Output",
        "output brokers emit decisions output-format mark shard-size report stats provenance times evidence \
         causes notices views monitor",
    ),
    ("Pipeline", "pipeline threshold set"),
    ("Run", "config reconcile epoch workers memory spill processes process hosts resume resume-every"),
    ("Messages", "log-format quiet verbose help version"),
];

/// What `-h` leaves out: what few need.
const RARE: &str = "\
    brokers decisions mark shard-size spill times causes speed max-unread watch notices views \
    processes process hosts resume-every benchmark against-id-field against-text-field against-max-bad \
    csv-delimiter csv-escape csv-quote json-surrogates warc-id warc-not-found canonical-url op-field \
    log-format iops until provenance brute-force-limit";

/// Most characters of the text of an option in `-h`.
const WIDTH: usize = 60;

/// The command with its options in groups. `is_short`: for `-h`.
pub(in crate::cli) fn grouped(command: Command, is_short: bool) -> Command {
    let command = command.mut_subcommands(|below| grouped(below, is_short));
    command.mut_args(|arg| {
        let name = arg.get_long().unwrap_or_default().to_owned();
        let group = GROUPS.iter().find(|(_, names)| has(names, &name));
        let arg = match group.filter(|_| arg.get_help_heading().is_none()) {
            Some((group, _)) => arg.help_heading(*group),
            None => arg,
        };
        if !is_short {
            return arg;
        }
        let text = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let arg = if arg.get_action().takes_values() {
            arg.hide_possible_values(true).hide_default_value(true)
        } else {
            arg
        };
        let arg = arg.help(in_one_line(&text).to_owned());
        arg.hide_short_help(has(RARE, &name))
    })
}

/// Whether a name is in a list.
fn has(names: &str, name: &str) -> bool {
    names.split_whitespace().any(|one| one == name)
}

/// The text up to where it may end, as far as it fits on the line of an option.
fn in_one_line(text: &str) -> &str {
    let is_closed = |part: &str| {
        let count = |of: char| part.matches(of).count();
        count('(') == count(')') && count('[') == count(']') && count('"').is_multiple_of(2)
    };
    let may_end = |end: &usize| text[..*end].chars().count() <= WIDTH && is_closed(&text[..*end]);
    let ends = |mark: &'static str| text.match_indices(mark).map(|(at, _)| at).filter(may_end);
    let part = |marks: [&'static str; 3]| marks.into_iter().flat_map(ends).max();
    let whole = Some(text.len()).filter(may_end);
    let end = ends(". ").next().or(whole).or_else(|| part([": ", "; ", " ["]));
    &text[..end.or_else(|| part([", ", " (", " as in "])).unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn the_short_help_of_a_command_fits_a_screen() {
        let mut command = grouped(Cli::command(), true);
        command.build();
        let mut wrong = Vec::new();
        for below in command.get_subcommands_mut().filter(|below| below.get_name() != "help") {
            let (name, help) = (below.get_name().to_owned(), below.clone().term_width(100).render_help());
            let help = help.to_string();
            wrong.extend(
                Some(format!("{name}: {} lines", help.lines().count())).filter(|_| help.lines().count() > 60),
            );
            // A line that begins no option goes on with the one before.
            let is_second =
                |line: &&str| line.starts_with("            ") && !line.trim_start().starts_with('-');
            wrong.extend(help.lines().filter(is_second).map(|line| format!("{name}: {line}")));
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn examples_are_accepted() {
        let mut examples = 0;
        for below in Cli::command().get_subcommands() {
            let end = below.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in end.lines().filter_map(|line| line.strip_prefix("  dupflow ")) {
                let comment = ["  ", " > ", " | "].into_iter().filter_map(|begin| line.find(begin)).min();
                let typed = line[..comment.unwrap_or(line.len())].replace('\'', "");
                let typed = ["dupflow"].into_iter().chain(typed.split(' ')).map(Into::into).collect();
                let (_, problems) = crate::cli::arguments::read(typed).unwrap();
                assert!(problems.is_empty(), "{line}");
                examples += 1;
            }
        }
        assert!(examples >= 15, "{examples}");
    }

    #[test]
    fn every_grouped_option_is_one() {
        let all = Cli::command();
        let names: Vec<_> = all
            .get_subcommands()
            .flat_map(Command::get_arguments)
            .chain(all.get_arguments())
            .filter_map(clap::Arg::get_long)
            .collect();
        for name in GROUPS.iter().map(|(_, listed)| *listed).chain([RARE]).flat_map(str::split_whitespace) {
            assert!(names.contains(&name) || name == "version", "{name}");
        }
    }

    #[test]
    fn a_text_ends_where_it_may() {
        for (text, line) in [
            ("Short text", "Short text"),
            ("A sentence. Another one that is quite a bit longer than all that the line has", "A sentence"),
            (
                "What the result is: \"deltas\", the changes of pairs in every epoch of all of the inputs",
                "What the result is",
            ),
            (
                "A name, in brackets (which may be long, or longer than the line that it is on)",
                "A name, in brackets",
            ),
        ] {
            assert_eq!(in_one_line(text), line);
        }
    }
}
