//! The page of a report. It has no time of day: the same result gives the same bytes.

use std::fmt::Write as _;

use indicatif::HumanCount;

use super::found::{FoundPairs, Member, RANGES, SimilarMembers};
use super::shown::{CLUSTERS, SIZES, Shown};
use super::texts::{MOST, Texts};
use crate::cli::compare::html::{Escaped, both, head, made_by, name, settings, table};
use crate::cli::examine::Examiner;
use crate::config::{Deployment, Plan};
use crate::pipeline::Summary;
use crate::plural::count;
use dupflow_core::cluster::ClusterKind;

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
    if let Some(answer) = answer(plan, found, shown, deployment.has_reference()) {
        let _ = writeln!(out, "<p class=\"answer\">{}.</p>", Escaped(&answer));
    }
    let _ = writeln!(
        out,
        "<p class=\"note\">A pair has a similarity of at least {}, by the pipeline {} ({}).</p>",
        rounded_down(plan.threshold),
        name(&plan.name),
        Escaped(Examiner::new(plan).measured())
    );
    if found.pairs > 0 {
        similarities(&mut out, plan, found, summary.starred_groups);
        clusters(&mut out, plan, shown, texts, deployment.has_reference());
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
        (Some(0), _) => "There is no document".to_owned(),
        (Some(1), 0) => "The only document repeats no other one".to_owned(),
        (Some(all), 0) => format!("None of {} repeats {others}", count(all, "document")),
        (None, _) => format!("{} {verb} {others}", count(repeated, "document")),
        (Some(all), _) => {
            let share = 100.0 * repeated as f64 / all.max(1) as f64;
            let share = match share {
                _ if repeated >= all => "100".to_owned(),
                few if few < 0.05 => "Less than 0.1".to_owned(),
                most if most >= 99.95 => "More than 99.9".to_owned(),
                share => format!("{share:.1}"),
            };
            format!("{share} % of {} {verb} {others}", count(all, "document"))
        }
    }
}

/// What the pairs connect, and what could be left out where that follows from clusters alone. `None` if there
/// is no pair.
fn answer(plan: &Plan, found: &FoundPairs, shown: &Shown, has_reference: bool) -> Option<String> {
    let verb = if found.pairs == 1 { "connects" } else { "connect" };
    let documents = count(found.documents() as u64, "document");
    let others = if has_reference {
        " with others or with the reference".to_owned()
    } else {
        format!(" in {}", count(shown.clusters as u64, "cluster"))
    };
    let by_cluster = plan.clusters == ClusterKind::Components && plan.remove_if.is_none();
    let surplus = match (by_cluster, has_reference) {
        (false, _) => ". --emit remove lists what could be left out by the rule of the pipeline".to_owned(),
        (true, false) => {
            format!(
                ". {} could be left out, and one of each cluster would stay",
                HumanCount(shown.surplus as u64)
            )
        }
        (true, true) => format!(
            ". {} could be left out, and each text would stay once, in the reference or here",
            HumanCount(shown.surplus as u64)
        ),
    };
    (found.pairs > 0).then(|| format!("{} {verb} {documents}{others}{surplus}", count(found.pairs, "pair")))
}

/// A similarity with two or three decimals, not above it.
fn rounded_down(similarity: f64) -> String {
    let thousandths = (similarity * 1000.0 + 1e-6).floor() / 1000.0;
    let decimals = if ((thousandths * 100.0).round() - thousandths * 100.0).abs() < 1e-6 { 2 } else { 3 };
    format!("{thousandths:.decimals$}")
}

/// The histogram of similarities, as a table of bars.
fn similarities(out: &mut String, plan: &Plan, found: &FoundPairs, starred_groups: u64) {
    let most = found.ranges.iter().copied().max().unwrap_or_default().max(1);
    let first = found.ranges.iter().position(|pairs| *pairs > 0).unwrap_or_default();
    out.push_str(
        "<h2>Similarity of the pairs</h2>\n<table>\n\
        <tr><th scope=\"col\">similarity</th><th scope=\"col\">pairs</th><td></td></tr>\n",
    );
    for (range, pairs) in found.ranges.iter().enumerate().skip(first) {
        let from = rounded_down((range as f64 / RANGES as f64).max(plan.threshold));
        let to = (range + 1) as f64 / RANGES as f64;
        let end = if range + 1 == RANGES { "to 1".to_owned() } else { format!("to below {to:.2}") };
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{from} {end}</th><td class=\"n\">{}</td><td><svg width=\"{BAR}\" \
            height=\"12\" aria-hidden=\"true\"><rect width=\"{:.1}\" height=\"12\" \
            fill=\"currentColor\"/></svg></td></tr>",
            HumanCount(*pairs),
            BAR * *pairs as f64 / most as f64
        );
    }
    let _ = write!(out, "</table>\n<p class=\"note\">{} of similarity 1.", count(found.equal, "pair"));
    if starred_groups > 0 {
        out.push_str(" Of more copies than output.expand_limit each is in a pair with one of them only.");
    }
    out.push_str("</p>\n");
}

fn clusters(out: &mut String, plan: &Plan, shown: &Shown, texts: &Texts, has_reference: bool) {
    let also = if has_reference { ", those of the reference too" } else { "" };
    let _ = writeln!(
        out,
        "<h2>Clusters</h2>\n<p class=\"note\">Documents that are connected by pairs, directly or through \
        others{also}.</p>\n<table>\n<tr><th scope=\"col\">documents of a cluster</th>\
        <th scope=\"col\">clusters</th><th scope=\"col\">documents</th></tr>"
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
        out.push_str(" (no text: the input is standard input or a pipe, which is read once)</p>\n");
        return;
    };
    out.push_str("</p>\n<div class=\"sides\">");
    both(out, &plan.scheme.text, members.each_ref().map(|member| member.1.as_str()), [a, b], true);
    out.push_str("</div>\n");
    if [a, b].iter().any(|text| text.chars().count() == MOST) {
        let most = HumanCount(MOST as u64);
        let _ =
            writeln!(out, "<p class=\"note\">Of a longer text these are the first {most} characters.</p>");
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_similarity_is_not_rounded_up() {
        for (similarity, said) in [
            (0.8, "0.80"),
            (0.85, "0.85"),
            (0.875, "0.875"),
            (0.989_176_5, "0.989"),
            (0.999, "0.999"),
            (1.0, "1.00"),
        ] {
            assert_eq!(rounded_down(similarity), said);
        }
    }
}
