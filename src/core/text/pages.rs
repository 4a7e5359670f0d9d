//! Reads the text of documents that are web pages.
//!
//! A part of a document -> the text that is tokenized. A part that is [not a page](crate::html::is_page) is
//! returned unchanged, unless the rule is that of fragments and it has markup.

use std::borrow::Cow;

use super::rules::{Html, TextRules};
use crate::doc::FIELD_SEPARATOR;
#[cfg(feature = "article")]
use crate::html::ArticleFinder;
use crate::html::{Extractor, fragment, has_markup, is_page};

/// Reads parts by one rule; reuses its buffers.
#[derive(Debug)]
pub(super) enum PageReader {
    None,
    Text(Box<Extractor>),
    Fragments(Box<Extractor>),
    #[cfg(feature = "article")]
    Article(Box<ArticleFinder>),
}

impl PageReader {
    /// # Panics
    /// If the rule is [`Html::Article`] and the crate is built without the feature `article`.
    pub(super) fn new(rule: Html) -> Self {
        match rule {
            Html::None => Self::None,
            Html::Text => Self::Text(Box::default()),
            Html::Fragments => Self::Fragments(Box::default()),
            #[cfg(feature = "article")]
            Html::Article => Self::Article(Box::default()),
            #[cfg(not(feature = "article"))]
            Html::Article => panic!("articles are found with the feature `article` only"),
        }
    }

    /// The text of a part.
    pub(super) fn read<'t>(&'t mut self, part: &'t str) -> &'t str {
        match self {
            Self::None => part,
            Self::Fragments(extractor) => match fragment(part) {
                _ if is_page(part) => extractor.text(part),
                Some(markup) => extractor.fragment(&markup),
                None => part,
            },
            _ if !is_page(part) => part,
            Self::Text(extractor) => extractor.text(part),
            #[cfg(feature = "article")]
            Self::Article(finder) => finder.text(part),
        }
    }
}

/// The readable text of a document: parts that are pages are replaced by their texts.
///
/// Process the result under [`Html::None`] only: the text of a page may itself start like a page.
///
/// # Panics
/// If the rule is [`Html::Article`] and the crate is built without the feature `article`.
pub fn readable<'t>(text: &'t str, rules: &TextRules) -> Cow<'t, str> {
    let is_read = |part: &str| is_page(part) || rules.html == Html::Fragments && has_markup(part);
    if rules.html == Html::None || !rules.parts(text).any(is_read) {
        return text.into();
    }
    let mut reader = PageReader::new(rules.html);
    let mut parts = rules.parts(text);
    let mut whole = reader.read(parts.next().unwrap_or_default()).to_owned();
    for part in parts {
        whole.push(FIELD_SEPARATOR);
        whole.push_str(reader.read(part));
    }
    whole.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;
    use crate::text::{Featurizer, Field, Shingle, common_passages, shingles, tokens};

    fn rules(html: Html) -> TextRules {
        let fields = vec![Field { name: "title".to_owned(), weight: 2 }];
        TextRules { html, fields, shingle: Shingle::Words(1), ..TextRules::default() }
    }

    const PAGE: &str = "<!doctype html><nav>Home</nav><p>近似 &lt;html&gt; <b>ف</b>ي ไป 🎉 naïve\u{1e}<html>\
        <p>Head &#x1e;<i>l</i>ine";

    #[test]
    fn each_part_that_is_a_page_is_read() {
        assert_eq!(readable(PAGE, &rules(Html::Text)), "近似 <html> في ไป 🎉 naïve\u{1e}Head line");
        assert_eq!(readable(PAGE, &rules(Html::None)), PAGE);
        let [page, of_page] = [Html::Fragments, Html::Text].map(|html| readable(PAGE, &rules(html)));
        assert_eq!(page, of_page);
        let column = "Fish &amp; <b>ch</b>ips\u{1e}1 < 2";
        assert_eq!(readable(column, &rules(Html::Fragments)), "Fish & chips\u{1e}1 < 2");
        assert_eq!(readable(column, &rules(Html::Text)), column);
        let half = "a <html> & b\u{1e}<html>c &amp; d";
        assert_eq!(readable(half, &rules(Html::Text)), "a <html> & b\u{1e}c & d");
        let alone = TextRules { fields: Vec::new(), ..rules(Html::Text) };
        assert_eq!(readable(half, &alone), half, "without fields in the rules a separator is a character");
    }

    /// Tokens, shingles, features, terms and passages of a page equal those of its readable text under
    /// [`Html::None`].
    #[test]
    fn page_equals_its_readable_text() {
        let (by, as_it_stands) = (rules(Html::Text), rules(Html::None));
        let read = readable(PAGE, &by);
        assert_eq!(tokens(PAGE, &by), tokens(&read, &as_it_stands));
        assert_eq!(tokens(PAGE, &by)[..3], ["近", "似", "html"]);
        assert_eq!(shingles(PAGE, &by), shingles(&read, &as_it_stands));
        let [mut of_page, mut of_read] = [&by, &as_it_stands].map(|rules| Featurizer::new(rules.clone()));
        assert_eq!(of_page.features(PAGE), of_read.features(&read));
        assert_eq!(of_page.features(PAGE).len(), shingles(PAGE, &by).len());
        assert_eq!(of_page.terms(PAGE).to_owned(), of_read.terms(&read).to_owned());
        let passages = common_passages(&read, "home head line", &as_it_stands);
        assert_eq!(passages.a.iter().map(|piece| piece.text).collect::<String>(), read);
        assert!((passages.shared_b - 2.0 / 3.0).abs() < 1e-12);
    }

    #[cfg(feature = "article")]
    #[test]
    fn articles_are_read() {
        let paragraph = format!("<p>{}</p>", "A text, of so many words that it is an article. ".repeat(5));
        let page = format!(
            "<html><body><div class=menu>{}</div><div>{}</div>",
            "<a href=/>Menu</a> ".repeat(20),
            paragraph.repeat(5)
        );
        let read = readable(&page, &rules(Html::Article)).into_owned();
        assert!(read.starts_with("A text") && !read.contains("Menu"), "{read}");
        let [mut of_page, mut of_read] = [Html::Article, Html::None].map(|html| Featurizer::new(rules(html)));
        assert_eq!(of_page.features(&page), of_read.features(&read));
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 2000,
            rng_seed: RngSeed::Fixed(1),
            ..ProptestConfig::default()
        })]

        #[test]
        fn other_texts_are_unchanged(text in "(<[a-z!]{0,3}|&lt;|[<>&;\\-]|html|近似|ไทย|\\PC| ){0,20}") {
            prop_assume!(!is_page(&text));
            let (by, as_it_stands) = (rules(Html::Text), rules(Html::None));
            prop_assert_eq!(readable(&text, &by), &*text);
            prop_assert_eq!(tokens(&text, &by), tokens(&text, &as_it_stands));
            let [mut read, mut plain] = [by, as_it_stands].map(Featurizer::new);
            prop_assert_eq!(read.features(&text), plain.features(&text));
        }
    }
}
