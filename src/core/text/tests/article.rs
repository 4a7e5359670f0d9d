//! Article extraction on generated pages of five sites. Each site has its own markup, and most pages have a
//! consent notice.
//!
//! Bug classes: the boilerplate of a site is taken for the article, so that different pages become pairs; one
//! text published on two sites is not found as a pair.

use std::collections::HashSet;

use crate::hash::mix;
use crate::text::{Featurizer, Html, TextRules};

/// Number of different texts on each site.
const TEXTS: usize = 24;

/// How many texts of a site are published on the next site too.
const SHARED: usize = 4;

/// A pseudo-random number below `end`.
fn draw(seed: &mut u64, end: usize) -> usize {
    *seed = mix(seed.wrapping_add(0x9e37_79b9_7f4a_7c15));
    usize::try_from(*seed % end as u64).expect("it is below a usize")
}

fn words(seed: &mut u64, count: usize) -> Vec<String> {
    const SYLLABLES: [&str; 16] =
        ["ba", "co", "di", "fe", "gu", "ha", "ji", "ka", "lo", "mu", "ne", "po", "ri", "sa", "tu", "ve"];
    let mut word = || (0..=draw(seed, 3)).map(|_| SYLLABLES[draw(seed, 16)]).collect();
    (0..count).map(|_| word()).collect()
}

/// Generated words: the length cycles through short, medium and long with `number`.
fn text(seed: u64, number: usize) -> Vec<String> {
    let mut seed = mix(seed ^ 0x5eed);
    let (least, more) = [(40, 50), (150, 200), (600, 400)][number % 3];
    let count = least + draw(&mut seed, more);
    words(&mut seed, count)
}

fn body(text: &[String], seed: &mut u64) -> String {
    let mut body = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (part, behind) = rest.split_at(rest.len().min(25 + draw(seed, 45)));
        rest = behind;
        let joined = part.join(" ");
        body += &match draw(seed, 4) {
            0 => format!(
                "<ul>{}</ul>",
                part.chunks(9).map(|item| format!("<li>{}</li>", item.join(" "))).collect::<String>()
            ),
            1 => format!("<blockquote>{joined}</blockquote>"),
            _ => format!("<p>{joined}</p>"),
        };
    }
    body
}

fn links(count: usize, mut seed: u64) -> String {
    (0..count).map(|n| format!("<li><a href=/{n}>{} {n}</a></li>", words(&mut seed, 2).join(" "))).collect()
}

/// The HTML page of one site around `text`.
fn page(site: usize, text: &[String], seed: u64) -> String {
    let mut seed = mix(seed);
    let (head, body) = (text[..6].join(" "), body(text, &mut seed));
    let of_site = |what: u64, count| words(&mut mix(site as u64 * 100 + what), count).join(" ");
    let notice = format!(
        "<div class=\"cookie-banner\" role=dialog><p>{}, {}, {}.</p><button>Accept</button></div>",
        of_site(1, 25),
        of_site(2, 20),
        of_site(3, 20)
    );
    let foot = of_site(4, 30);
    let [few, many] = [(12, 5), (40, 6)].map(|(count, what)| links(count, site as u64 * 100 + what));
    match site {
        0 => format!(
            "<!doctype html><header><nav><ul>{many}</ul></nav></header><main><article><h1>{head}\
             </h1>{body}</article></main><aside><ul>{few}</ul></aside><footer>{foot}</footer>{notice}"
        ),
        1 => format!(
            "<!doctype html><div class=navbar><ul>{many}</ul></div><div class=row><div class=content>\
             <h1>{head}</h1>{body}</div><div class=sidebar><ul>{few}</ul></div></div><div id=footer>\
             <p>{foot}</div>{notice}"
        ),
        2 => format!(
            "<!doctype html><div id=page><header>Blog</header><article class=post><header><h1>{head}</h1>\
             <span>Posted by admin</span></header><div>{body}</div></article><div id=comments><form><p>{}\
             </p></form></div><div class=widgets><ul>{many}</ul></div></div><footer>{foot}</footer>{notice}",
            of_site(7, 40)
        ),
        3 => format!(
            "<!doctype html><div class=header>{few}</div><div class=product><h1>{head}</h1><div \
             class=price>EUR 49.90</div><div class=desc>{body}</div><div class=delivery><p>{}, {}.</p>\
             </div></div><div class=related><ul>{few}</ul></div><div class=newsletter><p>{}</p></div>\
             <div class=foot>{foot}</div>{notice}",
            of_site(7, 25),
            of_site(8, 25),
            of_site(9, 25)
        ),
        _ => format!(
            "<html><body><table><tr><td width=150><font size=2>{few}</font><td><h1>{head}</h1>{body}<p>\
             <font size=1>{}</font></table><hr><center>{foot}</center>",
            of_site(7, 30)
        ),
    }
}

/// Counts the pairs at Jaccard similarity 0.8 (inclusive): pairs with the same text, and pairs with different
/// texts.
fn pairs(html: Html, pages: &[(usize, String)]) -> (usize, usize) {
    let mut features = Featurizer::new(TextRules { html, ..TextRules::default() });
    let sets: Vec<(usize, HashSet<u64>)> =
        pages.iter().map(|(text, page)| (*text, features.features(page).iter().copied().collect())).collect();
    let (mut of_one, mut others) = (0, 0);
    for (place, (text, set)) in sets.iter().enumerate() {
        for (other_text, other) in &sets[..place] {
            let shared = set.intersection(other).count();
            if shared * 10 >= (set.len() + other.len() - shared) * 8 {
                *if text == other_text { &mut of_one } else { &mut others } += 1;
            }
        }
    }
    (of_one, others)
}

#[test]
fn articles_pair_equal_texts_only() {
    let mut pages = Vec::new();
    for site in 0..5 {
        for number in 0..TEXTS {
            let place = site * TEXTS + number;
            let text = text(place as u64, number);
            pages.push((place, page(site, &text, place as u64)));
            if number < SHARED {
                pages.push((place, page((site + 1) % 5, &text, place as u64)));
            }
        }
    }
    let (by_article, by_text) = (pairs(Html::Article, &pages), pairs(Html::Text, &pages));
    assert_eq!(by_article.1, 0, "pairs of different texts, beside {} of one", by_article.0);
    assert!(by_article.0 > by_text.0, "{by_article:?} by articles, {by_text:?} by texts, of {}", 5 * SHARED);
}

/// A scheme from before the article rule had a number differs from the present one, in the field
/// `text.html.article`.
#[test]
fn the_rule_is_part_of_the_scheme() {
    let described = TextRules { html: Html::Article, ..TextRules::default() }.description();
    let before = crate::description::Description::new().with("text.html", "article");
    let differ = described.differences(&before.encode()).unwrap();
    assert!(differ.iter().any(|one| format!("{one:?}").contains("\"text.html.article\"")), "{differ:?}");
}
