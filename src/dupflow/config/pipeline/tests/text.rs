//! The table `[text]`.

use super::{plan, problems};
use crate::config::Plan;
use dupflow_core::text::{Html, Spaceless};

#[test]
fn stems_need_words_and_stop_words_are_not_stemmed() {
    let stems = plan("text.stem = \"english\"\ntext.stop_words = [\"Having\"]", &[]).unwrap().scheme.text;
    assert_eq!((stems.stem.name(), &*stems.stop_words), ("english", &["having".to_owned()][..]));
    assert_eq!(
        problems("text.stem = \"german\"", &["text.shingle=chars:5"]),
        ["p.toml:1: text.stem: is for shingles of words; leave it out, or text.shingle = \"words:N\""]
    );
}

#[test]
fn pages_are_extracted_by_default() {
    let of = |text: &str| plan(text, &[]).unwrap().scheme.text.html;
    assert_eq!(
        [of(""), of("text.html = \"text\""), of("text.html = \"none\"")],
        [Html::Text, Html::Text, Html::None]
    );
    assert_eq!(
        problems("text.html = \"page\"", &[]),
        ["p.toml:1: text.html: found \"page\", expected \"none\", \"text\", \"fragments\" or \"article\""]
    );
    #[cfg(feature = "article")]
    assert_eq!(of("text.html = \"article\""), Html::Article);
    #[cfg(not(feature = "article"))]
    assert_eq!(
        problems("text.html = \"article\"", &[]),
        [format!("p.toml:1: text.html: {}", dupflow_run::missing_feature("articles", "article"))]
    );
}

#[test]
fn counted_single_words_have_smaller_parts() {
    let of = |text: &str| plan(text, &["sketch.kind=dart"]).unwrap().scheme.text.spaceless;
    assert_eq!(of("text = { shingle = \"words:1\", weights = \"tf\" }"), Spaceless::Bag);
    assert_eq!(
        of("text = { shingle = \"words:1\", weights = \"tf\", spaceless = \"part\" }"),
        Spaceless::Part
    );
    assert_eq!(of("text = { shingle = \"words:2\", weights = \"tf\" }"), Spaceless::Part);
    assert_eq!(of("text.shingle = \"words:1\""), Spaceless::Part);
}

#[test]
fn stop_words_from_a_file_beside_the_pipeline() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("stop.txt"), "The\n\n of \n").unwrap();
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, "text.stop_words = \"stop.txt\"").unwrap();
    let plan = Plan::load(path.to_str().unwrap(), &[]).unwrap();
    assert_eq!(plan.scheme.text.stop_words, ["of", "the"]);
    std::fs::write(&path, "text.stop_words = \"other.txt\"").unwrap();
    let error = Plan::load(path.to_str().unwrap(), &[]).unwrap_err().to_string();
    assert!(error.contains(":1: text.stop_words: cannot read \""), "{error}");
    assert!(error.contains("other.txt\": "), "{error}");
}
