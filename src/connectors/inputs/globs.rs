//! Patterns of paths (globs), and lists of paths.
//!
//! ```text
//! *   any characters of one name      **  any names, or none        ?  one character
//! [a-z] [!a-z]  one of these, or none of them                      {a,b}  one of these patterns
//! ```
//!
//! A path that exists under exactly the typed name is that file. A name that
//! begins with a point is matched only by a pattern that has the point, and so is everything below such a
//! folder. `_SUCCESS` and `.part-0.crc` beside the files of a dataset are not matched by `*.parquet`.
//! Symbolic links are followed, except to a folder above them.

use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use walkdir::WalkDir;

/// The files that a pattern matches, in the order of the bytes of their paths; `None` if `path` is no
/// pattern.
///
/// # Errors
/// What is wrong with the pattern, in one line; or that it matches no file.
pub(crate) fn expand(path: &Path) -> Result<Option<Vec<PathBuf>>, String> {
    let Some(pattern) = path.to_str().filter(|typed| is_pattern(typed) && !path.exists()) else {
        return Ok(None);
    };
    let matcher = matcher(pattern)?;
    let base = base(path);
    let below = pattern.split('/').skip_while(|part| !is_pattern(part));
    let names_points = below.into_iter().any(|part| part.starts_with('.'));
    let from = if base.as_os_str().is_empty() { Path::new(".") } else { &base };
    let is_wanted = |entry: &walkdir::DirEntry| {
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        entry.depth() == 0 || !is_hidden || names_points
    };
    let mut found = Vec::new();
    if !from.exists() {
        return Err(format!("no file matches \"{pattern}\""));
    }
    // Without a base folder, `WalkDir` starts at ".", which is no part of the pattern.
    let own = |one: &Path| {
        let stripped = one.strip_prefix(from).ok().filter(|_| base.as_os_str().is_empty());
        stripped.unwrap_or(one).to_owned()
    };
    for entry in WalkDir::new(from).follow_links(true).into_iter().filter_entry(is_wanted) {
        match entry {
            Ok(entry) if entry.path().is_file() => found.push(own(entry.path())),
            Ok(_) => {}
            Err(error) => {
                // A link that leads nowhere, or to a folder above it, is left out if it is not meant.
                let at = error.path().map(own).unwrap_or_default();
                if error.loop_ancestor().is_none() && (!at.is_symlink() || matcher.is_match(&at)) {
                    return Err(format!("cannot read \"{pattern}\": {error}"));
                }
            }
        }
    }
    found.retain(|one| matcher.is_match(one));
    if found.is_empty() {
        return Err(format!("no file matches \"{pattern}\""));
    }
    found.sort_unstable_by(|a, b| a.as_os_str().as_encoded_bytes().cmp(b.as_os_str().as_encoded_bytes()));
    Ok(Some(found))
}

/// Whether a name has a special character of patterns.
pub(crate) fn is_pattern(typed: &str) -> bool {
    typed.contains(['*', '?', '[', '{'])
}

/// Compiles a pattern; `*` does not match `/`.
///
/// # Errors
/// What is wrong with the pattern, in one line.
pub(crate) fn matcher(pattern: &str) -> Result<GlobMatcher, String> {
    let glob = GlobBuilder::new(pattern.trim_start_matches("./")).literal_separator(true).build();
    glob.map(|glob| glob.compile_matcher())
        .map_err(|error| format!("\"{pattern}\" is no pattern: {}", error.kind()))
}

/// The folder above the first name that is a pattern; every match is below it.
fn base(pattern: &Path) -> PathBuf {
    let plain = |part: &Component<'_>| part.as_os_str().to_str().is_some_and(|part| !is_pattern(part));
    let plain = pattern.components().skip_while(|part| *part == Component::CurDir).take_while(plain);
    plain.collect()
}

/// The inputs that a list names: one per line, blank lines are ignored.
pub fn listed(list: &str) -> impl Iterator<Item = PathBuf> {
    list.lines()
        .map(|line| line.trim_end_matches('\r'))
        .filter(|line| !line.trim().is_empty())
        .map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_find_files_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for name in
            ["b.x", "a.x", "a.y", "日本/語.x", "d/e/f.x", "d/.h/g.x", ".i.x", "_SUCCESS", "[1].x", "d.x/k"]
        {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let found = |pattern: &str| {
            let found = expand(&root.join(pattern)).map(|found| {
                let names = |path: PathBuf| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                found.map(|found| found.into_iter().map(names).collect::<Vec<_>>())
            });
            found.map_err(|error| error.replace(root.to_str().unwrap(), ""))
        };
        let some = |names: &[&str]| Ok(Some(names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>()));
        assert_eq!(found("*.x"), some(&["[1].x", "a.x", "b.x"]));
        assert_eq!(found("**/*.x"), some(&["[1].x", "a.x", "b.x", "d/e/f.x", "日本/語.x"]));
        assert_eq!(found("d/**"), some(&["d/e/f.x"]));
        assert_eq!(found("{a,b}.?"), some(&["a.x", "a.y", "b.x"]));
        assert_eq!(found("[!a].x"), some(&["b.x"]));
        assert_eq!(found(".*.x"), some(&[".i.x"]));
        assert_eq!(found("[1].x"), Ok(None), "a file of this name");
        assert_eq!(found("a.x"), Ok(None));
        assert_eq!(found("missing"), Ok(None));
        assert_eq!(found("*.z"), Err("no file matches \"/*.z\"".to_owned()));
        #[cfg(unix)]
        {
            for (target, link) in
                [("../a.x", "d/l.x"), ("../日本", "d/m"), ("../d", "d/n"), ("none", "d/o.z")]
            {
                std::os::unix::fs::symlink(target, root.join(link)).unwrap();
            }
            assert_eq!(found("d/**/*.x"), some(&["d/e/f.x", "d/l.x", "d/m/語.x"]));
            assert!(found("d/*.z").unwrap_err().contains("/d/o.z"), "a link that leads nowhere");
        }
        assert!(found("{a").unwrap_err().starts_with("\"/{a\" is no pattern: "));
    }

    #[test]
    fn lists_have_one_input_a_line() {
        let listed: Vec<_> = listed("a b\r\n\n  \n日本.jsonl\n*.x").collect();
        assert_eq!(listed, [Path::new("a b"), Path::new("日本.jsonl"), Path::new("*.x")]);
    }
}
