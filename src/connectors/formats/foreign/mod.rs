//! Recognises unsupported formats before a run begins.
//!
//! The first bytes of an input -> why it is not read, and a command that converts it; `None` if it may be
//! readable. There are two kinds of signs. *Magic* is the first bytes of other containers. *Shape* is JSON
//! that is not one object per line, or text that is not UTF-8. Anything else is left to the reader of the
//! format. Magic of printable letters may also begin a text or a table header: it counts only if bytes follow
//! that no text has.

mod shapes;

use std::borrow::Cow;

use super::containers::{Help, container, is_text};
use super::format::FileKind;
use super::layout::{FileFormat, PACKED};
use super::storage::{Compression, window_above_bound};
use shapes::{Markup, json, markup, wide};

/// Why an input with this (decompressed) beginning cannot be read in `format`, with a command that helps.
/// `packed`: how it is compressed, in a supported way. `name`: the name of the input, `-` for standard input.
pub(crate) fn refused(
    beginning: &[u8],
    packed: Compression,
    name: &str,
    format: FileFormat,
) -> Option<String> {
    let input = FileInCommand::new(name, packed);
    let inner = inner_format(name, format);
    if let Some(found) = FileFormat::of_container(beginning) {
        // What is named as a text, and is one, may be about an archive.
        let is_read = found == format || format.is_document() && is_text(beginning);
        let why =
            || format!("it is {}, and is to be read as {}: leave --format out", found.file(), format.name());
        return found.missing().or_else(|| (!is_read).then(why));
    }
    match container(beginning, name) {
        Some((what, Help::Pipe(command))) => return Some(input.not_read(what, command, inner)),
        Some((what, Help::OfFile(command))) if packed == Compression::None => {
            return Some(input.not_read(what, command, inner));
        }
        Some((what, Help::Say(help))) if packed == Compression::None || !help.contains("FILE") => {
            return Some(input.say(what, help));
        }
        // `tar` decompresses by itself.
        Some((what, Help::Unpack(help))) => return Some(input.say(what, help)),
        Some((what, Help::OfFile(_) | Help::Say(_))) => return Some(input.say(what, input.unpack())),
        None => {}
    }
    if packed != Compression::None && Compression::detect(beginning) != Compression::None {
        let option = if inner.is_empty() { String::new() } else { format!(" --format {inner}") };
        return Some(format!("it is compressed twice: {} | dupflow replay{option} -", input.opened()));
    }
    if let Some(why) = format.doubt(beginning) {
        return Some(why);
    }
    if !matches!(format.kind(), FileKind::Text | FileKind::Table) {
        return None;
    }
    let is_usual = format == FileFormat::usual();
    if let Some(encoding) = wide(beginning) {
        let command = format!("iconv -f {encoding} -t UTF-8 FILE");
        let option = if is_usual { "" } else { format.name() };
        return Some(input.not_read(&format!("{encoding}, not UTF-8"), &command, option));
    }
    let text = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning).trim_ascii_start();
    match markup(text) {
        Some(Markup::Page) => Some(format!(
            "it is a web page, and is to be read as {}: where a download has failed, a page says so; \
             --format html reads it as a document",
            format.name()
        )),
        Some(Markup::Xml(element)) => Some(input.xml(&element)),
        None if is_usual => {
            let found = FileFormat::detect(text, "");
            let why = || {
                format!("it is {}, and is to be read as {}: leave --format out", found.file(), format.name())
            };
            if found == format {
                json(text).map(|(what, command)| input.not_read(what, command, ""))
            } else {
                Some(why())
            }
        }
        None => None,
    }
}

/// Why an input whose stored bytes begin like this is not decompressed: by the window of its zstd frame.
pub(crate) fn refused_window(head: &[u8], name: &str, format: FileFormat) -> Option<String> {
    let window = window_above_bound(head)?;
    let what = format!("compressed with zstd in a window of {window} bytes, more than 1073741824");
    let input = FileInCommand::new(name, Compression::None);
    Some(input.not_read(&what, "zstd -dc --long=31 FILE", inner_format(name, format)))
}

/// An input as commands name it.
struct FileInCommand<'n> {
    name: &'n str,
    /// Quoted for a shell.
    file: Cow<'n, str>,
    packed: Compression,
}

impl<'n> FileInCommand<'n> {
    /// Commands do not read standard input again, or a store.
    fn new(name: &'n str, packed: Compression) -> Self {
        let is_local = name != "-" && !name.contains("://");
        Self { name, file: if is_local { quoted(name) } else { "FILE".into() }, packed }
    }

    /// The command that decompresses it.
    fn opened(&self) -> String {
        let command = if self.packed == Compression::Zstd { "zstdcat" } else { "zcat" };
        format!("{command} {}", self.file)
    }

    /// The end of an advice.
    fn after(&self) -> &'static str {
        match self.name {
            "-" => "",
            name if name.contains("://") => ", where FILE is a copy of it on a disk",
            _ => ", or into a file, where the input is read twice",
        }
    }

    /// The message with a command that reads `FILE` and writes a supported format to standard output.
    fn not_read(&self, what: &str, command: &str, option: &str) -> String {
        let option = if option.is_empty() { String::new() } else { format!(" --format {option}") };
        let command = match self.packed {
            Compression::None => command.replace("FILE", &self.file),
            _ => format!("{} | {}", self.opened(), command.replace(" <FILE", "").replace(" FILE", "")),
        };
        format!("it is {what}, which is not read: {command} | dupflow replay{option} -{}", self.after())
    }

    /// The message with a sentence, in which `FILE` stands for the name.
    fn say(&self, what: &str, help: impl AsRef<str>) -> String {
        format!("it is {what}, which is not read: {}", help.as_ref().replace("FILE", &self.file))
    }

    /// How to decompress it, where the command that helps needs a file.
    fn unpack(&self) -> String {
        format!("decompress it, and name what you get: {} >decompressed", self.opened())
    }

    /// The message for XML, with a command that writes each of these elements as an object: its attributes,
    /// and the texts of the elements inside, the first one of each name.
    fn xml(&self, element: &str) -> String {
        let command = format!("python3 -c '{}' {element} <FILE", shapes::ELEMENTS);
        let message = self.not_read("XML", &command, "");
        let fields = "dupflow replay --id-field ID --text-field TEXT -";
        format!(
            "{}, where ID and TEXT are an attribute or an element in it",
            message.replace("dupflow replay -", fields)
        )
    }
}

/// The format inside a compressed file of this name, as the value of `--format`; empty if it is detected
/// without the option.
fn inner_format(name: &str, format: FileFormat) -> &'static str {
    let lower = name.to_ascii_lowercase();
    let bare = PACKED.iter().find_map(|end| lower.strip_suffix(end)).unwrap_or(&lower);
    let inner = FileFormat::of_name(bare).unwrap_or(format);
    let is_detected = inner == FileFormat::usual() || inner.kind() == FileKind::Container;
    if is_detected { "" } else { inner.name() }
}

/// The name, quoted for a shell.
pub(crate) fn quoted(name: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'/' | b'-');
    match name.strip_prefix('-') {
        // A command would take it for an option.
        Some(_) => quoted(&format!("./{name}")).into_owned().into(),
        None if name.bytes().all(is_plain) => name.into(),
        None => format!("'{}'", name.replace('\'', "'\\''")).into(),
    }
}

#[cfg(test)]
mod tests;
