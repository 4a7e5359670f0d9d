//! What a source of a deployment is, and what it is opened with.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use crate::config::deployment::kind::Kind;
use crate::config::settings::FileSettings;
use dupflow_connectors::durable::Durable;
use dupflow_connectors::inputs::{Input, RecordIndex};
use dupflow_connectors::intake::{EpochLimits, Share, Source};
use dupflow_connectors::kafka::broker::Connection;
use dupflow_core::description::Description;
use dupflow_core::doc::fields::FieldRules;
use dupflow_core::text::TextColumns;

/// The interval at which topics are looked at, unless the source sets another one, in seconds.
pub(super) const TOPIC_REFRESH: u64 = 30;

/// Where events are read from.
pub trait SourcePlace: Any + fmt::Debug + Send + Sync {
    /// What is read, in a message.
    fn name(&self) -> String;

    /// The column or field of the text.
    fn text(&self) -> String;

    /// The settings that decide which documents a record makes, where they differ from the default.
    fn description(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// The settings that decide the documents and that [`Self::description`] lacks, since marks of earlier
    /// versions do not have them.
    fn further_description(&self) -> Description {
        Description::new()
    }

    /// The settings that must be equal in all processes of a run.
    fn shared(&self) -> Description;

    /// Whether epochs end by `[commit]`; otherwise the source cuts them by itself.
    fn is_cut_by_limits(&self) -> bool {
        true
    }

    /// Whether the source itself cuts epochs by the time of day.
    fn is_cut_by_clock(&self) -> bool {
        false
    }

    /// The interval at which topics are looked at: of the input, of the output, of watches.
    fn topic_refresh(&self) -> Duration {
        Duration::from_secs(TOPIC_REFRESH)
    }

    /// Opens it.
    fn open(&self, of: SourceSettings<'_>) -> Box<dyn Source>;
}

/// What a source is opened with.
#[derive(Clone, Debug)]
pub struct SourceSettings<'a> {
    /// The resolved inputs, those of a reference first.
    pub inputs: Vec<Input>,
    /// How many of them are the reference.
    pub against: usize,
    /// The columns of the text and of the fields that documents hold.
    pub columns: TextColumns,
    /// The part that this process reads.
    pub share: Share,
    /// What is durable of the last input, if this process writes it.
    pub durable: Option<Arc<Durable>>,
    /// Filled while files are read.
    pub places: Arc<RecordIndex>,
    /// Whether inputs are listed in marks, and continued by them.
    pub lists: bool,
    /// Whether documents need a time.
    pub needs_time: bool,
    /// When epochs end.
    pub limits: EpochLimits,
    /// How brokers are reached.
    pub connection: &'a Connection,
}

/// Where events are read from: one of the kinds of `source.kind`.
#[derive(Clone, Debug)]
pub struct SourceConfig(Arc<dyn SourcePlace>);

impl SourceConfig {
    /// A source of some kind.
    pub fn new(source: impl SourcePlace) -> Self {
        Self(Arc::new(source))
    }

    /// The source, if it is of this kind.
    pub fn as_a<S: SourcePlace>(&self) -> Option<&S> {
        let source: &dyn Any = &*self.0;
        source.downcast_ref()
    }
}

impl Deref for SourceConfig {
    type Target = dyn SourcePlace;

    fn deref(&self) -> &dyn SourcePlace {
        &*self.0
    }
}

/// A kind of source, which reads the table `[source]`, for documents with these fields.
pub(super) type SourceKind = Kind<fn(&mut FileSettings, &FieldRules) -> SourceConfig>;

/// The fields of a setting as text, without the name of its type.
pub fn fields_of(setting: &impl fmt::Debug) -> String {
    let text = format!("{setting:?}");
    text.split_once(' ').map(|(_, fields)| fields.to_owned()).unwrap_or(text)
}
