//! Writes the findings of studies as files: a CSV for each table, an SVG for each plot, and one HTML page;
//! or a Markdown page of one study.
//!
//! The HTML page is self-contained: plots and style are inline.

use std::fs;
use std::path::Path;

use super::table::escaped;
use super::{EvaluateError, Findings};

const HEAD: &str = "<!doctype html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width\">
<title>dupflow evaluate</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 2em auto; padding: 0 1em; color: \
#222; }
table { border-collapse: collapse; display: block; overflow-x: auto; font-size: 13px; }
th, td { padding: 2px 10px; border-bottom: 1px solid #ddd; text-align: left; white-space: nowrap; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
svg { max-width: 100%; height: auto; }
h2 { margin-top: 2.5em; border-bottom: 2px solid #222; }
</style>
</head>
<body>
<h1>dupflow evaluate</h1>
";

/// Writes the tables of a study as the Markdown page `NAME.md` of `folder`, with the command that made it.
///
/// # Errors
/// If the file cannot be written.
pub fn write_page(folder: &Path, command: &str, study: &Findings) -> Result<(), EvaluateError> {
    let Findings { name, title, about, tables, .. } = study;
    let mut page = format!(
        "<!-- Made by the command below. -->\n# \
            {title}\n\n\
            ```sh\n{command}\n```\n\n{about}\n"
    );
    for table in tables {
        page += &table.markdown().replacen("### ", "\n## ", 1);
    }
    let path = folder.join(format!("{name}.md"));
    fs::write(&path, page).map_err(EvaluateError::file(&path))
}

/// Writes everything into `folder`, which is created if it is missing. Replaces files of the same names.
///
/// # Errors
/// If a file cannot be written or a plot cannot be drawn.
pub fn write(folder: &Path, command: &str, findings: &[Findings]) -> Result<(), EvaluateError> {
    fs::create_dir_all(folder).map_err(EvaluateError::file(folder))?;
    let put = |name: String, content: &str| {
        let path = folder.join(name);
        fs::write(&path, content).map_err(EvaluateError::file(&path))
    };
    let mut page = format!("{HEAD}<p><code>{}</code></p>\n", escaped(command));
    for study in findings {
        page += &format!("<h2>{}</h2>\n<p>{}</p>\n", escaped(&study.title), escaped(&study.about));
        for table in &study.tables {
            put(format!("{}.csv", table.name), &table.csv())?;
            page += &table.html();
        }
        for plot in &study.plots {
            let svg = plot.svg()?;
            put(format!("{}.svg", plot.name), &svg)?;
            page += &svg;
        }
    }
    put("index.html".to_owned(), &(page + "</body>\n</html>\n"))
}
