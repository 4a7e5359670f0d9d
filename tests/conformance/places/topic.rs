//! A topic on a broker.

use std::sync::Arc;

use super::{Mark, Place, mark};
use crate::broker::Broker;
use crate::cells::Answer;
use crate::committed::{committed, ends};
use crate::model::Question;
use crate::rows::{self, Keeping, Rows, Written};

pub(crate) struct Topic {
    pub(crate) broker: Arc<Broker>,
    pub(crate) topic: String,
    /// Whether a record is the present value of its key.
    pub(crate) is_upsert: bool,
    pub(crate) answer: Answer,
}

/// What was written to a topic, in order within each partition.
pub(crate) fn written(broker: &Broker, topic: &str) -> Vec<Written> {
    let record = |record: crate::committed::Committed| {
        let cells = record.value.map(|value| rows::line(&value).remove(0));
        Written { key: Some(record.key), cells }
    };
    committed(broker, topic).into_iter().map(record).collect()
}

/// The values of a topic.
pub(crate) fn values(broker: &Broker, topic: &str) -> Vec<String> {
    committed(broker, topic).into_iter().filter_map(|record| record.value).collect()
}

impl Place for Topic {
    fn mark(&self) -> Option<Mark> {
        let marks = values(&self.broker, &format!("{}-progress", self.topic)).into_iter();
        let mut marks = marks.map(|text| serde_json::from_str::<serde_json::Value>(&text).unwrap());
        // The topic also holds claims of runs.
        marks.rfind(|json| json.get("progress").is_some()).map(|json| mark(&json))
    }

    fn rows(&self) -> Result<Vec<(Question, Rows)>, String> {
        let keeping = match (&*self.answer.name, self.answer.mode.as_deref()) {
            ("decisions", Some("first")) => Keeping::All,
            ("decisions", _) => Keeping::Last,
            _ if self.is_upsert => Keeping::Last,
            _ => Keeping::Sum,
        };
        if self.mark().is_none() {
            return Ok(Vec::new());
        }
        let rows = rows::in_force(written(&self.broker, &self.topic), keeping)?;
        Ok(vec![(Question::Answer(self.answer.clone()), rows)])
    }

    fn look(&self) -> String {
        format!("{:?}", ends(&self.broker, &self.topic))
    }

    fn lose(&self) -> bool {
        false
    }
}
