//! A report as it is found: an output with its provenance.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail, ensure};
use serde::Deserialize;

use crate::cli::audit::{COMPANION_SUFFIX, companion};
use crate::pipeline::{CountsRecord, Provenance};
use dupflow_connectors::digest::InputDigest;
#[cfg(not(feature = "parquet"))]
use dupflow_run::missing_feature;

/// Most bytes of a stats file or of a companion file.
const MOST_BYTES: u64 = 256 << 20;

/// The least bytes from the end of a file of JSON Lines that are searched for its last line.
const TAIL_BYTES: u64 = 64 << 10;

/// An output with its provenance.
pub(super) struct Report {
    pub(super) provenance: Provenance,
    /// The file with the records.
    pub(super) output: PathBuf,
    /// What is missing at the end, if something is.
    pub(super) cut: Option<String>,
}

/// An object with the provenance, such as a stats file.
#[derive(Deserialize)]
struct ProvenanceObject {
    provenance: Provenance,
}

/// The last line of an output.
#[derive(Deserialize)]
struct LastLine {
    provenance_end: EndOfProvenance,
}

/// What is known at the end.
#[derive(Deserialize)]
struct EndOfProvenance {
    inputs: Vec<InputDigest>,
    counts: CountsRecord,
}

impl Report {
    /// Reads the provenance at `path`; `output` is the output of a stats file.
    ///
    /// # Errors
    /// If there is none, or it is of another version of the format.
    pub(super) fn read(path: &Path, output: Option<&Path>) -> anyhow::Result<Self> {
        let report = Self::found(path, output).with_context(|| format!("the report {path:?}"))?;
        ensure!(
            report.provenance.is_known(),
            "the report {path:?}: its provenance has format {}, which this program does not read",
            report.provenance.format
        );
        Ok(report)
    }

    fn found(path: &Path, output: Option<&Path>) -> anyhow::Result<Self> {
        let mut file = File::open(path)?;
        let mut head = [0; 16];
        let length = file.read(&mut head)?;
        let head = &head[..length];
        let is_output = || {
            ensure!(output.is_none(), "it is an output itself: --output belongs to a stats file");
            Ok(path.to_owned())
        };
        if head.starts_with(b"PAR1") {
            return Self::of_metadata(is_output()?);
        }
        if head.starts_with(b"{\"provenance\":") && !path.to_string_lossy().ends_with(COMPANION_SUFFIX) {
            return Self::of_lines(is_output()?);
        }
        let beside = companion(path);
        if beside.is_file() {
            let table = is_output()?;
            return Ok(Self { provenance: object(&beside)?, output: table, cut: None });
        }
        if head.trim_ascii_start().starts_with(b"{") {
            let provenance = object(path).context(
                "it has no provenance: it is neither an output of \"replay --provenance\" nor a file of \
                \"replay --stats\"",
            )?;
            let name = path.to_string_lossy();
            let named = name.strip_suffix(COMPANION_SUFFIX).map(PathBuf::from);
            let output = output.map(Path::to_owned).or(named);
            let output =
                output.ok_or_else(|| anyhow!("it is a stats file: name its output with --output"))?;
            File::open(&output).with_context(|| format!("its output {output:?}"))?;
            return Ok(Self { provenance, output, cut: None });
        }
        bail!("it has no provenance, and there is no {beside:?}: \"replay --provenance\" writes it")
    }

    /// JSON Lines: the provenance is in the first and in the last line.
    fn of_lines(output: PathBuf) -> anyhow::Result<Self> {
        let mut first = String::new();
        BufReader::new(File::open(&output)?).take(MOST_BYTES).read_line(&mut first)?;
        let ProvenanceObject { mut provenance } =
            serde_json::from_str(&first).context("its first line is no provenance of this program")?;
        let last = last_line(&output)?;
        let cut = match serde_json::from_slice::<LastLine>(&last) {
            Ok(LastLine { provenance_end: EndOfProvenance { inputs, counts } }) => {
                (provenance.inputs, provenance.counts) = (inputs, Some(counts));
                None
            }
            Err(_) => Some(
                "the report is cut short: its last line is not the end of its provenance, with the digests \
                and the counts"
                    .to_owned(),
            ),
        };
        Ok(Self { provenance, output, cut })
    }

    /// A Parquet file: the provenance is in its metadata.
    #[cfg(feature = "parquet")]
    fn of_metadata(output: PathBuf) -> anyhow::Result<Self> {
        use parquet::file::reader::{FileReader, SerializedFileReader};

        let reader = SerializedFileReader::new(File::open(&output)?)
            .context("it is no whole Parquet file: it is cut short, or its run has failed")?;
        let pairs = reader.metadata().file_metadata().key_value_metadata();
        let found = pairs.into_iter().flatten().find(|pair| pair.key == "dupflow.provenance");
        let json = found.and_then(|pair| pair.value.as_ref());
        let json = json.ok_or_else(|| anyhow!("it has no provenance: \"replay --provenance\" writes it"))?;
        let ProvenanceObject { provenance } =
            serde_json::from_str(json).context("its metadata are no provenance of this program")?;
        Ok(Self { provenance, output, cut: None })
    }

    /// A Parquet file, which this build cannot read.
    #[cfg(not(feature = "parquet"))]
    fn of_metadata(_: PathBuf) -> anyhow::Result<Self> {
        bail!("it is a Parquet file, and {}", missing_feature("Parquet", "parquet"))
    }
}

/// The provenance in a file that is one object.
fn object(path: &Path) -> anyhow::Result<Provenance> {
    ensure!(path.metadata()?.len() <= MOST_BYTES, "{path:?} is too large for a provenance");
    let ProvenanceObject { provenance } = serde_json::from_slice(&fs::read(path)?)?;
    Ok(provenance)
}

/// The last line of a file, without its end; empty if the file does not end with one.
fn last_line(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut tail = TAIL_BYTES;
    loop {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(size.saturating_sub(tail)))?;
        file.by_ref().take(tail).read_to_end(&mut bytes)?;
        let Some(bytes) = bytes.strip_suffix(b"\n") else { return Ok(Vec::new()) };
        if let Some(at) = bytes.iter().rposition(|byte| *byte == b'\n') {
            return Ok(bytes[at + 1..].to_vec());
        }
        if tail >= size || tail >= MOST_BYTES {
            return Ok(Vec::new());
        }
        tail *= 4;
    }
}
