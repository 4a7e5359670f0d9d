//! Records of a topic that bring their own features.

use crate::Test;
use crate::broker::Broker;
use crate::run::Scene;

pub(crate) const TESTS: &[Test] = &[("features::lists_of_a_topic", lists_of_a_topic)];

const SET: &[&str] = &["--set", "text.features=given", "--set", "threshold=0.5"];

/// Lists with updates, deletes and bad records, through a stop and a kill.
fn lists_of_a_topic(broker: &Broker) {
    let mut scene = Scene::new(broker, 1);
    scene.more = "state.path = \"state\"\n".to_owned();
    let writer = broker.writer();
    let put = |id: &str, features: Option<&str>| {
        let value = features.map(|features| format!("{{\"text\":{features}}}"));
        writer.put(&scene.input, 0, Some(id), value.as_ref().map(String::as_bytes));
        writer.flush();
    };
    put("a", Some("[\"bread\", 7, \"milk\", \"tea\"]"));
    put("b", Some("[\"bread\", \"7\", \"milk\"]"));
    put("c", Some("[\"BREAD\", [\"MILK\", 3]]"));
    let mut output = scene.output();
    let mut run = scene.run(SET);
    output.until(&mut run, &["a b"]);
    run.stop();

    put("c", Some("[\"bread\", \"milk\", [7, 2]]"));
    put("bad", Some("[-1]"));
    let mut run = scene.run(SET);
    output.until(&mut run, &["a b", "a c", "b c"]);
    run.says("bad_features");
    run.kill();

    put("a", None);
    put("b", Some("\"tea bread\""));
    put("d", Some("[\"milk\", \"bread\", \"7\"]"));
    let mut run = scene.run(SET);
    output.until(&mut run, &["c d"]);
    run.stop();
}
