//! The tests of the Python package, by pytest: `python/tests`.
//!
//! In: the extension that cargo built for the workspace, the program, Python 3.10 or newer with venv and pip,
//! and a package registry once. The virtual environment stays in the target folder. Without one of these the
//! test passes, and says SKIPPED on standard error, as for each test that pytest skips.
//!
//! Bug class: a library that changes beneath its package.

#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the tests import. mypy checks the types; five libraries hand out frames, Scrapy posts.
const PACKAGES: [&str; 10] = [
    "datasets",
    "deltalake",
    "duckdb",
    "hypothesis",
    "mypy",
    "pandas",
    "polars",
    "pyarrow",
    "pytest",
    "scrapy",
];

/// Names under which Python is looked for, the first one of at least version 3.10 is taken.
const PYTHONS: [&str; 5] = ["python3", "python3.13", "python3.12", "python3.11", "python3.10"];

/// Ends without an error if the version is sufficient and environments can be made.
const PROBE: &str = "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 10))";

/// Reports what does not run, past the test harness, which hides the output of tests that pass.
fn skipped(what: &str) {
    std::io::stderr().write_all(format!("SKIPPED python: {what}\n").as_bytes()).unwrap();
}

/// Runs a command; the error is the last line of its output.
fn run(command: &mut Command) -> Result<(), String> {
    let done = command.output().map_err(|error| error.to_string())?;
    if done.status.success() {
        return Ok(());
    }
    let text = [done.stdout, done.stderr].concat();
    Err(String::from_utf8_lossy(&text).lines().last().unwrap_or("it fails without a message").to_owned())
}

/// The Python of an environment with all packages, made at first; the error says what is missing.
fn environment(place: &Path) -> Result<PathBuf, String> {
    let python = place.join("bin/python");
    let marker = place.join("installed");
    let wanted = PACKAGES.join("\n");
    if fs::read_to_string(&marker).is_ok_and(|installed| installed == wanted)
        && run(Command::new(&python).args(["-c", PROBE])).is_ok()
    {
        return Ok(python);
    }
    let is_usable = |name: &&&str| run(Command::new(name).args(["-c", PROBE])).is_ok();
    let found =
        PYTHONS.iter().find(is_usable).ok_or("there is no Python 3.10 or newer with venv and ensurepip")?;
    if place.exists() {
        fs::remove_dir_all(place).map_err(|error| error.to_string())?;
    }
    run(Command::new(found).args(["-m", "venv"]).arg(place))?;
    // Wheels only: nothing is compiled here.
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:"];
    let patience = ["--retries=1", "--timeout=20"];
    run(Command::new(&python).args(pip).args(patience).args(PACKAGES))?;
    fs::write(&marker, wanted).map_err(|error| error.to_string())?;
    Ok(python)
}

/// The newest extension that cargo built, which must not be older than a source of these. `cargo test` builds
/// it as an example, `cargo build` beside the program.
fn extension(folder: &Path, sources: &[PathBuf]) -> Result<PathBuf, String> {
    let name = format!("{}_dupflow{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let modified = |path: &Path| path.metadata().and_then(|file| file.modified()).ok();
    let (built, path) = ["", "deps", "examples"]
        .into_iter()
        .map(|part| folder.join(part).join(&name))
        .filter_map(|path| Some((modified(&path)?, path)))
        .max()
        .ok_or_else(|| format!("{name} is not built: `cargo test --workspace` builds it"))?;
    for entry in sources.iter().flat_map(walkdir::WalkDir::new).map(Result::unwrap) {
        let is_source = entry.path().extension().is_some_and(|extension| extension == "rs");
        assert!(
            !is_source || modified(entry.path()).unwrap() <= built,
            "{} is newer than {}: `cargo test --workspace` builds it again",
            entry.path().display(),
            path.display()
        );
    }
    Ok(path)
}

/// A folder with the package as it would be installed.
fn package(project: &Path, extension: &Path) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let package = place.path().join("dupflow");
    fs::create_dir(&package).unwrap();
    for entry in fs::read_dir(project.join("dupflow")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        if entry.path().is_file() && Path::new(&name).extension().is_none_or(|ending| ending != "so") {
            fs::copy(entry.path(), package.join(name)).unwrap();
        }
    }
    fs::copy(extension, package.join("_dupflow.abi3.so")).unwrap();
    place
}

#[test]
fn pytest_passes() {
    let program = Path::new(env!("CARGO_BIN_EXE_dupflow"));
    let folder = program.parent().unwrap();
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
    let sources = [project.join("src"), project.with_file_name("src")];
    let extension = match extension(folder, &sources) {
        Ok(path) => path,
        Err(why) => return skipped(&why),
    };
    let place = folder.join("python-tests");
    fs::create_dir_all(&place).unwrap();
    let python = match environment(&place.join("venv")) {
        Ok(python) => python,
        Err(why) => return skipped(&why),
    };
    let package = package(&project, &extension);
    let done = Command::new(python)
        .args(["-m", "pytest", "-c"])
        .arg(project.join("pyproject.toml"))
        .args(["-q", "-rs", "--durations=5", "--tb=short"])
        .arg(project.join("tests"))
        .current_dir(package.path())
        .env("PYTHONPATH", package.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("DUPFLOW_BIN", program)
        .env("DUPFLOW_MYPY_CACHE", place.join("mypy"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{text}\n{}", String::from_utf8_lossy(&done.stderr));
    text.lines().filter_map(|line| line.strip_prefix("SKIPPED ")).for_each(skipped);
    println!("{text}");
}
