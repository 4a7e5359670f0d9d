//! The page of a report. It has no time of day: the same result gives the same bytes.

use std::fmt::Write as _;

use indicatif::HumanCount;

use super::found::{FoundPairs, Member, RANGES, SimilarMembers};
use super::shown::{CLUSTERS, SIZES, Shown};
use super::texts::Texts;
use crate::cli::compare::html::{Escaped, both, head, made_by, name, settings, table};
use crate::cli::examine::Examiner;
use crate::config::{Deployment, Plan};
use crate::pipeline::Summary;
use crate::plural::count;

/// Most ids of a cluster that are shown.
const IDS: usize = 12;

/// Width of the longest bar, in pixels.
const BAR: f64 = 320.0;

/// The page.
pub(super) fn page(
    plan: &Plan,
    deployment: &Deployment,
    summary: &Summary,
    found: &FoundPairs,
    shown: &Shown,
    texts: &Texts,
) -> String {
    let mut out = String::new();
    let all = texts.reference.map(|of_reference| summary.documents.saturating_sub(of_reference));
    let headline = headline(all, found.documents() as u64, deployment.has_reference());
    head(&mut out, &headline);
    let _ = writeln!(out, "<h1>{}</h1>", Escaped(&headline));
    let pairs = count(found.pairs, "pair");
    let kept = match (found.pairs, deployment.has_reference()) {
        (0, _) => "No two of them are a pair".to_owned(),
        (_, false) => format!(
            "{pairs} connect {} in {}. {} could be left out, and one of each cluster would stay",
            count(found.documents() as u64, "document"),
            count(shown.clusters as u64, "cluster"),
            HumanCount(shown.surplus as u64)
        ),
        (_, true) => format!(
            "{pairs} connect {} with others or with the reference. {} could be left out, and each text would \
            stay once, in the reference or here",
            count(found.documents() as u64, "document"),
            HumanCount(shown.surplus as u64)
        ),
    };
    let _ = writeln!(
        out,
        "<p class=\"answer\">{}.</p>\n<p class=\"note\">A pair has a similarity of at least {}, by the \
        pipeline {} ({}).</p>",
        Escaped(&kept),
        plan.threshold,
        name(&plan.name),
        Escaped(Examiner::new(plan).measured())
    );
    if found.pairs > 0 {
        similarities(&mut out, plan, found);
        clusters(&mut out, plan, shown, texts);
        out.push_str(
            "<h2>Pairs at the threshold</h2>\n<p class=\"note\">The least similar pairs of all: whoever \
            finds them too different takes a higher threshold.</p>\n",
        );
        for pair in &shown.at_threshold {
            put_pair(&mut out, plan, pair, texts);
        }
    }
    not_compared(&mut out, summary);
    out.push_str("<h2>Provenance</h2>\n");
    let mut rows = made_by(plan);
    rows.extend(deployment.inputs().iter().map(|path| ("input", String::new(), path.display().to_string())));
    table(&mut out, &rows);
    settings(&mut out, plan);
    out.push_str("</body>\n</html>\n");
    out
}

/// What the result is, in one sentence. `all`: the documents that are not of a reference, if they are known.
fn headline(all: Option<u64>, repeated: u64, has_reference: bool) -> String {
    let others = if has_reference { "another one or the reference" } else { "another one" };
    let verb = if repeated == 1 { "repeats" } else { "repeat" };
    match (all, repeated) {
        (Some(all), 0) => format!("None of {} repeats {others}", count(all, "document")),
        (None, _) => format!("{} {verb} {others}", count(repeated, "document")),
        (Some(all), _) => {
            let share = 100.0 * repeated as f64 / all.max(1) as f64;
            let share = if share < 0.05 { "Less than 0.1".to_owned() } else { format!("{share:.1}") };
            format!("{share} % of {} {verb} {others}", count(all, "document"))
        }
    }
}

/// The histogram of similarities, as a table of bars.
fn similarities(out: &mut String, plan: &Plan, found: &FoundPairs) {
    let most = found.ranges.iter().copied().max().unwrap_or_default().max(1);
    let first = found.ranges.iter().position(|pairs| *pairs > 0).unwrap_or_default();
    out.push_str(
        "<h2>Similarity of the pairs</h2>\n<table>\n\
        <tr><th scope=\"col\">similarity</th><th scope=\"col\">pairs</th><td></td></tr>\n",
    );
    for (range, pairs) in found.ranges.iter().enumerate().skip(first) {
        let from = (range as f64 / RANGES as f64).max(plan.threshold.min(1.0));
        let to = (range + 1) as f64 / RANGES as f64;
        let end = if range + 1 == RANGES { "to 1".to_owned() } else { format!("to below {to:.2}") };
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{from:.2} {end}</th><td class=\"n\">{}</td><td><svg width=\"{BAR}\" \
            height=\"12\" aria-hidden=\"true\"><rect width=\"{:.1}\" height=\"12\" \
            fill=\"currentColor\"/></svg></td></tr>",
            HumanCount(*pairs),
            BAR * *pairs as f64 / most as f64
        );
    }
    let _ = writeln!(out, "</table>\n<p class=\"note\">{} of similarity 1.</p>", count(found.equal, "pair"));
}

