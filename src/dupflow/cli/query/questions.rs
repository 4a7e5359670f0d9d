//! Reads the queries: files with one text each, and a file with one query per line.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::cli::arguments::problems::Problems;
use crate::cli::compare;

/// A query: a text and a name for its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UserQuery {
    /// The file name; or for a line its `id`, else the file name and the line number.
    pub(super) name: String,
    pub(super) text: String,
    /// Most documents to list, if the query sets it.
    pub(super) top: Option<usize>,
}

/// One line in the format of `POST /similar`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QuestionLine {
    text: String,
    top: Option<usize>,
    id: Option<serde_json::Value>,
}

/// Reads all queries in order, the lines last; reports every problem.
pub(super) fn read(
    texts: &[PathBuf],
    lines: Option<&Path>,
    problems: &mut Problems,
) -> Option<Vec<UserQuery>> {
    if texts.iter().map(PathBuf::as_path).chain(lines).filter(|file| *file == Path::new("-")).count() > 1 {
        problems.note("\"-\" is read once");
        return None;
    }
    let mut questions: Vec<Option<UserQuery>> = Vec::new();
    for file in texts {
        let read = problems.take(compare::read(file));
        questions.push(read.map(|text| UserQuery { name: file.display().to_string(), text, top: None }));
    }
    if let Some(file) = lines {
        match problems.take(compare::read_up_to(file, usize::MAX)) {
            Some(read) => questions.extend(by_line(&file.display().to_string(), &read, problems)),
            None => questions.push(None),
        }
    }
    if questions.is_empty() {
        problems.note("no line has a question");
    }
    questions.into_iter().collect()
}

/// The queries of a file, one per line that is not blank; `None` for an invalid line.
fn by_line(name: &str, file: &str, problems: &mut Problems) -> Vec<Option<UserQuery>> {
    let lines = (1..).zip(file.lines()).filter(|(_, line)| !line.trim().is_empty());
    lines
        // In a JSON text sequence (RFC 7464) a line begins with this separator.
        .map(|(number, line)| match serde_json::from_str::<QuestionLine>(line.trim_start_matches('\u{1e}')) {
            Ok(QuestionLine { text, top, id }) => {
                let name = match id {
                    None | Some(serde_json::Value::Null) => format!("{name}:{number}"),
                    Some(serde_json::Value::String(id)) => id,
                    Some(id) => id.to_string(),
                };
                Some(UserQuery { name, text, top })
            }
            Err(error) => {
                problems.note(format_args!(
                    "\"{name}\", line {number}: expected {{\"text\":\"…\"}}, with \"top\" and \"id\" or \
                    without: {error}"
                ));
                None
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_named_by_their_ids_or_their_places() {
        let mut problems = Problems::default();
        let text =
            "{\"text\":\"one\",\"id\":\"a\"}\n\n{\"text\":\"two\",\"top\":3}\r\n{\"text\":\"\",\"id\":[7]}\n";
        let found: Option<Vec<_>> = by_line("file", text, &mut problems).into_iter().collect();
        let question =
            |name: &str, words: &str, top| UserQuery { name: name.to_owned(), text: words.to_owned(), top };
        assert_eq!(
            found.unwrap(),
            [question("a", "one", None), question("file:3", "two", Some(3)), question("[7]", "", None)]
        );
        assert!(problems.is_empty());
    }

    #[test]
    fn every_invalid_query_line_is_reported() {
        let mut problems = Problems::default();
        let text = "{\"text\":\"one\"}\nno\n{\"txt\":\"two\"}\n";
        assert_eq!(by_line("file", text, &mut problems).iter().filter(|line| line.is_none()).count(), 2);
        let report = problems.settle(None::<()>).unwrap_err().to_string();
        let lines: Vec<_> = report.lines().collect();
        assert_eq!(lines.len(), 3, "{report}");
        assert!(lines[1].starts_with("  \"file\", line 2: expected {\"text\":\"…\"}"), "{report}");
        assert!(
            lines[2].starts_with("  \"file\", line 3: ") && lines[2].contains("unknown field `txt`"),
            "{report}"
        );
    }
}
