//! Collects the problems of a command line, and reports them as one error with a line for each.

use std::fmt;

/// Most problems that a list prints; the rest are counted.
const MOST_LISTED: usize = 20;

/// A list of problems, each on its own line: the first ones, and the number of the others.
pub(in crate::cli) fn list(problems: &[String]) -> impl fmt::Display {
    fmt::from_fn(|f| {
        problems.iter().take(MOST_LISTED).try_for_each(|problem| write!(f, "\n  {problem}"))?;
        match problems.len().saturating_sub(MOST_LISTED) {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    })
}

/// Succeeds if a run meets all its demands.
///
/// # Errors
/// The demands that are not met.
pub(in crate::cli) fn check_demands(unmet: &[String]) -> anyhow::Result<()> {
    match unmet {
        [] => Ok(()),
        [problem] => anyhow::bail!("{problem}"),
        problems => anyhow::bail!("{} problems{}", problems.len(), list(problems)),
    }
}

/// The problems so far.
#[derive(Debug, Default)]
pub(in crate::cli) struct Problems(Vec<String>);

impl Problems {
    pub(in crate::cli) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a problem; each line of its text counts as one.
    pub(in crate::cli) fn note(&mut self, problem: impl fmt::Display) {
        self.0.extend(problem.to_string().lines().map(str::to_owned));
    }

    /// The value; or `None`, with the error and its causes added.
    pub(in crate::cli) fn take<T>(&mut self, result: Result<T, impl Into<anyhow::Error>>) -> Option<T> {
        result.map_err(|error| self.note(format_args!("{:#}", error.into()))).ok()
    }

    /// The value, if there is one and no problem.
    ///
    /// # Errors
    /// All problems.
    pub(in crate::cli) fn settle<T>(self, value: Option<T>) -> Result<T, WrongUsage> {
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            _ => Err(WrongUsage(self.0)),
        }
    }
}

/// The error of a command line with problems. The exit code is 2.
#[derive(Debug)]
pub(in crate::cli) struct WrongUsage(Vec<String>);

impl fmt::Display for WrongUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0[..] {
            [problem] => f.write_str(problem),
            problems => write!(f, "{} problems{}", problems.len(), list(problems)),
        }
    }
}

impl std::error::Error for WrongUsage {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_problem_is_one_line_and_more_are_a_list() {
        let mut problems = Problems::default();
        assert_eq!(problems.take(Ok::<_, std::io::Error>(1)), Some(1));
        problems.note("first");
        assert_eq!(WrongUsage(problems.0.clone()).to_string(), "first");
        problems.take(Err::<(), _>(anyhow::anyhow!("cause").context("second\nthird")));
        let error = problems.settle(Some(())).unwrap_err();
        assert_eq!(error.to_string(), "3 problems\n  first\n  second\n  third: cause");
    }

    #[test]
    fn of_a_long_list_the_first_problems_are_printed() {
        let of = |count: usize| WrongUsage((1..=count).map(|n| n.to_string()).collect()).to_string();
        assert!(of(20).ends_with("\n  19\n  20"), "{}", of(20));
        assert!(
            of(23).starts_with("23 problems\n  1\n") && of(23).ends_with("\n  20\n  and 3 more"),
            "{}",
            of(23)
        );
    }

    #[test]
    fn a_value_without_problems() {
        assert_eq!(Problems::default().settle(Some(7)).unwrap(), 7);
    }
}