fn clusters(out: &mut String, plan: &Plan, shown: &Shown, texts: &Texts) {
    out.push_str(
        "<h2>Clusters</h2>\n<p class=\"note\">Documents that are connected by pairs, directly or through \
        others.</p>\n<table>\n<tr><th scope=\"col\">documents of a cluster</th>\
        <th scope=\"col\">clusters</th><th scope=\"col\">documents</th></tr>\n",
    );
    let mut least = 2;
    for (at, (clusters, documents)) in shown.sizes.iter().enumerate() {
        let size = match SIZES.get(at) {
            Some(most) if *most == least => most.to_string(),
            Some(most) => format!("{least} to {}", HumanCount(*most as u64)),
            None => format!("{} and more", HumanCount(least as u64)),
        };
        least = SIZES.get(at).map_or(least, |most| most + 1);
        if *clusters > 0 {
            let [clusters, documents] = [clusters, documents].map(|number| HumanCount(*number as u64));
            let _ = writeln!(
                out,
                "<tr><th scope=\"row\">{size}</th><td class=\"n\">{clusters}</td><td class=\"n\">{documents}\
                </td></tr>"
            );
        }
    }
    let _ = writeln!(
        out,
        "</table>\n<h2>{}</h2>",
        if shown.clusters > CLUSTERS { "The largest clusters" } else { "All clusters" }
    );
    for cluster in &shown.largest {
        let _ = write!(out, "<h3>{}</h3>\n<p>", count(cluster.members.len() as u64, "document"));
        let ids: Vec<_> = cluster.members.iter().take(IDS).map(named).collect();
        out.push_str(&ids.join(", "));
        match cluster.members.len().saturating_sub(IDS) as u64 {
            0 => out.push_str("</p>\n"),
            more => {
                let _ = writeln!(out, " and {} more</p>", HumanCount(more));
            }
        }
        out.push_str("<p class=\"note\">Its least similar pair:</p>\n");
        put_pair(out, plan, &cluster.weakest, texts);
    }
}

/// A pair with its texts.
fn put_pair(
    out: &mut String,
    plan: &Plan,
    SimilarMembers { similarity, members }: &SimilarMembers,
    texts: &Texts,
) {
    let _ = write!(out, "<p>{similarity:.3}: {} and {}", named(&members[0]), named(&members[1]));
    let [Some(a), Some(b)] = members.each_ref().map(|member| texts.text(member)) else {
        out.push_str(" (no text: standard input is read once)</p>\n");
        return;
    };
    out.push_str("</p>\n<div class=\"sides\">");
    both(out, &plan.scheme.text, members.each_ref().map(|member| member.1.as_str()), [a, b], true);
    out.push_str("</div>\n");
}

/// The id of a document.
fn named(member: &Member) -> String {
    let of = if member.0 { " (reference)" } else { "" };
    format!("<b>{}</b>{of}", name(&member.1))
}

/// What was read and is in no pair for another reason than what it says.
fn not_compared(out: &mut String, s: &Summary) {
    let mut lines = Vec::new();
    let mut line = |n: u64, noun: &str, what: &str| {
        if n > 0 {
            lines.push(format!("{} {what}", count(n, noun)));
        }
    };
    for (reason, n) in &s.bad_records {
        line(*n, "record", &format!("could not be read as a document ({reason})"));
    }
    for (reason, n) in &s.skipped {
        line(*n, "record", &format!("without a document ({reason})"));
    }
    line(s.unread_files, "file", "not read, or only in part");
    line(s.empty, "text", "without a word");
    line(s.weightless, "text", "whose features all weigh 0");
    line(s.too_short, "text", "shorter than filter.least_words, compared for copies only");
    line(s.expired, "document", "expired");
    line(s.late, "document", "had expired when it was read");
    line(s.replaced_across_files, "document", "replaced by another file's document of the same id");
    line(s.after_until, "event", "after --until");
    let hot = s.hot_blocks.iter().map(|block| block.sketches as u64).sum::<u64>();
    line(
        s.hot_blocks.len() as u64,
        "block",
        &format!(
            "of more distinct texts than blocking.cap ({} in all): their texts are compared with its \
            leaders, and with each other only where they meet elsewhere",
            HumanCount(hot)
        ),
    );
    line(s.starred_groups, "group", "of more copies than output.expand_limit, each paired with one of them");
    out.push_str("<h2>What was not compared</h2>\n<ul>\n");
    for said in &lines {
        let _ = writeln!(out, "<li>{}</li>", Escaped(said));
    }
    if lines.is_empty() {
        out.push_str("<li>Nothing was left out.</li>\n");
    }
    out.push_str(
        "</ul>\n<p class=\"note\">Which share of the pairs at the threshold the blocks find, \
        <code>dupflow plan</code> says.</p>\n",
    );
}
