//! The image.

use std::fs;
use std::path::Path;

use super::{program, read, root};

/// Instructions with their arguments; continued lines are joined.
fn instructions() -> Vec<(String, String)> {
    let lines = read("Dockerfile").replace("\\\n", " ");
    let lines = lines.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| line.split_once(' ').map(|(name, rest)| (name.to_owned(), rest.to_owned())).unwrap())
        .collect()
}

/// The arguments of the only instruction with that name.
fn only(name: &str) -> String {
    let mut found: Vec<_> =
        instructions().into_iter().filter(|(n, _)| n == name).map(|(_, rest)| rest).collect();
    assert_eq!(found.len(), 1, "{name}");
    found.remove(0)
}

/// The paths that are copied from the repository, without options and target.
fn sources() -> Vec<String> {
    let copies =
        instructions().into_iter().filter(|(name, rest)| name == "COPY" && !rest.starts_with("--from"));
    let paths = copies.flat_map(|(_, rest)| {
        let words: Vec<String> =
            rest.split(' ').filter(|word| !word.starts_with("--")).map(str::to_owned).collect();
        words[..words.len() - 1].to_vec()
    });
    paths.collect()
}

#[test]
fn copied_paths_exist_and_cover_the_build() {
    let sources = sources();
    for path in ["Cargo.toml", "Cargo.lock", "src", "docker/probe"] {
        assert!(sources.iter().any(|source| source == path), "{path} is not copied");
    }
    for source in &sources {
        assert!(root().join(source).exists(), "{source}");
    }
    // As in `include_str!("../../pipelines/minhash.toml")`.
    let mut folders = vec![root().join("src")];
    let mut included = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                // A room of unit tests is not in the program.
                folders.extend((!path.ends_with("tests")).then_some(path));
                continue;
            }
            let code = fs::read_to_string(&path).unwrap();
            if path.to_string_lossy().ends_with("tests.rs") {
                continue;
            }
            let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap();
            for name in code.split("include_str!(\"").skip(1).filter_map(|rest| rest.split('"').next()) {
                let target = path.parent().unwrap().join(name).canonicalize().unwrap();
                let relative = target.strip_prefix(root().canonicalize().unwrap()).unwrap().to_owned();
                let is_copied = sources.iter().any(|source| relative.starts_with(Path::new(source)));
                assert!(is_copied, "{} is compiled in and not copied", relative.display());
                included += 1;
            }
        }
    }
    assert!(included > 0, "pipelines are compiled in");
}

#[test]
fn the_builder_uses_existing_sources_and_features() {
    let from: Vec<String> =
        instructions().into_iter().filter(|(name, _)| name == "FROM").map(|(_, rest)| rest).collect();
    assert_eq!(
        from,
        [format!("rust:{}-bookworm AS builder", program::rust_version()), "debian:bookworm-slim".to_owned()]
    );
    let build = instructions().into_iter().find(|(_, rest)| rest.contains("cargo build")).unwrap().1;
    let words: Vec<String> = build.split_whitespace().map(str::to_owned).collect();
    assert_eq!(program::value(&words, "--bin"), "dupflow");
    program::value(&words, "--features").split(',').for_each(program::check_feature);
    assert!(words.contains(&"--locked".to_owned()));
}

#[test]
fn the_image_runs_dupflow_as_another_user_than_root() {
    assert_eq!(only("ENTRYPOINT"), r#"["dupflow"]"#);
    assert_eq!(only("CMD"), r#"["--help"]"#);
    assert_eq!(only("USER"), "10001:10001");
    assert_eq!(only("STOPSIGNAL"), "SIGTERM");
    assert!(only("HEALTHCHECK").ends_with(r#"CMD ["probe", "/health"]"#));
    let text = read("Dockerfile");
    for made in
        ["/usr/local/bin/dupflow /usr/local/bin/dupflow", "docker/probe /usr/local/bin/probe", "--uid 10001"]
    {
        assert!(text.contains(made), "{made}");
    }
}
