//! Search by Hamming distance: work and time of every design, compared with the estimates. All designs must
//! find the same ids.
//!
//! Two settings. *SimHash*: random fingerprints of 64 bits within distance 3, by permuted tables, multi-index
//! and scan. *One bit*: n = 300,000 fingerprints of k = 400 bits, similarity r = 0.7 and 0.9, by alg.G, alg.H
//! and scan, as in Yuan et al. (2012), with a tenth of the queries. In both, half of the queries are random
//! and half are planted: neighbours of a document at distance 0, 1, ... up to the radius, of which none may
//! be missed.

pub mod indexes;
pub mod measured;

use super::table::{ResultTable, row};
use super::{EvaluateError, Findings, Study, StudyContext};
use dupflow_core::block::hamming::{Design, DesignError, DesignKind, radius};
use measured::{SearchRow, SearchSetting};

/// Maximum number of documents of the one-bit setting, components and similarities, as in the paper.
const PAPER: (usize, usize, [f64; 2]) = (300_000, 400, [0.9, 0.7]);

/// Maximum number of conjunctions of a query for which alg.G is run.
const MOST_CONJUNCTIONS: u64 = 50_000;

/// The study of searches by Hamming distance.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// Documents of the SimHash setting, and maximum of the one-bit setting.
    pub documents: usize,
    /// Random queries, and planted ones.
    pub queries: usize,
}

impl Study for Search {
    fn run(&self, bench: &StudyContext<'_>) -> Result<Findings, EvaluateError> {
        let mut table = ResultTable::new(
            "search",
            "Search by Hamming distance",
            "Of a random query; one thread. What is expected holds if all fingerprints are uniform. Missed \
                and found are counts over all queries, missed of planted neighbours; all designs of one \
                setting find the same ids if their results have the same hash.",
            "bits | radius | documents | design | probes | expected to be read | read | compared in full | \
                queries/s | tables, MB | missed | found | hash of results",
        );
        let simhash = [
            DesignKind::OneLevel { blocks: 4 },
            DesignKind::OneLevel { blocks: 5 },
            DesignKind::TwoLevel { sub_blocks: 4 },
            DesignKind::OneLevel { blocks: 6 },
            DesignKind::MultiIndex { blocks: 2 },
            DesignKind::Scan,
        ];
        let setting = |bits, documents, queries: usize| SearchSetting {
            bits,
            documents,
            queries: queries.max(2),
            seed: bench.seed,
        };
        self.measure(bench, &mut table, setting(64, self.documents, self.queries), 3, &simhash)?;
        let (documents, components, similarities) = PAPER;
        for similarity in similarities {
            let setting = setting(components, documents.min(self.documents), self.queries / 10);
            let one_bit = [
                DesignKind::Groups { surplus: 3 },
                DesignKind::Conjunctions { surplus: 3 },
                DesignKind::Scan,
            ];
            self.measure(bench, &mut table, setting, radius(components, similarity), &one_bit)?;
        }
        Ok(Findings {
            name: "search".to_owned(),
            title: "Search".to_owned(),
            about: "Static indexes of a whole corpus, in which recall is exactly 1.".to_owned(),
            tables: vec![table],
            plots: Vec::new(),
        })
    }
}

impl Search {
    /// One setting, with these designs.
    fn measure(
        &self,
        bench: &StudyContext<'_>,
        table: &mut ResultTable,
        setting: SearchSetting,
        radius: usize,
        kinds: &[DesignKind],
    ) -> Result<(), DesignError> {
        let designs: Vec<Design> =
            kinds.iter().map(|kind| Design::new(setting.bits, radius, *kind)).collect::<Result<_, _>>()?;
        for of_kind in designs {
            if matches!(of_kind.kind(), DesignKind::Conjunctions { .. })
                && of_kind.tables() > MOST_CONJUNCTIONS
            {
                continue;
            }
            for SearchRow { design, estimate, work, time, missed, found, results, .. } in
                setting.run(&[of_kind], bench.clock)?
            {
                let each = |count: u64| count as f64 / setting.queries as f64;
                table.push(row![
                    setting.bits,
                    radius,
                    setting.documents,
                    design.to_string(),
                    each(work.probes),
                    estimate.entries,
                    each(work.entries),
                    each(work.verified),
                    setting.queries as f64 / time.as_secs_f64(),
                    estimate.bytes / 1e6,
                    missed,
                    found,
                    format!("{results:016x}")
                ]);
            }
        }
        Ok(())
    }
}
