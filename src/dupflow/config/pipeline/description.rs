//! The description of a plan: everything that decides its result, as named values. Results of two runs are
//! comparable if their descriptions are equal.

use super::blocking::BlockingPlan;
use super::filter::FilterPlan;
use super::keys::{BLOCKING, CLUSTERS, FILTER, HOT, LEADERS_BY, RETENTION_CLOCK};
use super::plan::Plan;
use dupflow_core::block::hamming::DesignKind;
use dupflow_core::block::{BlockingKind, HotPolicy, HotRule, LeadersBy};
use dupflow_core::description::{Description, FieldValue};
use dupflow_core::doc::retention::Retention;
use dupflow_core::filter::{FilterKind, Verify};
use dupflow_core::pair::Threshold;
use dupflow_core::pair_rule::PairRule;

impl Plan {
    /// Everything that decides the result, by name, with the
    /// [scheme](dupflow_core::sketch::Scheme::description). Derived values are stored as derived (bands and
    /// rows, the bounds of each look), so that a program that derives other values has another description.
    /// What a bad record does to the run is not part of it.
    pub fn description(&self) -> Description {
        self.scheme
            .description()
            .with("threshold", self.threshold)
            .and(ties(self))
            .and(blocking("blocking", &self.blocking, &self.scheme.pairs))
            .and(
                self.also.as_ref().map_or_else(Description::new, |also| {
                    blocking("blocking.also", also, &self.scheme.pairs)
                }),
            )
            .and(filter(&self.filter))
            .with("output.expand_limit", self.expand_limit)
            .with("output.clusters", CLUSTERS.name_of(&self.clusters))
            .with("output.cluster_limit", self.cluster_limit)
            .and(retention(&self.retention))
    }

    /// Stable 64-bit hash of the [description](Self::description). Plans with equal fingerprints have equal
    /// results on equal corpora.
    pub fn fingerprint(&self) -> u64 {
        self.description().fingerprint()
    }
}

/// How pairs at the threshold are decided; empty where that is as it was before whole numbers did.
fn ties(plan: &Plan) -> Description {
    let has_changed = match &plan.filter {
        FilterPlan::Exact(..) if plan.scheme.measure().is_weighted() => true,
        FilterPlan::Exact(..) | FilterPlan::Containment(..) => {
            Threshold::new(plan.threshold).is_some_and(|threshold| !threshold.is_simple())
        }
        FilterPlan::Sketch(..) | FilterPlan::Whole(_) => false,
    };
    let described = Description::new();
    if has_changed { described.with("threshold.ties", "exact") } else { described }
}

/// Which documents stay alive; empty if all do.
fn retention(Retention { max_age, max_documents, clock }: &Retention) -> Description {
    let mut described = Description::new();
    if let Some(age) = max_age {
        described = described.with("retention.max_age_seconds", age.as_secs());
        described = described.with("retention.clock", RETENTION_CLOCK.name_of(clock));
    }
    max_documents.iter().fold(described, |all, most| all.with("retention.max_documents", *most))
}

/// How pairs become candidates, under names of this table. The patterns use no `..`, so that a new field must
/// be described too.
fn blocking(table: &str, plan: &BlockingPlan, pairs: &PairRule) -> Description {
    let name = |key: &str| format!("{table}.{key}");
    let kind = |kind| Description::new().with(name("kind"), BLOCKING.name_of(&kind));
    // When a block is hot, and of which sketches: see `RuledBlocking`. If hot blocks have no candidates,
    // there is no number of leaders.
    let hot = |rule: HotRule| match rule {
        HotRule::NEVER => Description::new().with(name("hot"), HOT.name_of(&HotPolicy::Never)),
        HotRule { cap, leaders, by } => {
            let described = Description::new().with(name("cap"), cap).with(name("leaders"), leaders);
            let equal: Vec<String> = pairs.equal_fields().map(str::to_owned).collect();
            let described = match equal.is_empty() {
                true => described,
                false => described.with(name("cap_for_each"), FieldValue::list(equal)),
            };
            match by {
                LeadersBy::Id => described,
                LeadersBy::Size => described.with(name("leaders_by"), LEADERS_BY.name_of(&by)),
            }
        }
    };
    match plan {
        BlockingPlan::Banding { design, rule } => kind(BlockingKind::Banding)
            .with(name("bands"), design.curve.bands)
            .with(name("rows"), design.curve.rows)
            .and(hot(*rule)),
        BlockingPlan::Hamming { design, rule } => {
            let described = match design.kind() {
                DesignKind::OneLevel { blocks } => kind(BlockingKind::Permuted).with(name("blocks"), blocks),
                DesignKind::TwoLevel { sub_blocks } => {
                    kind(BlockingKind::Permuted).with(name("sub_blocks"), sub_blocks)
                }
                DesignKind::MultiIndex { blocks } => {
                    kind(BlockingKind::MultiIndex).with(name("blocks"), blocks)
                }
                DesignKind::Groups { surplus } => kind(BlockingKind::Groups).with(name("common"), surplus),
                DesignKind::Conjunctions { surplus } => {
                    kind(BlockingKind::Conjunctions).with(name("common"), surplus)
                }
                DesignKind::Scan => kind(BlockingKind::Scan),
            };
            described.with(name("distance"), design.radius()).and(hot(*rule))
        }
        BlockingPlan::Shingles { rule } => kind(BlockingKind::Shingles).and(hot(*rule)),
        BlockingPlan::Reference => kind(BlockingKind::Reference),
        BlockingPlan::Scan => kind(BlockingKind::Scan),
    }
}

