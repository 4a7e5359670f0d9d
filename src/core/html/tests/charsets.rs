//! Detection of encodings.

use encoding_rs::{BIG5, EUC_KR, Encoding, GBK, SHIFT_JIS, WINDOWS_874, WINDOWS_1252, WINDOWS_1256};

use super::super::{GUESS_BYTES, META_BYTES, decode, page, with_doctype};

fn bytes(text: &str, encoding: &'static Encoding) -> Vec<u8> {
    let (bytes, _, is_lossy) = encoding.encode(text);
    assert!(!is_lossy, "{} has all of {text:?}", encoding.name());
    bytes.into_owned()
}

fn utf16(text: &str, is_big: bool) -> Vec<u8> {
    let units = std::iter::once(0xfeff).chain(text.encode_utf16());
    units.flat_map(|unit: u16| if is_big { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect()
}

#[test]
fn pages_name_their_encodings() {
    let texts = [
        (SHIFT_JIS, "近似した文書を探す"),
        (GBK, "查找近似重复的文档"),
        (BIG5, "尋找近似重複的文件"),
        (EUC_KR, "비슷한 문서"),
        (WINDOWS_874, "เอกสารที่คล้ายกัน"),
        (WINDOWS_1256, "وثائق"),
        (WINDOWS_1252, "“Fläche” — €"),
    ];
    for (encoding, text) in texts {
        let name = encoding.name();
        for head in [
            format!("<meta charset={name}>"),
            format!("<html><!-- <meta charset=utf-8> --><head><META a charset = '{name}' />"),
            format!(
                "<title><meta charset=utf-8></title><meta name=x content=\"charset=utf-8\"><meta \
                 charset='{name}'>"
            ),
            format!("<meta content='text/html; charset={name}' http-equiv=Content-Type>"),
            format!("<meta http-equiv='content-type' content='charset text/html; charset = \"{name}\"; a'>"),
            format!("<?xml version='1.0' encoding=\"{name}\"?><html>"),
        ] {
            let whole = head.clone() + text;
            assert_eq!(decode(&bytes(&whole, encoding), None), whole, "{head}");
        }
        assert_eq!(decode(&bytes(text, encoding), Some(name)), text, "HTTP says {name}");
    }
}

#[test]
fn first_declared_encoding_counts() {
    let shift_jis = "<html><meta charset=shift_jis>文書";
    let as_it_is = bytes(shift_jis, SHIFT_JIS);
    assert_eq!(decode(&as_it_is, None), shift_jis);
    assert_ne!(decode(&as_it_is, Some("windows-1252")), shift_jis, "HTTP before what the page says");
    assert_eq!(decode(&as_it_is, Some("no-such")), shift_jis, "an unknown name says nothing");
    let with_doctype = [b"\xef\xbb\xbf", shift_jis.as_bytes()].concat();
    assert_eq!(decode(&with_doctype, Some("windows-1252")), shift_jis, "a mark before all");
    for is_big in [false, true] {
        assert_eq!(decode(&utf16(shift_jis, is_big), Some("gbk")), shift_jis);
        assert_eq!(page(&utf16(shift_jis, is_big)).unwrap(), shift_jis);
        assert_eq!(page(&utf16("文書 <html>", is_big)), None);
    }
    assert_eq!(
        decode("<meta charset=utf-16>é".as_bytes(), None),
        "<meta charset=utf-16>é",
        "it cannot be true"
    );
    let far = " ".repeat(META_BYTES) + "<meta charset=gbk>é";
    assert_eq!(decode(far.as_bytes(), None), far, "too far behind");
}

#[test]
fn without_a_name_it_is_utf_8_or_a_guess() {
    let words = "<html><p>";
    for text in ["é", "漢字ไทยمرحبا🎉"] {
        assert_eq!(decode((words.to_owned() + text).as_bytes(), None), words.to_owned() + text);
    }
    for (encoding, text) in [
        (SHIFT_JIS, "近似した文書を探すプログラムです。文書が変わっても、いつも正しい結果を出します。"),
        (GBK, "在文档不断变化的同时，查找近似重复的文档，并且始终给出正确的结果。"),
        (WINDOWS_1252, "Un café très agréable, où l’été n’est jamais fini."),
        (WINDOWS_874, "ค้นหาเอกสารที่คล้ายกันในขณะที่คลังเอกสารเปลี่ยนแปลงอยู่เสมอ"),
    ] {
        let whole = words.to_owned() + text;
        assert_eq!(decode(&bytes(&whole, encoding), None), whole, "{}", encoding.name());
    }
    // A guess starts at the first byte that is not ASCII, however far from the start, and reads
    // [`GUESS_BYTES`].
    let long = words.to_owned() + &"a ".repeat(GUESS_BYTES);
    assert!(decode(&[long.as_bytes(), b"caf\xe9 noir"].concat(), None).ends_with("a café noir"));
    let longer = words.to_owned() + &"é ".repeat(GUESS_BYTES);
    assert!(decode(&[longer.as_bytes(), b"caf\xe9 noir"].concat(), None).ends_with("é caf\u{fffd} noir"));
}

#[test]
fn malformed_bytes_are_marked_in_the_text() {
    assert_eq!(decode(b"<html>a\xffb", Some("utf-8")), "<html>a\u{fffd}b");
    assert_eq!(with_doctype(b"\xe3\x81", Some("utf-8")), "<!doctype html>\u{fffd}");
    assert_eq!(page(b"\xff<html>"), None);
    assert_eq!(page(b"a\xff<html>"), None);
    assert!(page(b"<html>\xff").is_some());
}
