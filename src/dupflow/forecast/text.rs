//! Prints the plan as text, with tables and the plotted curve.

use std::fmt::{self, Display, Formatter};

use indicatif::BinaryBytes;

use super::memory::{ASSUMED_FEATURES, OWN_TIME_BYTES};
use super::plot::{Probability, TypedSimilarity, plot};
use super::quotes::QuoteTable;
use super::report::{Blocks, LengthError, PlanReport, RuleReport};
use super::spill::FIXED_BYTES;
use crate::plural::{count, counted};
use dupflow_connectors::intake::OnError;
use dupflow_core::sketch::{SectionBase, SectionMode, SketchKind, SketchParams};
use dupflow_core::text::measures::Measure;
use dupflow_core::text::{
    Field, Given, Html, Invisible, Marks, Normalize, Shingle, Spaceless, Stem, TextRules,
};

/// A sketch as text, without its bytes and its seed.
pub(super) struct SketchDescription<'a>(pub(super) &'a SketchParams);

impl Display for SketchDescription<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let SketchParams { kind, size, bits, wide, .. } = *self.0;
        write!(f, "{}: ", kind.name())?;
        match kind {
            SketchKind::BottomK => write!(f, "the {size} least values")?,
            SketchKind::Odd => write!(f, "{} bits of {size} components", size * bits)?,
            SketchKind::Connected { run } => {
                write!(f, "{} runs of {run} components of {bits} bits", size / run)?;
            }
            _ if wide > 0 => {
                write!(f, "{size} components of {}, {wide} of them of {}", counted(bits, "bit"), 2 * bits)?;
            }
            SketchKind::SimHash { .. } | SketchKind::Fingerprint => write!(f, "{size} bits")?,
            SketchKind::Scaled { scale, least } => {
                write!(f, "1 of {scale} hash values, {least} or more, and a word")?;
            }
            _ => write!(f, "{size} components of {}", counted(bits, "bit"))?,
        }
        if let SketchKind::Rejection { bound } = kind {
            write!(f, ", of weights up to {}", f64::from(bound) / 1000.0)?;
        }
        if let SketchKind::Sectional { sections, mode, base } = kind {
            let how = match mode {
                SectionMode::Attach => "attached to",
                SectionMode::Pair => "paired with",
            };
            write!(f, ", {how} {sections} sections")?;
            if base != SectionBase::Fss {
                write!(f, ", over {}", base.name())?;
            }
        }
        Ok(())
    }
}

impl Display for PlanReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "pipeline  {}, scheme {}", self.pipeline, self.fingerprint)?;
        writeln!(f, "pairs     of similarity {} or more", TypedSimilarity(self.threshold))?;
        writeln!(f, "text      {}", Rules(&self.scheme.text))?;
        if let Some(growth) = self.scheme.live() {
            writeln!(
                f,
                "          weights are those of a table, made again when the number of documents has grown \
                or fallen by a factor of {}:\n          the numbers below are of similarities by this table; \
                --sample compares with those by the table of all documents",
                growth.factor()
            )?;
        }
        let (sketch, bytes) = (&self.scheme.sketch, self.sketch_bytes);
        writeln!(f, "sketch    {}, {bytes} bytes, seed {}", SketchDescription(sketch), sketch.seed)?;
        let is_bound = self.filter.values || !self.standard_errors.is_empty();
        let at_most = if is_bound { "at most " } else { "" };
        let is_estimated = self.scheme.measure() != Measure::Hamming;
        if is_estimated && !(self.filter.values && self.filter.exact) {
            write!(
                f,
                "          the standard error of an estimate at the threshold is {at_most}{:.4}",
                self.standard_error
            )?;
            let lengths = self.standard_errors.iter().map(|LengthError { shingles, standard_error }| {
                format!("; {standard_error:.4} of texts of {shingles} shingles")
            });
            writeln!(f, "{}", lengths.collect::<String>())?;
        }
        self.blocking("blocking", &self.blocking, f)?;
        if let Some(also) = &self.also {
            self.blocking("and also", also, f)?;
            writeln!(f, "          a pair that shares a block of either is compared")?;
        }
        self.rule.iter().try_for_each(|rule| rule.fmt(f))?;
        self.filter.fmt(f)?;
        if sketch.wide > 0 && !self.filter.exact {
            writeln!(
                f,
                "          components of two widths are compared as a whole: no part of them stands for the \
                rest"
            )?;
        }
        match self.blocking {
            Blocks::Reference => {
                writeln!(
                    f,
                    "output    of an item in more documents than output.item_limit their number only; a run \
                    writes every pair"
                )?;
            }
            _ => writeln!(
                f,
                "output    of more than {} copies of one text each is paired with the smallest id \
                only\n          n of fewer, or n near copies, are n (n - 1) / 2 pairs: time and memory \
                grow with pairs",
                self.expand_limit
            )?,
        }
        match self.on_error {
            OnError::Count => writeln!(f, "          a bad record is counted")?,
            OnError::Fail => writeln!(f, "          a bad record ends the run")?,
        }
        if let Some(retention) = &self.retention {
            retention.fmt(f)?;
        }
        self.points(f)?;
        if !self.filter.values {
            self.filter.bounds(f)?;
        }
        for blocks in std::iter::once(&self.blocking).chain(&self.also) {
            if let Blocks::Hamming(hamming) = blocks {
                hamming.table(f)?;
            }
        }
        self.memory(f)?;
        self.spill.iter().try_for_each(|spill| spill.fmt(f))?;
        #[cfg(feature = "lab")]
        self.sample.iter().try_for_each(|sample| sample.fmt(f))?;
        Ok(())
    }
}

