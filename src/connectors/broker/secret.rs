//! A text that is never shown.

use std::fmt;
use std::path::Path;

/// A password, a token, a key. Its `Debug` shows `***`, and it has no `Display`: whoever needs it asks for it
/// by name.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The secret that a file holds: all of it but white space at its end.
///
/// # Errors
/// What is wrong with the file, in words; nothing of what it holds.
pub fn from_file(path: &Path) -> Result<Secret, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("the file {path:?} cannot be read: {error}"))?;
    match text.trim_end() {
        "" => Err(format!("the file {path:?} is empty")),
        secret => Ok(Secret::new(secret)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown() {
        let secret = Secret::new("hunter2");
        assert_eq!(
            (format!("{secret:?}"), format!("{:?}", Some(&secret))),
            ("***".into(), "Some(***)".into())
        );
        assert_eq!(secret.reveal(), "hunter2");
    }

    #[test]
    fn files_hold_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        std::fs::write(&path, " two words \r\n").unwrap();
        assert_eq!(from_file(&path).unwrap().reveal(), " two words");
        std::fs::write(&path, "\n").unwrap();
        assert!(from_file(&path).unwrap_err().ends_with("is empty"));
        assert!(
            from_file(Path::new("/nowhere/at/all"))
                .unwrap_err()
                .contains("\"/nowhere/at/all\" cannot be read")
        );
    }
}
