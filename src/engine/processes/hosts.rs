//! The hosts file: the address of each process.
//!
//! Lines of text -> one `host:port` a process: line i, not counting blank lines and comments, is process i,
//! from 0. A comment begins with `#`. A host is a name, an IPv4 address, or an IPv6 address in brackets.
//! Lines beyond the number of processes are checked but not used: a run of fewer processes can use the same
//! file.
//!
//! ```text
//! # host:port
//! sketch-a:7420
//! 10.0.0.7:7420   # the one with the disk
//! [fd00::7]:7420
//! ```
//!
//! Invariants of [`Processes`]: two or more of them, each with its own address; the index is less than their
//! number.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

use thiserror::Error;

/// The processes of a run, and which of them this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processes {
    index: usize,
    hosts: Vec<String>,
}

/// All problems of the options and the hosts file, a line for each.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct HostsError(pub Vec<HostsProblem>);

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostsProblem {
    /// The file, and the line from 1 if the problem is in one; `None` if the problem is in the options.
    pub at: Option<(String, Option<usize>)>,
    /// What is wrong, and what was expected.
    pub what: String,
}

impl Processes {
    /// From the options `--processes`, `--process` and `--hosts`. `None`: a single process.
    ///
    /// # Errors
    /// All problems of the options and of the file.
    pub fn from_options(
        count: Option<usize>,
        index: Option<usize>,
        hosts: Option<&Path>,
    ) -> Result<Option<Self>, HostsError> {
        let Some(count) = count else {
            let alone = [index.map(|_| "--process"), hosts.map(|_| "--hosts")];
            let problems = alone.into_iter().flatten();
            let problems: Vec<_> =
                problems.map(|option| HostsProblem::option(format!("{option} needs --processes"))).collect();
            return if problems.is_empty() { Ok(None) } else { Err(HostsError(problems)) };
        };
        let mut problems = Vec::new();
        if count == 0 {
            problems.push(HostsProblem::option("--processes is 0, expected 1 or more".to_owned()));
        }
        if count > 1 && index.is_none() {
            problems.push(HostsProblem::option(format!(
                "--processes {count} needs --process, from 0 to {}",
                count - 1
            )));
        }
        if let Some(index) = index.filter(|index| *index >= count && count > 0) {
            let what = format!("--process is {index}, expected 0 to {} of --processes {count}", count - 1);
            problems.push(HostsProblem::option(what));
        }
        let mut found = Vec::new();
        match hosts {
            Some(path) if count > 1 => {
                let name = path.display().to_string();
                match fs::read_to_string(path) {
                    Ok(text) => found = read(&text, &name, count, &mut problems),
                    Err(error) => {
                        problems.push(HostsProblem { at: Some((name, None)), what: error.to_string() });
                    }
                }
            }
            None if count > 1 => {
                problems.push(HostsProblem::option(format!("--processes {count} needs --hosts FILE")));
            }
            _ => {}
        }
        if !problems.is_empty() {
            return Err(HostsError(problems));
        }
        found.truncate(count);
        Ok(index.filter(|_| count > 1).map(|index| Self { index, hosts: found }))
    }

    /// From the text of a hosts file, for process `index` of `count`, 2 or more. `name` names the file in
    /// problems.
    ///
    /// # Errors
    /// All problems of the text.
    pub fn read(text: &str, name: &str, count: usize, index: usize) -> Result<Self, HostsError> {
        let mut problems = Vec::new();
        if index >= count || count < 2 {
            problems.push(HostsProblem::option(format!("no process {index} of {count}")));
        }
        let mut hosts = read(text, name, count, &mut problems);
        hosts.truncate(count);
        if problems.is_empty() { Ok(Self { index, hosts }) } else { Err(HostsError(problems)) }
    }

    /// The index of this process, from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The number of processes, 2 or more.
    pub fn count(&self) -> usize {
        self.hosts.len()
    }

    /// The address of each process, `host:port`.
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// The name of a process in messages: `process 1 (host:port)`.
    pub fn name(&self, process: usize) -> String {
        format!("process {process} ({})", self.hosts[process])
    }
}

/// The addresses in a text, in order; appends to `problems`.
fn read(text: &str, name: &str, count: usize, problems: &mut Vec<HostsProblem>) -> Vec<String> {
    let mut hosts = Vec::new();
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    for (line, text_line) in (1..).zip(text.lines()) {
        let host = text_line.split('#').next().unwrap_or_default().trim();
        if host.is_empty() {
            continue;
        }
        let at = |what| HostsProblem { at: Some((name.to_owned(), Some(line))), what };
        if let Err(expected) = check(host) {
            problems.push(at(format!("found \"{host}\", expected {expected}")));
        }
        if let Some(first) = lines.get(&host.to_lowercase()) {
            problems.push(at(format!("\"{host}\" stands in line {first} already")));
        } else {
            lines.insert(host.to_lowercase(), line);
        }
        hosts.push(host.to_owned());
    }
    if hosts.len() < count {
        let what = format!("{} lines name a host, --processes {count} needs as many", hosts.len());
        problems.push(HostsProblem { at: Some((name.to_owned(), None)), what });
    }
    hosts
}

