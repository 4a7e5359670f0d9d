//! Results as Arrow files: the columns and values of the comma-separated values, and read by `verify`.

#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

use std::fs::File;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_ipc::reader::FileReader;

use super::dupflow::Place;
use super::feeds::{delete, page, upsert};

/// A value as text: a number by its bits, so that all digits count.
fn number(value: f64) -> String {
    format!("{:x}", value.to_bits())
}

/// The header and the rows of an Arrow file; a missing value is empty.
fn arrow(path: &Path) -> Vec<Vec<String>> {
    let reader = FileReader::try_new(File::open(path).unwrap(), None).unwrap();
    let mut rows = vec![reader.schema().fields().iter().map(|field| field.name().clone()).collect()];
    let cell = |column: &dyn Array, row: usize| match column {
        _ if column.is_null(row) => String::new(),
        text if text.as_string_opt::<i32>().is_some() => text.as_string::<i32>().value(row).to_owned(),
        flag if flag.as_boolean_opt().is_some() => flag.as_boolean().value(row).to_string(),
        whole if whole.as_primitive_opt::<Int64Type>().is_some() => {
            whole.as_primitive::<Int64Type>().value(row).to_string()
        }
        float => number(float.as_primitive::<Float64Type>().value(row)),
    };
    for batch in reader {
        let batch: RecordBatch = batch.unwrap();
        let of = |row| batch.columns().iter().map(|column| cell(column, row)).collect();
        rows.extend((0..batch.num_rows()).map(of));
    }
    rows
}

/// The same of comma-separated values; `floats` are the columns of an Arrow file that are floats.
fn table(text: &str, floats: &[bool]) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    let row = |(n, row): (usize, csv::Result<csv::StringRecord>)| {
        let cells = row.unwrap();
        let cells = cells.iter().zip(floats).map(|(cell, is_float)| match cell.parse() {
            Ok(value) if *is_float && n > 0 => number(value),
            _ => cell.to_owned(),
        });
        cells.collect()
    };
    reader.records().enumerate().map(row).collect()
}

/// The rows without the column of the time of day.
fn timeless(mut rows: Vec<Vec<String>>) -> Vec<Vec<String>> {
    if let Some(at) = rows[0].iter().position(|name| name == "at") {
        rows.iter_mut().for_each(|row| drop(row.remove(at)));
    }
    rows
}

#[test]
fn arrow_files_hold_the_rows_of_comma_separated_values() {
    let place = Place::new();
    let awkward = ["a,b", "c\"d", "e f", "\u{1f980}", "=1+2", "", "l\nm"];
    let mut events: Vec<_> =
        (0..60).map(|n| upsert(&format!("{n:02}"), &page(n % 7..n % 7 + 2, n % 5))).collect();
    events.extend(awkward.iter().filter(|id| !id.is_empty()).map(|id| upsert(id, &page(0..0, 0))));
    events.extend((0..9).map(|n| delete(&format!("{n:02}"))));
    place.file("feed.jsonl", events.concat());
    place.file("items.jsonl", upsert("item", &page(0..0, 0)));
    for options in [
        "--emit pairs",
        "--emit pairs --evidence",
        "--emit deltas --epoch events:7 --evidence --causes",
        "--emit clusters",
        "--emit clusters --set output.cluster_limit=3",
        "--emit cluster-deltas --epoch events:7",
        "--emit keep",
        "--emit remove",
        "--emit remove --against items.jsonl",
        "--emit pairs -p contained",
        "--emit items -p decontaminate --against items.jsonl",
        "--emit decisions --decisions current --epoch events:7",
        "--emit decisions --set output.cluster_limit=3",
        "--emit rejected:20 --set threshold=0.99",
        "--emit pairs --set threshold=1",
    ] {
        // Decisions have no place for a provenance.
        let provenance = if options.contains("decisions") { "" } else { " --provenance" };
        let written = place.run(&format!("replay {options}{provenance} -o out.arrow feed.jsonl"));
        assert_eq!((written.code, written.out.as_str()), (0, ""), "{options}: {written:?}");
        let reader = FileReader::try_new(File::open(place.path("out.arrow")).unwrap(), None).unwrap();
        let floats: Vec<_> =
            reader.schema().fields().iter().map(|field| field.data_type().is_floating()).collect();
        let listed = place.replay(&format!("{options} --output-format csv feed.jsonl")).0.out;
        let [rows, expected] = [arrow(&place.path("out.arrow")), table(&listed, &floats)].map(timeless);
        assert!(expected.len() > 1 || options.contains("threshold=1"), "{options}");
        assert_eq!(rows, expected, "{options}");
        if !options.contains("--against") && !provenance.is_empty() {
            let verified = place.run("verify out.arrow feed.jsonl");
            assert_eq!(verified.code, 0, "{options}: {verified:?}");
        }
    }
    let failed = place.run("replay --emit keep --max-bad 0 -o out.arrow feed.jsonl missing.jsonl");
    assert_eq!(failed.code, 2, "{failed:?}");
    // A Feather file is an Arrow file.
    assert_eq!(place.run("replay --emit pairs -o out.feather feed.jsonl").code, 0);
    assert!(!arrow(&place.path("out.feather")).is_empty());
}