impl PlanReport {
    fn blocking(&self, heading: &str, blocks: &Blocks, f: &mut Formatter<'_>) -> fmt::Result {
        let banding = match blocks {
            Blocks::Banding(banding) => banding,
            Blocks::Hamming(hamming) => return hamming.describe(heading, f),
            Blocks::Shingles { rule, kept } => {
                let which = if kept.is_some() { "kept values" } else { "shingles" };
                writeln!(f, "{heading:<8}  {which}: every pair is compared that shares one")?;
                return writeln!(f, "          a block {rule}");
            }
            Blocks::Reference => {
                return writeln!(
                    f,
                    "{heading:<8}  reference: a document is compared with all of the reference that share a \
                    shingle"
                );
            }
            Blocks::Scan => return writeln!(f, "{heading:<8}  scan: every pair is compared"),
        };
        writeln!(f, "{heading:<8}  {} bands of {} rows: {}", banding.bands, banding.rows, banding.reason)?;
        if let Some(second) = &self.scheme.blocks {
            writeln!(f, "          of a second sketch, {}, seed {}", SketchDescription(second), second.seed)?;
        }
        let cut = self.scheme.block_sketch();
        if cut.wide > 0 {
            let bits = counted(cut.bits, "bit");
            writeln!(
                f,
                "          of the {bits} that all components have, which are a plain sketch by themselves"
            )?;
        }
        banding.describe(f)
    }

    fn points(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(quotes) = &self.quotes {
            return QuoteTable(quotes, !matches!(self.blocking, Blocks::Reference)).fmt(f);
        }
        writeln!(f, "\nPairs that are compared (░) and reported (█), by their similarity:\n")?;
        let columns = self.curve.iter().map(|point| (point.compared, point.reported));
        f.write_str(&plot(self.threshold, columns))?;
        writeln!(f, "\n              compared  reported  components read")?;
        writeln!(f, "  similarity  (share of such pairs)  of a compared pair")?;
        for point in &self.points {
            let (compared, reported) = (Probability(point.compared), Probability(point.reported));
            let (similarity, components) = (point.similarity, point.components);
            let mark = if similarity.total_cmp(&self.threshold).is_eq() { "T" } else { " " };
            let similarity = TypedSimilarity(similarity);
            writeln!(f, "{mark} {similarity:>10}  {compared:>8}  {reported:>8}  {components:>15.0}")?;
        }
        Ok(())
    }

