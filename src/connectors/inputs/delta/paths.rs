//! Where the files of a table are.

use std::path::{Path, PathBuf};

use url::Url;

use super::super::folder::decoded;

/// The path of a file, which the log has as a URI.
pub(super) fn path_of(folder: &Path, uri: &str) -> Result<PathBuf, String> {
    // A name may have a colon.
    if uri.contains("://") || uri.starts_with("file:") {
        let url = Url::parse(uri).ok().filter(|url| url.scheme() == "file");
        return url
            .and_then(|url| url.to_file_path().ok())
            .ok_or_else(|| format!("its file \"{uri}\" is not on this disk"));
    }
    let path = String::from_utf8(decoded(uri)).map_err(|_| format!("the name of \"{uri}\" is no text"))?;
    Ok(folder.join(path))
}
