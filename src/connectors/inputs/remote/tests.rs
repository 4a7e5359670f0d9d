use std::sync::Arc;

use super::advice::{help, without_credentials};
use super::find::{fixed, web_object};
use super::object::RANGE_BYTES;
use super::web::WebAddress;
use super::*;
use crate::formats::{InputProgress, RandomAccess};

fn names(typed: &str) -> Result<Vec<String>, String> {
    let objects = resolve(typed)?;
    Ok(objects.iter().map(|object| object.name.rsplit('/').next().unwrap_or_default().to_owned()).collect())
}

#[test]
fn folders_and_patterns_name_objects_in_order() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["b.x", "a.x", "_SUCCESS", ".hidden", "sub/日本.x", "a.y", "empty.x"] {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, if name == "empty.x" { "" } else { name }).unwrap();
    }
    let at = |rest: &str| names(&format!("file://{}/{rest}", folder.path().display()));
    let some = |names: &[&str]| Ok(names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
    assert_eq!(at(""), some(&["a.x", "a.y", "b.x", "日本.x"]));
    assert_eq!(at("*.x"), some(&["a.x", "b.x"]));
    assert_eq!(at("**/*.x"), some(&["a.x", "b.x", "日本.x"]));
    assert_eq!(at("a.y"), some(&["a.y"]));
    assert!(at("*.z").unwrap_err().starts_with("no object matches \"file://"));
    assert!(names("gopher://host/a").unwrap_err().starts_with("cannot read \"gopher://host/a\": "));
    for name in ["a%20b.x", "a#1.x", "a b.x"] {
        std::fs::write(folder.path().join(name), name).unwrap();
        assert_eq!(at(name), some(&[name]), "as it stands");
    }
    let empty = names("s3://bucket/a//b.x").unwrap_err();
    assert!(empty.contains("a name in its key is empty"), "{empty}");
    assert_eq!(fixed("s3://b/p/**/*.x"), ("s3://b/p/", true));
    assert_eq!(fixed("https://h/a?b=c"), ("https://h/a?b=c", false));
}

#[test]
fn client_errors_get_advice() {
    let text = "builder error for url (http://127.0.0.1:9000/b): URL scheme is not allowed";
    assert!(help(text).unwrap().contains("AWS_ALLOW_HTTP=true"));
    assert!(
        help("Encountered object with invalid path: Path \"a//b\" contained empty path segment").is_some()
    );
    assert_eq!(help("not found"), None);
    assert_eq!(without_credentials("file"), None);
}

#[test]
fn objects_are_read_in_order_and_at_random() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let bytes: Vec<u8> = (0..2 * RANGE_BYTES + 12_345).map(|n| (n * n % 251) as u8).collect();
    std::fs::write(&path, &bytes).unwrap();
    let objects = resolve(&format!("file://{}", path.display())).unwrap();
    let mut read = Vec::new();
    std::io::Read::read_to_end(&mut objects[0].read(), &mut read).unwrap();
    assert!(read == bytes);
    let progress = Arc::<InputProgress>::default();
    let anywhere = ObjectAccess::new(Arc::clone(&objects[0]), Arc::clone(&progress));
    let mut part = [0; 1000];
    anywhere.read_at(RANGE_BYTES - 500, &mut part).unwrap();
    let from = usize::try_from(RANGE_BYTES).unwrap() - 500;
    assert!(part == bytes[from..from + 1000] && progress.read() == 1000);
    assert!(anywhere.read_at(anywhere.bytes() - 999, &mut part).is_err());
    // Reads two columns alternately in pages of 5,000 bytes: the bytes are right, in far fewer requests
    // than pages.
    let columns = [100_000_u64, 3_000_000];
    let mut page = vec![0; 5_000];
    for number in 0..400 {
        for column in columns {
            let begin = column + number * 5_000;
            anywhere.read_at(begin, &mut page).unwrap();
            let here = usize::try_from(begin).unwrap();
            assert!(page == bytes[here..here + 5_000], "{column}, page {number}");
        }
    }
    let asked = objects[0].requests.load(std::sync::atomic::Ordering::Relaxed);
    assert!(asked < 30, "{asked} requests");
    // Replaces the object by another one of the same size.
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, vec![b'x'; bytes.len()]).unwrap();
    let mut changed = Vec::new();
    let error = std::io::Read::read_to_end(&mut objects[0].read(), &mut changed).unwrap_err().to_string();
    assert!(error.contains("has changed while it was read"), "{error}");
}

/// The store's client repeats a request that the server refuses for a time, and a part that does not arrive;
/// the reader gets its last error.
#[test]
fn a_request_that_fails_again_and_again_is_an_error() {
    use std::io::{BufRead, BufReader, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::new(std::sync::atomic::AtomicU64::default());
    let counted = Arc::clone(&asked);
    std::thread::spawn(move || {
        for mut connection in listener.incoming().map_while(Result::ok) {
            let head = BufReader::new(&connection).lines().map_while(Result::ok);
            let head: Vec<_> = head.take_while(|line| !line.is_empty()).collect();
            let tag = if head[0].contains("untagged") { "" } else { "ETag: \"t\"\r\n" };
            let answer = match &head[0] {
                first if first.starts_with("HEAD") => format!("200 OK\r\n{tag}Content-Length: 9"),
                first if first.contains("busy") => "503 Slow Down\r\nContent-Length: 0".to_owned(),
                _ => format!("206 Partial Content\r\n{tag}Content-Range: bytes 0-8/9\r\nContent-Length: 9"),
            };
            counted.fetch_add(u64::from(!head[0].starts_with("HEAD")), std::sync::atomic::Ordering::Relaxed);
            // Of the nine bytes, two arrive.
            let _ = write!(connection, "HTTP/1.1 {answer}\r\nConnection: close\r\n\r\nab");
        }
    });
    for (name, says, requests) in [("busy", "503", 3), ("lost", "body", 3), ("lost-untagged", "body", 5)] {
        let url = url::Url::parse(&format!("http://127.0.0.1:{port}/{name}?key=hidden")).unwrap();
        let retry = object_store::RetryConfig {
            max_retries: 2,
            backoff: object_store::BackoffConfig {
                init_backoff: std::time::Duration::from_millis(1),
                ..Default::default()
            },
            ..Default::default()
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let object = web_object(&Arc::new(WebAddress::new(&url)), &Arc::new(runtime), retry).unwrap();
        asked.store(0, std::sync::atomic::Ordering::Relaxed);
        let error = std::io::read_to_string(object.read()).unwrap_err().to_string();
        assert!(error.contains(says) && !error.contains("hidden"), "{name}: {error}");
        assert_eq!(asked.load(std::sync::atomic::Ordering::Relaxed), requests, "{name}");
    }
}