    fn memory(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let memory = &self.memory;
        let workers = counted(memory.workers, "worker");
        writeln!(
            f,
            "\nMemory with {workers}, if no text is a copy (an estimate), besides ids of more than 22 bytes \
            and about {} that are fixed:\n",
            BinaryBytes(FIXED_BYTES)
        )?;
        for part in &memory.parts {
            writeln!(f, "  {:<16}{:>6.0} bytes a document", part.what, part.bytes)?;
        }
        writeln!(f, "  {:<16}{:>6.0} bytes a document", "together", memory.bytes_per_document)?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes of a process")]
        let all = BinaryBytes(memory.total_bytes.round() as u64).to_string();
        writeln!(f, "  {:<16}{all:>6} for {}", "", count(memory.documents, "document"))?;
        if memory.bytes_per_deleted_id > 0.0 {
            let bytes = memory.bytes_per_deleted_id;
            writeln!(
                f,
                "  (of a topic, {bytes:.0} bytes for each deleted id, which is remembered: docs/moving.md)"
            )?;
            writeln!(f, "  (and {OWN_TIME_BYTES:.0} for each document whose rows have a time of their own)")?;
        }
        if self.filter.exact || self.filter.values || self.scheme.live().is_some() {
            writeln!(f, "  (features and terms: for texts of {ASSUMED_FEATURES} distinct shingles)")?;
        }
        if memory.of_units {
            writeln!(
                f,
                "  (each is a unit: text.split cuts documents, and the name of a unit has their id)"
            )?;
        }
        let not_counted = memory.not_counted.join(", ");
        writeln!(f, "  (not counted, since a pipeline does not say how many there are: {not_counted})")
    }
}

/// Text rules as text.
pub(super) struct Rules<'r>(pub(super) &'r TextRules);

impl Display for Rules<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match (self.0.given, self.0.shingle) {
            (None, _) => {}
            (Some(Given::Fingerprint(_)), _) => return f.write_str("fingerprints that records bring"),
            (Some(_), Shingle::Words(1)) => return f.write_str("features that records bring"),
            (Some(_), Shingle::Words(n) | Shingle::Chars(n)) => {
                return write!(f, "shingles of {n} features that records bring");
            }
        }
        match self.0.shingle {
            Shingle::Words(n) => write!(f, "shingles of {}", counted(n, "word"))?,
            Shingle::Chars(n) => write!(f, "shingles of {}", counted(n, "character"))?,
        }
        f.write_str(match self.0.spaceless {
            Spaceless::Part => ", characters of spaceless scripts are parts of words",
            Spaceless::Bag => ", characters of spaceless scripts are smaller parts of words",
            Spaceless::Char => ", characters of spaceless scripts are words",
            Spaceless::Run => ", spaceless scripts run together",
        })?;
        f.write_str(match self.0.marks {
            Marks::Keep => "",
            Marks::Split => ", words split at their marks",
        })?;
        f.write_str(match self.0.html {
            Html::None => ", web pages with their markup",
            Html::Text => "",
            Html::Fragments => ", texts with markup by what they show",
            Html::Article => ", of web pages the article",
        })?;
        f.write_str(match self.0.normalize {
            Normalize::None => ", not normalized",
            Normalize::Nfc => "",
            Normalize::Nfkc => ", normalized by NFKC",
        })?;
        f.write_str(match self.0.invisible {
            Invisible::Keep => ", words split where a character does not show",
            Invisible::Ignore => "",
        })?;
        self.0.folds.iter().try_for_each(|fold| write!(f, ", {} folded", fold.name()))?;
        if self.0.hash.name().is_some() {
            f.write_str(", hashed under a secret")?;
        }
        match self.0.stop_words.len() {
            0 => {}
            1 => f.write_str(", 1 stop word")?,
            n => write!(f, ", {n} stop words")?,
        }
        if let Stem::Language(_) = self.0.stem {
            write!(f, ", {} stems", self.0.stem.name())?;
        }
        self.0.fields.iter().try_for_each(|Field { name, weight }| match weight {
            1 => write!(f, ", field {name:?}"),
            n => write!(f, ", field {name:?} {n} times"),
        })
    }
}

impl Display for RuleReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let [equal, different] =
            [&self.counted_for_each, &self.not_counted].map(|fields| fields.join(" and "));
        if !equal.is_empty() {
            writeln!(
                f,
                "rule      pairs.where: a block counts the documents of each {equal} on their own, so its \
                numbers are those\n          of so many documents of one {equal}; of several, fewer blocks \
                are hot"
            )?;
        }
        if !different.is_empty() {
            writeln!(
                f,
                "rule      pairs.where: a hot block takes no account of {different}: where its leaders have \
                the {different} of a\n          member, it meets none there, a loss that is not in the \
                numbers above"
            )?;
        }
        Ok(())
    }
}
