//! Results that go nowhere: they are computed and counted, and shown by the page.

use std::io;
use std::path::Path;

use super::place::{
    OpenError, OpenedOutput, OutputPlace, OutputSettings, Place, PlaceKind, ReadPlace, sink_of,
};
use crate::config::deployment::outputs::{OutputAnswer, OutputFormat};
use dupflow_connectors::sinks::{OutputRow, RowWriter};

pub(super) const NULL: PlaceKind = PlaceKind {
    name: "null",
    keys: &[],
    missing: || None,
    read: ReadPlace {
        table: |_| OutputPlace::new(Nowhere),
        typed: |typed| (typed == Path::new("null:")).then(|| Ok(OutputPlace::new(Nowhere))),
    },
};

#[derive(Clone, Debug)]
struct Nowhere;

impl Place for Nowhere {
    fn kind(&self) -> &'static str {
        NULL.name
    }

    fn name(&self) -> String {
        "nowhere".to_owned()
    }

    fn refusal(&self, answer: OutputAnswer, _: OutputFormat, _: bool) -> Option<&'static str> {
        answer.needs_replay().then_some("nothing would be counted of it: name a file")
    }

    fn keeps_marks(&self, _: OutputAnswer) -> bool {
        false
    }

    fn is_corrected(&self) -> bool {
        false
    }

    fn open(&self, of: &dyn OutputSettings) -> Result<OpenedOutput, OpenError> {
        let sink = sink_of(of, Box::new(Discarded));
        Ok((sink.map_err(|error| (self.name().into(), error))?, None))
    }
}

/// Takes rows, and writes none.
struct Discarded;

impl RowWriter for Discarded {
    fn row(&mut self, _: &dyn OutputRow) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}
