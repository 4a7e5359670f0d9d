//! Removes notices that are on every page of a site: consent banners and newsletter forms.
//!
//! Markup -> the same without containers whose `class`, `id`, `role` or `aria-label` names a notice. A
//! container is a `div`, `section`, `aside`, `form` or `dialog` that is ended by a tag of its own. A
//! container with an `h1`, a `main` or an `article` inside is kept, and so is a newsletter of more than
//! [`MOST_NEWSLETTER`] bytes.
//!
//! Invariant: cost is linear in the markup. Each open container is closed once, and an end tag without a
//! start tag is recognized by a count.

use std::borrow::Cow;
use std::ops::Range;

use super::elements::Element;
use super::scan::{Attributes, MarkupPiece, Scanner};

/// The most bytes of markup of a newsletter form. A larger one is taken for a newsletter that is published on
/// the page.
const MOST_NEWSLETTER: usize = 8 << 10;

const CONTAINERS: [&[u8]; 5] = [b"div", b"section", b"aside", b"form", b"dialog"];

/// Words that mark a notice by themselves.
const NOTICES: [&str; 12] = [
    "ccpa",
    "cookiebanner",
    "cookiebar",
    "cookiebot",
    "cookieconsent",
    "cookienotice",
    "didomi",
    "gdpr",
    "onetrust",
    "trustarc",
    "truste",
    "usercentrics",
];

/// `cookie` marks a notice if it is the only word or together with one of [`FORMS`]; so does `consent`; so do
/// both together.
const COOKIES: [&str; 2] = ["cookie", "cookies"];
const CONSENT: &str = "consent";

const FORMS: [&str; 21] = [
    "accept",
    "alert",
    "alertdialog",
    "banner",
    "bar",
    "box",
    "cmp",
    "container",
    "dialog",
    "disclaimer",
    "info",
    "law",
    "manager",
    "message",
    "modal",
    "notice",
    "overlay",
    "policy",
    "popup",
    "wall",
    "warning",
];

const NEWSLETTERS: [&str; 2] = ["newsletter", "newsletters"];

/// Classification of a container by its attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ContainerKind {
    Content,
    Consent,
    Newsletter,
}

struct OpenContainer {
    container: usize,
    start: usize,
    kind: ContainerKind,
    /// Whether the container has an `h1`, a `main` or an `article` inside.
    has_content: bool,
}

/// The page without its notices.
pub(super) fn without(page: &str) -> Cow<'_, str> {
    let notices = notices(page.as_bytes());
    if notices.is_empty() {
        return page.into();
    }
    let mut rest = String::with_capacity(page.len());
    let mut at = 0;
    for notice in notices {
        rest.push_str(&page[at..notice.start]);
        at = notice.end;
    }
    rest.push_str(&page[at..]);
    rest.into()
}

/// The byte ranges of notices, in order and not nested; each begins and ends with a tag.
fn notices(markup: &[u8]) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut open: Vec<OpenContainer> = Vec::new();
    let mut counts = [0_usize; CONTAINERS.len()];
    let mut scanner = Scanner::new(markup);
    while let Some(piece) = scanner.next() {
        match piece {
            MarkupPiece::Text(_) => {}
            MarkupPiece::Start { name, attributes, .. } => {
                let start = name.start - 1;
                let name = markup[name].to_ascii_lowercase();
                match Element::from_name(&name) {
                    Element::Raw | Element::Shown => drop(scanner.raw(&name)),
                    Element::Script => drop(scanner.script()),
                    Element::Plaintext => drop(scanner.rest()),
                    _ => {}
                }
                if let Some(container) = CONTAINERS.iter().position(|other| *other == name) {
                    counts[container] += 1;
                    let kind = kind(&markup[attributes]);
                    open.push(OpenContainer { container, start, kind, has_content: false });
                } else if matches!(&*name, b"h1" | b"main" | b"article")
                    && let Some(last) = open.last_mut()
                {
                    last.has_content = true;
                }
            }
            MarkupPiece::End(name) => {
                let name = markup[name].to_ascii_lowercase();
                let Some(container) = CONTAINERS.iter().position(|other| *other == name) else { continue };
                if counts[container] == 0 {
                    continue;
                }
                while let Some(last) = open.pop() {
                    counts[last.container] -= 1;
                    if let Some(around) = open.last_mut() {
                        around.has_content |= last.has_content;
                    }
                    if last.container != container {
                        // Not ended by a tag of its own: it may be the whole page.
                        continue;
                    }
                    let notice = last.start..scanner.at();
                    let is_one = match last.kind {
                        ContainerKind::Content => false,
                        ContainerKind::Consent => true,
                        ContainerKind::Newsletter => notice.len() <= MOST_NEWSLETTER,
                    };
                    if is_one && !last.has_content {
                        while found.pop_if(|inner| inner.start >= notice.start).is_some() {}
                        found.push(notice);
                    }
                    break;
                }
            }
        }
    }
    found
}