/// How candidates are decided: for each look, the greatest match count that rejects and the least that
/// accepts.
fn filter(plan: &FilterPlan) -> Description {
    let (kind, verify) = match plan {
        FilterPlan::Sketch(kind, _) => (*kind, "sketch"),
        FilterPlan::Exact(kind, _) => (*kind, "exact"),
        FilterPlan::Whole(_) | FilterPlan::Containment(Verify::Sketch, _) => (FilterKind::Full, "sketch"),
        FilterPlan::Containment(Verify::Exact, _) => (FilterKind::Full, "exact"),
    };
    let least_words = match plan {
        FilterPlan::Containment(_, filter) => {
            Description::new().with("filter.least_words", filter.least_words())
        }
        _ => Description::new(),
    };
    let schedule = plan.schedule();
    let first_word = schedule.and_then(|schedule| schedule.first_word());
    let looks = schedule.map(|schedule| schedule.looks()).unwrap_or_default();
    let bounds = looks.iter().map(|look| {
        format!("{} reject below {} accept from {}", look.components, look.reject_below, look.accept_from)
    });
    least_words
        .with("filter.kind", FILTER.name_of(&kind))
        .with("filter.verify", verify)
        .with("filter.first_word", FieldValue::list(first_word.map(|bits| bits.to_string())))
        .with("filter.looks", FieldValue::list(bounds))
}

#[cfg(test)]
mod tests {
    use crate::config::{BUILT_IN, Plan};

    fn plan(pipeline: &str, overrides: &[&str]) -> Plan {
        Plan::load(pipeline, &overrides.iter().map(|&typed| typed.to_owned()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn descriptions_differ_by_named_values() {
        let stored = plan("minhash", &[]).description().encode();
        for (typed, names) in [
            (
                "threshold=0.75",
                &["blocking.bands", "blocking.rows", "filter.first_word", "filter.looks", "threshold"][..],
            ),
            ("filter.error=0.001", &["filter.first_word", "filter.looks"]),
            ("filter.kind=full", &["filter.first_word", "filter.kind", "filter.looks"]),
            ("blocking.cap=9", &["blocking.cap"]),
            ("blocking.documents=1000001", &[]),
            ("blocking.documents=10000", &["blocking.bands", "blocking.rows"]),
            ("blocking.leaders=9", &["blocking.leaders"]),
            ("blocking.hot=skip", &["blocking.leaders"]),
            ("pairs.where=a.x != b.x", &["pairs.where"]),
            ("pairs.where=a.x == b.x", &["blocking.cap_for_each", "pairs.where"]),
            ("output.expand_limit=9", &["output.expand_limit"]),
            ("output.clusters=star", &["output.clusters"]),
            ("text.spaceless=run", &["text.spaceless"]),
            ("text.marks=split", &["text.marks"]),
            ("text.split=document", &[]),
            ("text.split=line", &["output.expand_limit", "text.split", "text.split_least"]),
            (
                "blocking.also.kind=banding",
                &[
                    "blocking.also.bands",
                    "blocking.also.cap",
                    "blocking.also.kind",
                    "blocking.also.leaders",
                    "blocking.also.rows",
                ],
            ),
            ("retention.max_age=30d", &["retention.clock", "retention.max_age_seconds"]),
            ("retention.max_documents=9", &["retention.max_documents"]),
            ("retention.clock=wall", &[]),
            ("output.on_error=fail", &[]),
        ] {
            let typed =
                if typed.starts_with("threshold") { vec![typed, "blocking.bands=20"] } else { vec![typed] };
            let differences = plan("minhash", &typed).description().differences(&stored).unwrap();
            let found: Vec<&str> = differences.iter().map(|difference| difference.name.as_str()).collect();
            assert!(!found.is_empty() || names.is_empty(), "{typed:?}");
            assert!(found.iter().all(|name| names.contains(name)), "{typed:?}: {found:?}");
        }
    }

    /// Pairs at the threshold may be others than before; where they are not, a run of before goes on.
    #[test]
    fn ties_are_described_where_whole_numbers_decide_them_anew() {
        for (pipeline, typed, is_described) in [
            ("exact", &["threshold=0.8"][..], false),
            ("exact", &["threshold=0.6666666666666666"], false),
            ("exact", &["threshold=0.66666666667"], true),
            ("minhash", &["threshold=0.66666666667"], false),
            ("contained", &["threshold=0.35"], false),
            ("contained", &["threshold=0.66666666667"], true),
            ("weighted", &[], false),
            ("weighted", &["filter.verify=exact"], true),
        ] {
            let described = plan(pipeline, typed).description();
            let found = described.fields().any(|(name, _)| name == "threshold.ties");
            assert_eq!(found, is_described, "{pipeline} {typed:?}");
        }
    }

    #[test]
    fn shipped_pipelines_have_fingerprints_of_their_own() {
        let mut all: Vec<u64> = BUILT_IN.iter().map(|(name, _)| plan(name, &[]).fingerprint()).collect();
        assert_eq!(all, BUILT_IN.iter().map(|(name, _)| plan(name, &[]).fingerprint()).collect::<Vec<_>>());
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), BUILT_IN.len());
    }
}