/// Checks a host and a port; the error is what was expected.
fn check(host: &str) -> Result<(), &'static str> {
    let (host, port) = host.rsplit_once(':').ok_or("host:port")?;
    if port.parse::<u16>().map_or(true, |port| port == 0) || port.starts_with('+') {
        return Err("a port from 1 to 65535 after the last \":\"");
    }
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    match bracketed {
        Some(address) if address.parse::<std::net::Ipv6Addr>().is_err() => {
            Err("an IPv6 address between \"[\" and \"]\"")
        }
        Some(_) => Ok(()),
        None if host.contains(':') => Err("an IPv6 address in brackets, or one \":\" only"),
        None if host.is_empty() => Err("a host before \":\""),
        None if host.contains(|c: char| c.is_whitespace() || c == '/' || c == '[' || c == ']') => {
            Err("a host without blanks, slashes and brackets")
        }
        None => Ok(()),
    }
}

impl HostsProblem {
    fn option(what: String) -> Self {
        Self { at: None, what }
    }
}

impl fmt::Display for HostsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.at {
            Some((file, Some(line))) => write!(f, "{file}:{line}: ")?,
            Some((file, None)) => write!(f, "{file}: ")?,
            None => {}
        }
        f.write_str(&self.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str, count: usize) -> String {
        Processes::read(text, "hosts.txt", count, 0).unwrap_err().to_string()
    }

    #[test]
    fn blank_lines_and_comments_are_skipped() {
        let text = "# the machines\r\n\r\n a:1 \r\n10.0.0.7:65535 # the other\n\t\n[::1]:2\nspare:9";
        let read = Processes::read(text, "hosts.txt", 3, 2).unwrap();
        assert_eq!(read.hosts(), ["a:1", "10.0.0.7:65535", "[::1]:2"]);
        assert_eq!((read.index(), read.count(), read.name(0).as_str()), (2, 3, "process 0 (a:1)"));
    }

    #[test]
    fn every_problem_is_reported() {
        let text = "a:1\nb\nA:1\nc:0\nd:70000\n::1:5\n[x]:5\n:5\ne f:5\ng:+5\n";
        let expected = [
            "hosts.txt:2: found \"b\", expected host:port",
            "hosts.txt:3: \"A:1\" stands in line 1 already",
            "hosts.txt:4: found \"c:0\", expected a port from 1 to 65535 after the last \":\"",
            "hosts.txt:5: found \"d:70000\", expected a port from 1 to 65535 after the last \":\"",
            "hosts.txt:6: found \"::1:5\", expected an IPv6 address in brackets, or one \":\" only",
            "hosts.txt:7: found \"[x]:5\", expected an IPv6 address between \"[\" and \"]\"",
            "hosts.txt:8: found \":5\", expected a host before \":\"",
            "hosts.txt:9: found \"e f:5\", expected a host without blanks, slashes and brackets",
            "hosts.txt:10: found \"g:+5\", expected a port from 1 to 65535 after the last \":\"",
            "hosts.txt: 10 lines name a host, --processes 11 needs as many",
        ];
        assert_eq!(problems(text, 11).lines().collect::<Vec<_>>(), expected);
        assert_eq!(problems("", 2), "hosts.txt: 0 lines name a host, --processes 2 needs as many");
    }

    #[test]
    fn options_belong_together() {
        let none = Path::new("no/such/file");
        let error =
            |count, index, hosts| Processes::from_options(count, index, hosts).unwrap_err().to_string();
        assert_eq!(Processes::from_options(None, None, None), Ok(None));
        assert_eq!(Processes::from_options(Some(1), None, None), Ok(None));
        assert_eq!(
            Processes::from_options(Some(1), Some(0), Some(none)),
            Ok(None),
            "one process needs no file"
        );
        assert_eq!(
            error(None, Some(0), Some(none)),
            "--process needs --processes\n--hosts needs --processes"
        );
        assert_eq!(error(Some(0), None, None), "--processes is 0, expected 1 or more");
        assert_eq!(error(Some(1), Some(1), None), "--process is 1, expected 0 to 0 of --processes 1");
        assert_eq!(
            error(Some(2), None, None),
            "--processes 2 needs --process, from 0 to 1\n--processes 2 needs --hosts FILE"
        );
        let both = error(Some(2), Some(2), Some(none));
        assert!(
            both.starts_with("--process is 2, expected 0 to 1 of --processes 2\nno/such/file: "),
            "{both}"
        );
    }
}
