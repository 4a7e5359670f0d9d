//! What the arguments of a replay ask for, and all that is wrong with it.

use std::path::Path;

use super::args::Args;
use super::corrected;
use super::execute::Replay;
use crate::cli::arguments::inputs::{STDIN_TWICE, look_at_standard_input};
use crate::cli::arguments::problems::Problems;
use crate::cli::arguments::reference::check_sides;
use crate::cli::arguments::resume::{self, ResumableReplay};
use crate::cli::arguments::verbosity::Verbosity;
use crate::cli::arguments::{views, written};
use crate::cli::{audit, units};
use crate::config::{
    Deployment, FilePlace, OutputConfig, OutputFormat, Plan, ProvenancePlace, ViewConfig, without_monitor,
};
use crate::pipeline::missing_fields;
use dupflow_connectors::inputs::Input;
use dupflow_connectors::intake::Speed;
use dupflow_connectors::sinks::answers::Written;
use dupflow_engine::processes::Processes;

/// The arguments, and what they name. What is not understood is `None`, and a problem.
pub(super) struct Request<'a> {
    args: &'a Args,
    /// Whether clap has taken all arguments.
    are_understood: bool,
    plan: Option<Plan>,
    inputs: Option<Vec<Input>>,
    reference: Vec<Input>,
    /// Empty if one of them is no place.
    outputs: Vec<OutputConfig>,
    deployment: Deployment,
    resumable: Option<ResumableReplay>,
    is_published: bool,
    processes: Option<Option<Processes>>,
}

impl<'a> Request<'a> {
    /// Reads all that the arguments name.
    pub(super) fn read(args: &'a Args, verbosity: Verbosity, problems: &mut Problems) -> Self {
        let are_understood = problems.is_empty();
        let plan = problems.take(args.pipeline.load());
        let inputs = args.inputs.resolve(problems);
        let reference = args.reference.resolve(args.inputs.layout.layout(), problems);
        let of_inputs = args.inputs.lists_stdin() || inputs.iter().flatten().any(Input::is_stdin);
        if of_inputs && reference.iter().any(Input::is_stdin) {
            problems.note(STDIN_TWICE);
        }
        let fields = args.inputs.layout.columns.fields(problems);
        let mut deployment = args.deployment(fields, verbosity.format);
        let outputs = args.outputs();
        if let Err(what) = &outputs {
            problems.note(format_args!("--output: {what}"));
        }
        let outputs = outputs.unwrap_or_default();
        corrected::note_conflicts(args, &outputs, plan.as_ref(), problems);
        // One that cannot be read is a problem of its own.
        deployment.against = reference.len().max(usize::from(!args.reference.against.is_empty()));
        Self {
            args,
            are_understood,
            plan,
            inputs,
            reference,
            outputs,
            deployment,
            resumable: None,
            is_published: false,
            processes: None,
        }
    }

