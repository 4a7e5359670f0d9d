//! A text that is never shown.

use std::fmt;
use std::path::Path;

/// A password, a token or a key. `Debug` shows `***`, and there is no `Display`: only [`Self::reveal`]
/// returns the text.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential(String);

impl Credential {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Reads a credential from a file, without the white space at its end.
    ///
    /// # Errors
    /// What is wrong with the file, without its contents.
    pub fn from_file(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("the file {path:?} cannot be read: {error}"))?;
        match text.trim_end() {
            "" => Err(format!("the file {path:?} is empty")),
            secret => Ok(Self::new(secret)),
        }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_hides_a_credential() {
        let secret = Credential::new("hunter2");
        assert_eq!(
            (format!("{secret:?}"), format!("{:?}", Some(&secret))),
            ("***".into(), "Some(***)".into())
        );
        assert_eq!(secret.reveal(), "hunter2");
    }

    #[test]
    fn credentials_are_read_from_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        std::fs::write(&path, " two words \r\n").unwrap();
        assert_eq!(Credential::from_file(&path).unwrap().reveal(), " two words");
        std::fs::write(&path, "\n").unwrap();
        assert!(Credential::from_file(&path).unwrap_err().ends_with("is empty"));
        assert!(
            Credential::from_file(Path::new("/nowhere/at/all"))
                .unwrap_err()
                .contains("\"/nowhere/at/all\" cannot be read")
        );
    }
}
