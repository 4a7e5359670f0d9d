//! The list of inputs in the state: its spans, as records of segments under their numbers.
//!
//! A publish adds the spans that the mark has beyond those that are stored. They are written together with
//! the last files that have no more spans than they; so there are few files, and a span is written again as
//! often as the list doubles.

use super::error::StateError;
use super::files::{SegmentNames, StateFiles};
use super::ids::SHARDS;
use super::segment::{SegmentFile, SegmentReader, write_delta};
use crate::mark::{InputList, InputSpan};
use dupflow_core::doc::changes::{ChangeRecord, Changes};

/// Adds the spans of a mark to the files of the list. Returns all files, and the mark's list without the
/// spans that they have.
pub(super) fn add(
    files: &StateFiles,
    names: &SegmentNames,
    stored: &[SegmentFile],
    list: &InputList,
) -> Result<(Vec<SegmentFile>, InputList), StateError> {
    let count: u64 = stored.iter().map(|file| file.records).sum();
    let known = usize::try_from(count.saturating_sub(list.stored)).unwrap_or(usize::MAX);
    let new = list.spans.get(known..).unwrap_or_default();
    let all = count + new.len() as u64;
    let digest = list.spans.iter().fold(list.digest, |before, span| span.digest(before));
    let left = InputList { stored: all, digest, spans: Vec::new(), ..list.clone() };
    let mut kept = stored.to_vec();
    if new.is_empty() {
        return Ok((kept, left));
    }
    let (mut spans, mut first) = (new.to_vec(), count);
    while let Some(last) = kept.pop_if(|last| last.records <= spans.len() as u64) {
        first -= last.records;
        spans.splice(0..0, read(files, &[last])?);
    }
    let mut changes = Changes::default();
    for (number, span) in (first..).zip(&spans) {
        let span = serde_json::to_vec(span).expect("numbers and texts are always JSON");
        changes.put(&number.to_be_bytes(), &span);
    }
    kept.extend(write_delta(files, names.next("inputs"), &[changes])?);
    Ok((kept, left))
}

/// The spans of these files, in their order.
pub(super) fn read(files: &StateFiles, listed: &[SegmentFile]) -> Result<Vec<InputSpan>, StateError> {
    let mut spans = Vec::new();
    for file in listed {
        let segment = SegmentReader::open(files, file)?;
        for shard in 0..SHARDS {
            segment.each(shard, |ChangeRecord { id, value, .. }| {
                let damaged = || files.damaged(&file.name, "expected a span of an input".to_owned());
                let number = id.try_into().map(u64::from_be_bytes).map_err(|_| damaged())?;
                let span = serde_json::from_slice(value.unwrap_or_default()).map_err(|_| damaged())?;
                spans.push((number, span));
                Ok::<_, StateError>(())
            })?;
        }
    }
    spans.sort_unstable_by_key(|(number, _)| *number);
    Ok(spans.into_iter().map(|(_, span)| span).collect())
}

#[cfg(test)]
mod tests {
    use super::super::store::MemoryStore;
    use super::*;
    use crate::mark::digest;

    #[test]
    fn a_list_that_grows_has_few_files_and_each_span_once() {
        let files = StateFiles::new(Box::new(MemoryStore::default()));
        let names = SegmentNames::new(7, None);
        let span = |number: u64| InputSpan { first: number, records: 1, ..InputSpan::default() };
        let (mut listed, mut all) = (Vec::new(), Vec::new());
        let mut list = InputList::default();
        for number in 0..100 {
            // Every third publish is repeated, as after a failure that was none.
            list.spans.push(span(number));
            all.push(span(number));
            if number % 3 == 0 {
                (listed, _) = add(&files, &names, &listed, &list).unwrap();
            }
            let (now, left) = add(&files, &names, &listed, &list).unwrap();
            assert_eq!((left.stored, left.digest), (number + 1, digest(&all)));
            assert!(left.spans.is_empty() && now.len() <= 8, "{}", now.len());
            (listed, list) = (now, left);
        }
        assert_eq!(read(&files, &listed).unwrap(), all);
    }
}
