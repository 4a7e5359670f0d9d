//! A memory budget: what is in memory and what in files, the reads an event, and what they cost on a disk.
//!
//! Rule: documents are equally often updated, so a row is in the page cache with the probability
//! c = (cache bytes) / (bytes of the files), at most 1. An update or a delete reads the row of the document
//! and that of its sketch: 2 (1 - c) reads. A sketch that is compared costs 1 - c. What is updated soon after
//! it came, as in most feeds, is in the cache more often: these are upper bounds. A new document reads the
//! rows of others whose hashes are equal in the bits that an index has: N / 2^32 of N in each index.

use std::fmt::{self, Display, Formatter};

use indicatif::BinaryBytes;
use serde::Serialize;

use super::memory::{self, MemoryPart};
use crate::config::{MemoryBudget, Plan};
use crate::plural::count;

/// Memory of a process without documents, in bytes.
pub(super) const FIXED_BYTES: u64 = 40 << 20;

/// Number of different hashes in a `HashIndex`: a look-up among n rows finds n / `HASHES` others.
const HASHES: f64 = 4_294_967_296.0;

/// Reads a second of a disk, where nothing else is said: a small volume of a cloud. A disk by NVMe has
/// 100,000 and more.
pub const DEFAULT_IOPS: u64 = 3000;

/// A plan under a memory budget of one process.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SpillReport {
    /// The budget in bytes, and the part of it that the page caches take.
    memory_bytes: u64,
    cache_bytes: u64,
    documents: u64,
    /// Bytes per document in memory, page caches not counted.
    memory_bytes_per_document: f64,
    /// Bytes of a document's rows in files, by kind.
    files: Vec<MemoryPart>,
    /// Bytes of the files: of their pages, which hold whole rows.
    file_bytes: f64,
    /// The most documents whose memory fits into the budget, all different.
    most_documents: u64,
    /// The share of the rows that the page caches hold, from 0 to 1.
    cached: f64,
    /// Reads of an update or a delete of any document, and of a sketch that is compared; at most.
    reads_per_change: f64,
    reads_per_comparison: f64,
    /// Reads of a new document.
    reads_per_insert: f64,
    /// Reads a second of the disk, and how many such changes they allow; none if nothing is read.
    iops: u64,
    changes_per_second: Option<f64>,
}

impl SpillReport {
    /// The report of a plan, `in_memory` being the bytes of a document that are in memory under a budget.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "numbers of documents")]
    pub(super) fn new(plan: &Plan, documents: u64, in_memory: f64, memory_bytes: u64, iops: u64) -> Self {
        let files = memory::spilled(plan);
        let on_disk: f64 = files.iter().map(|part| memory::on_disk(part.bytes)).sum();
        let cache_bytes = memory_bytes / MemoryBudget::CACHE_SHARE;
        let room = memory_bytes.saturating_sub(cache_bytes + FIXED_BYTES) as f64;
        let file_bytes = on_disk * documents as f64;
        let cached = (cache_bytes as f64 / file_bytes.max(1.0)).min(1.0);
        let reads_per_change = files.len() as f64 * (1.0 - cached);
        Self {
            memory_bytes,
            cache_bytes,
            documents,
            memory_bytes_per_document: in_memory,
            files,
            file_bytes,
            most_documents: (room / in_memory.max(1.0)) as u64,
            cached,
            reads_per_change,
            reads_per_comparison: 1.0 - cached,
            reads_per_insert: reads_per_change * documents as f64 / HASHES,
            iops,
            changes_per_second: (reads_per_change > 0.0).then(|| iops as f64 / reads_per_change),
        }
    }
}

impl Display for SpillReport {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes of a process")]
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let bytes = |bytes: f64| BinaryBytes(bytes.round() as u64).to_string();
        let documents = count(self.documents, "document");
        writeln!(
            f,
            "\nUnder a budget of {} for each process, in one process:\n",
            BinaryBytes(self.memory_bytes)
        )?;
        let in_memory = self.memory_bytes_per_document;
        let all = bytes(in_memory * self.documents as f64);
        writeln!(f, "  {:<16}{in_memory:>6.0} bytes a document, {all} for {documents}", "in memory")?;
        for MemoryPart { what, bytes: each } in &self.files {
            writeln!(f, "  {:<16}{each:>6.0} bytes a document: {what}", "in files")?;
        }
        writeln!(f, "  {:<16}{:>6} for {documents}", "", bytes(self.file_bytes))?;
        let cache = BinaryBytes(self.cache_bytes).to_string();
        writeln!(f, "  {:<16}{cache:>6}, {:.0} % of the files", "page caches", self.cached * 100.0)?;
        writeln!(
            f,
            "  {:<16}{:>6.2} for an update or delete of any document, {:.2} for a sketch that is compared,\n\
            \x20 {:<16}{:>6.2} for a new document",
            "reads, at most", self.reads_per_change, self.reads_per_comparison, "", self.reads_per_insert
        )?;
        if let Some(changes) = self.changes_per_second {
            let iops = self.iops;
            writeln!(
                f,
                "  {:<16}{changes:>6.0} such changes a second at {iops} reads a second (--iops)",
                "disk"
            )?;
        }
        if self.most_documents < self.documents {
            writeln!(
                f,
                "  the budget is too small: what must be in memory fits for {}",
                count(self.most_documents, "document")
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(settings: &[&str], documents: u64, memory_bytes: u64) -> SpillReport {
        let settings: Vec<String> = settings.iter().map(|&typed| typed.to_owned()).collect();
        SpillReport::new(&Plan::load("minhash", &settings).unwrap(), documents, 272.0, memory_bytes, 3000)
    }

    #[test]
    fn a_budget_by_hand() {
        let budget = 1 << 30;
        let all = report(&[], 1_000_000, budget);
        // 224 + 40 bytes of a sketch, 15 in a page; 56 of a document, 73 in a page.
        let file_bytes = 1e6 * (4096.0 / 15.0 + 4096.0 / 73.0);
        assert!(
            (all.file_bytes - file_bytes).abs() < 1.0 && (all.memory_bytes_per_document - 272.0).abs() < 1e-9
        );
        let cached = (budget / 4) as f64 / file_bytes;
        assert!(
            (all.cached - cached).abs() < 1e-9 && (all.reads_per_change - 2.0 * (1.0 - cached)).abs() < 1e-9
        );
        assert!((all.changes_per_second.unwrap() - 1500.0 / (1.0 - cached)).abs() < 1e-6);
        assert_eq!(all.most_documents, (budget / 4 * 3 - FIXED_BYTES) / 272);
        assert!(!all.to_string().contains("too small"), "{all}");
        let few = report(&[], 1000, budget);
        assert_eq!((few.cached, few.changes_per_second), (1.0, None));
        let many = report(&[], 100_000_000, budget);
        assert!(many.reads_per_change > 1.9);
        assert!((many.reads_per_insert - many.reads_per_change * 1e8 / 4_294_967_296.0).abs() < 1e-9);
        assert!(many.to_string().contains("  0.05 for a new document"), "{many}");
        assert!(
            many.to_string().contains("the budget is too small: what must be in memory fits for 2,"),
            "{many}"
        );
        let retained = report(&["retention.max_documents=5"], 1_000_000, budget);
        assert_eq!(retained.files.len(), 1, "documents in orders stay in memory");
    }
}
