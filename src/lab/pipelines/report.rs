//! Tables and plots of quality and cost.

use super::super::plot::{Axis, Plot, Series};
use super::super::table::{ResultTable, TableColumn, TableValue, row};
use super::PipelineRun;
use super::outcome::{BANDS, band_name, share};

/// `are_judged`: only judged pairs count.
pub(super) fn quality(runs: &[PipelineRun], are_judged: bool) -> ResultTable {
    let mut table = ResultTable::new(
        "pipelines_quality",
        "Precision and recall",
        if are_judged {
            "Of the judged pairs alone, each counted once: not shares of the corpus, unless the pairs are a \
                random sample of it. `dupflow calibrate` draws as many of each band of similarity, and \
                weights its own estimates by the sizes of the bands."
        } else {
            "Of the pairs found and of the right ones, those of a true similarity of at least T."
        },
        "pipeline | T | pairs found | right pairs | found and right | precision | recall | F1",
    );
    for PipelineRun { pipeline, threshold, outcome, .. } in runs {
        table.push(row![
            pipeline.as_str(),
            *threshold,
            outcome.found,
            outcome.right,
            outcome.hits,
            outcome.precision(),
            outcome.recall(),
            outcome.f1(),
        ]);
    }
    table
}

/// `None` if no measure was computed.
pub(super) fn own(runs: &[PipelineRun]) -> Option<ResultTable> {
    let mut table = ResultTable::new(
        "pipelines_own",
        "By its own measure",
        "What is right is what the pipeline's own similarity makes of all documents, by its own text rules \
            and without sketches. A pipeline that decides by distance has the T that its distance stands \
            for. Live weights are those of the documents at the end.",
        "pipeline | measure | T | pairs found | right pairs | found and right | precision | recall | F1",
    );
    for (PipelineRun { pipeline, .. }, (measure, threshold, outcome)) in
        runs.iter().filter_map(|runs| Some((runs, runs.own.as_ref()?)))
    {
        table.push(row![
            pipeline.as_str(),
            measure.as_str(),
            *threshold,
            outcome.found,
            outcome.right,
            outcome.hits,
            outcome.precision(),
            outcome.recall(),
            outcome.f1(),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

pub(super) fn by_band(runs: &[PipelineRun]) -> ResultTable {
    let held: Vec<usize> =
        (0..BANDS.len()).filter(|band| runs.iter().any(|runs| runs.outcome.bands[*band].1 > 0)).collect();
    let mut table = ResultTable::new(
        "pipelines_bands",
        "Share of pairs found, by true similarity",
        "Below T it should be 0, from T on 1. The last row has the pairs that there are, as far as the truth \
            knows them.",
        "pipeline | T",
    );
    table.columns.extend(held.iter().map(|band| TableColumn { name: band_name(*band), unit: "" }));
    for PipelineRun { pipeline, threshold, outcome, .. } in runs {
        let mut row = row![pipeline.as_str(), *threshold];
        row.extend(held.iter().map(|band| {
            let (found, all) = outcome.bands[*band];
            TableValue::from(share(found, all))
        }));
        table.push(row);
    }
    if let Some(first) = runs.first() {
        let mut row = row!["all pairs", TableValue::None];
        row.extend(held.iter().map(|band| TableValue::from(first.outcome.bands[*band].1)));
        table.push(row);
    }
    table
}

pub(super) fn cost(runs: &[PipelineRun]) -> ResultTable {
    let mut table = ResultTable::new(
        "pipelines_cost",
        "What it took",
        "Candidates are counted once for each block that two sketches share; those that the first word does \
            not reject are compared. Bytes are the most that the process held, its program included, per \
            document alive at the end.",
        "pipeline | T | pairs | candidates | compared | components per comparison | time, s | events, 1/s | \
            memory, bytes/document",
    );
    for PipelineRun { pipeline, threshold, counts, .. } in runs {
        let compared: u64 = counts.compared_by_stage.iter().skip(1).sum();
        table.push(row![
            pipeline.as_str(),
            *threshold,
            counts.pairs,
            counts.candidates,
            compared,
            (compared > 0).then(|| counts.components_compared as f64 / compared as f64),
            counts.seconds,
            counts.events as f64 / counts.seconds.max(1e-9),
            counts.peak_rss_bytes as f64 / counts.documents.max(1) as f64,
        ]);
    }
    table
}

/// The fraction of pairs found, by true similarity.
pub(super) fn found_by_similarity(runs: &[PipelineRun], threshold: f64) -> Plot {
    let of_plot = runs.iter().filter(|runs| runs.threshold.total_cmp(&threshold).is_eq());
    let series = of_plot.map(|PipelineRun { pipeline, outcome, .. }| {
        let point =
            |(from, (found, all)): (f64, (usize, usize))| share(found, all).map(|share| (from, share));
        let points = BANDS.into_iter().zip(outcome.bands).filter_map(point);
        Series::new(pipeline.clone(), points)
    });
    Plot::new(
        format!("pipelines_found_{threshold}"),
        format!("Share of pairs found, T = {threshold}"),
        Axis::of_bands("true similarity", &BANDS),
        Axis::of_shares("share found"),
        series.collect(),
    )
}