fn kind(attributes: &[u8]) -> ContainerKind {
    let (mut cookies, mut consent, mut form, mut newsletter, mut others) = (false, false, false, false, 0);
    for (name, value) in Attributes::new(attributes) {
        let is_name = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
        let is_role = is_name("role");
        if !(is_role || ["class", "id", "aria-label"].into_iter().any(is_name)) {
            continue;
        }
        let parts = value.split(|byte| !byte.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
        for part in parts {
            let is = |word: &str| part.eq_ignore_ascii_case(word.as_bytes());
            let is_any = |words: &[&str]| words.iter().any(|word| is(word));
            if is_any(&NOTICES) {
                return ContainerKind::Consent;
            }
            let is_cookies = is_any(&COOKIES);
            cookies |= is_cookies;
            consent |= is(CONSENT);
            others += usize::from(!(is_role || is_cookies || is(CONSENT)));
            form |= is_any(&FORMS);
            newsletter |= is_any(&NEWSLETTERS);
        }
    }
    let is_consent = cookies && consent || (cookies || consent) && (form || others == 0);
    match (is_consent, newsletter) {
        (true, _) => ContainerKind::Consent,
        (false, true) => ContainerKind::Newsletter,
        (false, false) => ContainerKind::Content,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_of_notices_are_cut_out() {
        for (page, expected) in [
            ("a<div class=\"cookie-banner\">b<div>c</div></div>d", "ad"),
            ("<section id=Newsletter><p>x</section>y", "y"),
            ("<DIV CLASS='x onetrust-pc'>b</DIV>c", "c"),
            ("<div role=dialog class=cookies><div class=gdpr>b</div></div>c", "c"),
            ("<form class=newsletter-signup>b</form><dialog aria-label='Cookie consent'>c</dialog>d", "d"),
            ("<div class=cookie>b</div><div id=consent-manager>c</div>", ""),
        ] {
            assert_eq!(without(page), expected, "{page}");
        }
    }

    #[test]
    fn similar_names_are_kept() {
        let issue = format!("<div class=newsletter>{}</div>", "a word ".repeat(2000));
        for page in [
            "<div class=cookie-recipe>Flour and sugar</div>",
            "<section id=informed-consent>All patients agreed</section>",
            "<div class=\"has-cookie-banner\"><h1>Head</h1>text</div>",
            "<div id=cookie-bar><div><main>text</main></div></div>",
            "<div class=cookie-banner>not ended, and all of the page",
            "<div><section class=cookie-banner>not ended by itself</div>",
            "<p class=cookie-banner>a paragraph</p><script>\"<div class=gdpr>\"</script></div>",
            &issue,
        ] {
            assert_eq!(without(page), page);
        }
    }

    /// Cost does not grow with the square of the open containers or of the end tags.
    #[test]
    fn nesting_takes_linear_time() {
        let many = "<div class=gdpr>".repeat(100_000) + &"</section></div>".repeat(100_000);
        assert_eq!(without(&many), "");
        let open = "<div class=gdpr><section>".repeat(100_000) + "</div>";
        assert!(without(&open).len() >= open.len() - 40);
    }
}