    /// What goes neither with a reference nor with units, and is set.
    fn beside_pairs(&self) -> [(&'static str, bool); 4] {
        [
            ("several processes", self.args.processes.are_several()),
            ("--monitor", self.args.monitor.is_some()),
            ("--watch", !self.args.watch.is_empty()),
            ("--views", self.args.views.is_some()),
        ]
    }

    fn finds_items(&self) -> bool {
        self.plan.as_ref().is_some_and(Plan::finds_items)
    }

    /// Sets the rule of pairs for a reference, and reports what does not go with one, or with units.
    pub(super) fn note_reference(&mut self, problems: &mut Problems) {
        let args = self.args;
        let mark = ("--mark", args.documents.mark.is_some() && !self.finds_items());
        let others = self.beside_pairs();
        args.reference.apply(self.plan.as_mut(), args.emit, &[&[mark][..], &others].concat(), problems);
        let not_of_units =
            [("--against", !args.reference.against.is_empty()), ("--resume", args.resume.resume.is_some())];
        let others = [&not_of_units[..], &others].concat();
        units::note_conflicts(self.plan.as_ref(), args.emit, &others, problems);
    }

    /// Places what is kept in the folder of `--resume`, and reports what does not go with it.
    pub(super) fn open_folder(&mut self, problems: &mut Problems) {
        let args = self.args;
        self.resumable = args.resume.open(problems);
        if let Some(replay) = &self.resumable {
            replay.place(&mut self.deployment, problems);
            let read = [&*self.reference, self.inputs.as_deref().unwrap_or_default()].concat();
            let others = [
                ("--provenance", args.provenance),
                ("--speed", args.speed != Speed::Max),
                ("several --output", args.output.len() > 1),
                ("--report", args.report.is_some()),
                ("--emit rejected", matches!(args.emit.written, Written::Survey)),
                ("a pipeline that finds items", self.finds_items()),
            ];
            let set = [&self.beside_pairs()[..], &others].concat();
            replay.note_conflicts(&self.deployment, args.epoch, &read, &set, problems);
            if let Some(plan) = &self.plan {
                replay.note_differences(&resume::settings(plan, &self.deployment, &read), problems);
            }
            self.is_published = problems.is_empty() && replay.is_published(&self.deployment, problems);
        }
        if args.processes.are_several() && self.inputs.iter().flatten().any(Input::is_folder) {
            // The documents of a folder are digested by all processes, and only process 0 may have --stats.
            let provenance = &mut self.deployment.audit.provenance;
            *provenance = (*provenance).max(ProvenancePlace::Stats);
        }
    }

    /// Reads the views.
    pub(super) fn note_views(&mut self, problems: &mut Problems) {
        if let Some(path) = &self.args.views {
            let views = ViewConfig::load(path, &self.deployment.fields);
            self.deployment.views = problems.take(views).unwrap_or_default();
        }
        views::note_conflicts(self.plan.as_ref(), &self.deployment, true, problems);
    }

    /// Reports options of other answers, and fields that are missing.
    pub(super) fn note_answers(&self, problems: &mut Problems) {
        let Self { args, plan, deployment, .. } = self;
        let answer = deployment.output.answer;
        if deployment.evidence && !answer.is_of_pairs() {
            problems.note("--evidence: only pairs have evidence, and something else is to be emitted");
        }
        plan.iter()
            .flat_map(|plan| missing_fields(plan, deployment))
            .for_each(|missing| problems.note(missing));
        if args.report.is_some() {
            let what = match plan {
                Some(plan) if plan.finds_items() => "a pipeline that finds items",
                Some(plan) if plan.scheme.units.is_some() => "text.split",
                _ if args.processes.are_several() => "several processes",
                _ => "",
            };
            if !what.is_empty() {
                problems.note(format_args!("--report: does not go with {what}"));
            }
        }
        if args.causes && !args.emit.takes_causes() {
            problems.note("--causes: only deltas have causes, and something else is to be emitted");
        }
        if args.decisions.is_some() && !answer.is_of_decisions() {
            problems.note("--decisions: has an effect with --emit decisions only");
        }
    }

    /// Reports outputs that cannot take what is to be emitted.
    pub(super) fn note_outputs(&self, problems: &mut Problems) {
        let Self { args, outputs, .. } = self;
        for output in outputs {
            let file = output.place.as_a::<FilePlace>();
            let refusing = if file.is_some() { "--output-format" } else { "--emit" };
            if let Some(what) = output.refusal(true) {
                problems.note(format!("{refusing}: {what}"));
            }
            if let Some(FilePlace { path: Some(path), .. }) = file
                && args.emit.copied().is_none()
                && let Some(why) = OutputFormat::misnamed(path, args.output_format.is_some())
            {
                problems.note(format!("--output: {why}"));
            }
            if let Some(missing) = output.format.missing().filter(|_| file.is_some()) {
                problems.note(format!("--output-format: {missing}"));
            }
        }
        if args.provenance && outputs.len() > 1 {
            problems.note("--provenance: it is written into one output; --stats has it");
        }
    }

    /// Reports inputs that are on both sides, and records of documents that cannot be copied.
    pub(super) fn note_records(&self, problems: &mut Problems) {
        let Self { args, plan, outputs, deployment, .. } = self;
        let sides = (self.inputs.as_deref().unwrap_or_default(), &*self.reference);
        check_sides("--against", sides.1, sides.0, problems);
        let are_several = args.processes.are_several();
        if !self.is_published && outputs.iter().all(|output| !output.place.is_corrected()) {
            let of_units = plan.as_ref().is_some_and(|plan| plan.scheme.units.is_some());
            let output = (args.emit, &*args.output[0]);
            args.documents.note_conflicts(output, sides, (are_several, of_units), problems);
        }
        if args.output_format.is_some() && args.emit.copied().is_some() {
            problems.note("--output-format: records are written in the format of their input");
        }
        args.memory.note_conflicts(problems);
        audit::note_conflicts(deployment, are_several, plan.as_ref(), problems);
    }

    /// Reads the processes, and reports what they cannot do together.
    pub(super) fn note_processes(&mut self, problems: &mut Problems) {
        let args = self.args;
        self.processes = args.processes.read(problems);
        if !args.processes.are_several() {
            return;
        }
        if self.inputs.iter().flatten().any(Input::is_stdin) {
            problems.note("standard input \"-\": each process reads the inputs, which have to be files");
        }
        if let Written::Survey = self.deployment.output.answer.written {
            problems.note("--emit: one process writes rejected candidates, and has only its own sketches");
        }
        if args.workers.is_none() {
            problems.note("--workers: has to be given, and be the same for all processes");
        }
    }

    /// Reports a page that cannot be served.
    pub(super) fn note_monitor(&self, problems: &mut Problems) {
        let Some(address) = self.args.monitor else { return };
        if !address.ip().is_loopback() {
            problems.note(format!(
                "--monitor: {address} is no loopback address, such as 127.0.0.1:9600; `run` takes any, with \
                a token"
            ));
        }
        if !cfg!(feature = "monitor") {
            problems.note(format_args!("--monitor: {}", without_monitor()));
        }
        if self.args.processes.are_several() {
            problems.note("--monitor: one process shows a replay");
        }
    }

    /// Reports files that cannot be written, or would be lost.
    pub(super) fn note_written(&self, problems: &mut Problems) {
        let Self { args, deployment, reference, inputs, .. } = self;
        let none: &'static [&'static str] = &[];
        let has_companion = args.has_companion(deployment);
        let beside = |output: &OutputConfig| -> &'static [&'static str] {
            match output.place.as_a::<FilePlace>() {
                Some(_) if has_companion => &[audit::COMPANION_SUFFIX],
                Some(_) => none,
                None => output.place.beside(output.answer),
            }
        };
        // A folder of records is checked with the inputs.
        let is_file = |path: &&Path| args.documents.is_file(args.emit, path);
        let redirected = written::standard_output();
        let is_printed = deployment.all_outputs().any(|output| output.place.is_printed());
        let besides = [
            ("standard output", redirected.as_deref().filter(|_| is_printed)),
            ("--stats", args.stats.as_deref()),
            ("--report", args.report.as_deref()),
            ("--dead-letter", args.dead_letter.as_deref()),
            ("--notices", args.notices.as_deref()),
        ];
        let besides = besides.into_iter().filter_map(|(option, path)| Some((option, path?, none)));
        let of_views = views::files(&deployment.views, true);
        let of_views = of_views.iter().map(|(key, path, _)| (&**key, *path, none));
        let of_outputs = deployment
            .all_outputs()
            .filter_map(|output| Some(("--output", output.place.file().filter(is_file)?, beside(output))));
        let written: Vec<_> = of_outputs.chain(besides).chain(of_views).collect();
        // Only process 0 writes.
        if args.processes.process.unwrap_or_default() == 0 && args.dry_run.is_none() {
            // A wrong --shard-size leaves the folder for a file, which seems not to be writable.
            let is_known = |option| option != "--output" || self.are_understood;
            let files =
                written.iter().filter(|(option, ..)| *option != "standard output" && is_known(*option));
            written::probe(files.map(|(option, path, _)| (*option, *path)), problems);
        }
        if let Some(replay) = &self.resumable {
            let files = written.iter().map(|(option, path, _)| (*option, *path));
            let records = args.documents.folder(args.emit, &args.output[0]);
            replay.note_places(files, records.as_deref(), problems);
        }
        let list = deployment.files_from().map(|path| ("the list --files-from", path.to_owned()));
        let of_watches = args.watch.iter().map(|path| ("the watch list --watch", path.clone()));
        let file_of_views = args.views.clone().map(|path| ("the file --views", path));
        let read = args.pipeline.file().into_iter().chain(list).chain(of_watches).chain(file_of_views);
        let named = || args.inputs.inputs.iter().map(|path| Input::at(path)).collect();
        let all = inputs.clone().unwrap_or_else(named);
        written::check(&written, &read.collect::<Vec<_>>(), &[&**reference, &all].concat(), problems);
    }

    /// Reports standard input in a format that is not read. With a page the run begins before there is any
    /// input: then it is refused during the run.
    pub(super) fn look_at_standard_input(&self, problems: &mut Problems) {
        let mut read = self.inputs.iter().flatten().chain(&self.reference);
        if self.args.monitor.is_none() && problems.is_empty() && read.any(Input::is_stdin) {
            look_at_standard_input(&self.args.inputs.layout.layout(), problems);
        }
    }

    /// The replay, if there is no problem.
    pub(super) fn settle(self, problems: Problems) -> anyhow::Result<Replay> {
        let Self { plan, inputs, reference, deployment, resumable, is_published, processes, .. } = self;
        let (plan, (inputs, processes)) = problems.settle(plan.zip(inputs.zip(processes)))?;
        let inputs = reference.into_iter().chain(inputs).collect();
        Ok(Replay { plan, deployment, inputs, processes, resumable, is_published })
    }
}
