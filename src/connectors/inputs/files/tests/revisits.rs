//! Revisits refer to the same pages whether a run reads all archives or continues after the first of them.

use super::*;
use crate::formats::{ArchiveRole, FileRow, NextRow, RowText, WarcId};
use crate::inputs::open::{Opened, Opening};

/// Reads an archive with the pages that are held; the text that each revisit gets.
fn texts(revisits: &mut Revisits, input: &Input) -> Result<Vec<Option<String>>, SourceError> {
    let (columns, progress, waits) = (TextColumns::default(), Arc::default(), Arc::default());
    let failure = ReadFailure::default();
    let (columns, progress, waits, failure) = (&columns, &progress, &waits, &failure);
    let opening = Opening { columns, progress, waits, failure, digest: None, durable: None };
    let Opened::Rows(mut rows) = opening.open(input).unwrap() else { panic!("{input:?}") };
    let (mut row, mut found) = (FileRow::default(), Vec::new());
    revisits.begin(input);
    loop {
        match (rows.next(&mut row).unwrap(), row.role) {
            (NextRow::End, _) => return Ok(found),
            (NextRow::Row, ArchiveRole::Page(_)) => revisits.hold(&row),
            (NextRow::Row, _) => {
                let is_resolved = revisits.resolve(&mut row, columns, &opening)?;
                let RowText::Is(text) = &row.text else {
                    assert!(!is_resolved);
                    found.push(None);
                    continue;
                };
                found.push(Some(String::from_utf8(text.clone()).unwrap()));
            }
            other => panic!("{other:?}"),
        }
    }
}

/// The texts of the revisits in the archives that are read, which are those after the first `left_out`.
fn after(archives: &[Input], left_out: usize) -> Vec<Option<String>> {
    let mut revisits = Revisits::default();
    let (known, new) = archives.split_at(left_out);
    known.iter().for_each(|input| revisits.leave_out(input));
    new.iter().flat_map(|input| texts(&mut revisits, input).unwrap()).collect()
}

/// A record, the number of which is its id and its second.
fn record(kind: &str, number: usize, address: usize, lines: &[String], block: &str) -> String {
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{number}>\r\n\
         WARC-Target-URI: http://a.test/{address}\r\nWARC-Date: {}\r\n{lines}\
         Content-Length: {}\r\n\r\n{block}\r\n\r\n",
        date(number),
        block.len()
    )
}

fn date(number: usize) -> String {
    format!("2026-01-01T00:{:02}:{:02}Z", number / 60, number % 60)
}

fn archive(content: &str) -> Input {
    let layout = InputLayout { warc_id: WarcId::Uri, ..InputLayout::default() };
    Input::of_bytes("a.warc", content.as_bytes().to_vec(), layout)
}

const UNMODIFIED: &str = "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/server-not-modified";

/// The last page of its address is of the archive that is read, and not the one that is meant.
#[test]
fn a_page_of_an_earlier_archive_is_before_what_a_weaker_field_finds() {
    let page = |number, address, text: &str| record("conversion", number, address, &[], text);
    let of = ["WARC-Refers-To: <urn:uuid:1>".to_owned(), UNMODIFIED.to_owned()];
    let archives = [
        archive(&(page(1, 0, "first") + &page(2, 1, "first"))),
        archive(&(page(3, 0, "second") + &record("revisit", 4, 0, &of, ""))),
    ];
    for left_out in [0, 1] {
        assert_eq!(after(&archives, left_out), [Some("first".to_owned())], "{left_out} left out");
    }
}

#[test]
fn a_run_that_continues_finds_the_pages_of_a_run_from_the_beginning() {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let mut resolved = 0;
    for round in 0..300 {
        let mut number = 0;
        let mut archives = Vec::new();
        for _ in 0..4 {
            let mut content = String::new();
            for _ in 0..rng.random_range(1..5) {
                number += 1;
                let (address, of) = (rng.random_range(0..3), rng.random_range(0..=number));
                let mut lines = Vec::new();
                if rng.random_ratio(1, 2) {
                    lines.push(format!("WARC-Payload-Digest: sha1:{}", rng.random_range(0..3)));
                }
                if rng.random_ratio(1, 2) {
                    content += &record("conversion", number, address, &lines, &format!("text {number}"));
                    continue;
                }
                if rng.random_ratio(1, 3) {
                    lines.push(format!("WARC-Refers-To: <urn:uuid:{of}>"));
                }
                if rng.random_ratio(1, 3) {
                    lines.push(format!("WARC-Refers-To-Date: {}", date(of)));
                }
                if rng.random_ratio(1, 2) {
                    lines.push(UNMODIFIED.to_owned());
                }
                content += &record("revisit", number, address, &lines, "");
            }
            archives.push(archive(&content));
        }
        let all = after(&archives, 0);
        resolved += all.iter().flatten().count();
        for left_out in 1..4 {
            let rest = after(&archives, left_out);
            assert_eq!(all[all.len() - rest.len()..], rest, "round {round}, {left_out} left out");
        }
    }
    assert!(resolved > 300, "{resolved} pages were found");
}

/// Otherwise a store that is away would change what a revisit means.
#[test]
fn an_earlier_archive_that_cannot_be_read_is_an_error() {
    let mut gone = archive("");
    gone.place = InputPlace::File("/nowhere/a.warc".into());
    let mut revisits = Revisits::default();
    revisits.leave_out(&gone);
    let new = archive(&record("revisit", 2, 0, &["WARC-Refers-To: <urn:uuid:1>".to_owned()], ""));
    let error = texts(&mut revisits, &new).unwrap_err().to_string();
    assert!(error.contains("a.warc: it cannot be read again"), "{error}");
}
