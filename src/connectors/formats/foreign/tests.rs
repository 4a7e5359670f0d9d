//! Which inputs are refused, and with which command.

use super::super::containers::binary;
use super::super::parquet::is_parquet;
use super::*;

fn refusal(beginning: &[u8], name: &str, format: &str) -> Option<String> {
    refused(beginning, Compression::None, name, FileFormat::named(format)?)
}

#[test]
fn commands_name_the_file_and_the_format() {
    let xz = b"\xfd7zXZ\0\0";
    assert_eq!(
        refusal(xz, "a b.csv.xz", "jsonl").unwrap(),
        "it is compressed with xz, which is not read: xz -dc 'a b.csv.xz' | dupflow replay --format \
         csv -, or into a file, where the input is read twice"
    );
    assert_eq!(
        refusal(xz, "-", "jsonl").unwrap(),
        "it is compressed with xz, which is not read: xz -dc FILE | dupflow replay -"
    );
    assert_eq!(
        refusal(b"[ {\"id\":1}", "日本.json", "jsonl").unwrap(),
        "it is a JSON array, and is to be read as jsonl: leave --format out"
    );
}

#[test]
fn supported_inputs_are_not_refused() {
    for text in [
        "",
        "{}",
        "{\"id\":1}\n{\"id\":2}\n",
        "{\"id\":\"x\",\"text\":\n{\"id\":\"y\"}\n",
        "[1]\n",
        "oops\n",
        "\u{feff}{\"a\":{}}\n",
        "ORCHID, a text",
        "BZh is no magic",
        "{\"text\":\"a line that is cut off",
    ] {
        assert_eq!(refusal(text.as_bytes(), "a", "jsonl"), None, "{text}");
    }
    assert_eq!(refusal(b"{\n", "a.md", "text"), None);
    assert_eq!(refusal(b"<html>", "a.html", "html"), None);
    assert_eq!(refusal(b"PAR1....", "a", "parquet"), None);
    assert_eq!(refusal(b"id,text\n", "a", "csv"), None);
    assert_eq!(refusal("\u{4100}".as_bytes(), "a", "csv"), None);
}

/// A table or a text that begins with the letters of a magic is read. Only with the bytes of the real
/// format do they count.
#[test]
fn texts_may_begin_with_the_letters_of_a_magic() {
    for magic in ["ARROW1", "FEA1", "PARE", "GIF8", "OggS", "ORC", "PAR1"] {
        for rest in [",text,id\nx,a text,1\n", " images: the text goes on\n", "\tid\ttext\n\u{1b}[1m\u{e9}\n"]
        {
            let text = format!("{magic}{rest}");
            for format in ["csv", "tsv", "text", "jsonl"] {
                assert_eq!(refusal(text.as_bytes(), "a", format), None, "{text:?}");
            }
            assert_eq!(binary(text.as_bytes()), None, "{text:?}");
            assert!(!is_parquet(text.as_bytes()), "{text:?}");
        }
        let bytes = [magic.as_bytes(), b"\0\0\x15\x04"].concat();
        assert!(refusal(&bytes, "a", "csv").is_some(), "{magic}");
        assert_eq!(binary(&bytes).is_some(), !["ARROW1", "PAR1"].contains(&magic), "{magic}");
    }
}

#[test]
fn json_over_several_lines_is_recognised() {
    for text in ["{\n  \"id\": 1", "{ \"id\": 1,\n  \"text\": \"t\" }\n{", "[\n  {", "[\n", "[{"] {
        assert!(refusal(text.as_bytes(), "a", "jsonl").is_some(), "{text}");
    }
}
