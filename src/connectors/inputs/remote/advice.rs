//! What to do about an error of a store.

use std::env;
use std::time::Duration;

/// Advice for an error message of a store's client.
pub(super) fn help(text: &str) -> Option<&'static str> {
    [
        (
            "URL scheme is not allowed",
            "its endpoint is plain http, which has to be allowed: set AWS_ALLOW_HTTP=true (AZURE_ALLOW_HTTP, \
             GOOGLE_ALLOW_HTTP)",
        ),
        (
            "contained empty path segment",
            "below it is a key with an empty name (\"//\"), which is not read: name objects or folders \
             beside it",
        ),
    ]
    .into_iter()
    .find_map(|(part, help)| text.contains(part).then_some(help))
}

/// Which credentials are missing in the environment to read a store with this URL scheme.
pub(super) fn without_credentials(scheme: &str) -> Option<String> {
    const NAMES: [&str; 13] = [
        "ACCESS_KEY",
        "SKIP_SIGNATURE",
        "WEB_IDENTITY",
        "CONTAINER_",
        "SERVICE_ACCOUNT",
        "APPLICATION_CREDENTIALS",
        "ACCOUNT_KEY",
        "SAS_",
        "TOKEN",
        "CLIENT_",
        "METADATA_ENDPOINT",
        "MSI_ENDPOINT",
        "AZURE_CLI",
    ];
    let (prefix, names, skip) = match scheme {
        "s3" | "s3a" => ("AWS", "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", "AWS_SKIP_SIGNATURE=true"),
        "gs" => ("GOOGLE", "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SKIP_SIGNATURE=true"),
        "az" | "adl" | "azure" | "abfs" | "abfss" => {
            ("AZURE", "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY", "AZURE_SKIP_SIGNATURE=true")
        }
        _ => return None,
    };
    let is_credential = |name: &str| name.starts_with(prefix) && NAMES.iter().any(|part| name.contains(part));
    let mut variables = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let home = || env::var_os("HOME").map(std::path::PathBuf::from);
    let is_logged_in = scheme == "gs"
        && home()
            .is_some_and(|home| home.join(".config/gcloud/application_default_credentials.json").exists());
    if variables.any(|name| is_credential(&name)) || is_logged_in {
        return None;
    }
    Some(format!("there are no credentials: set {names}, or {skip} for what everybody may read"))
}

/// Whether the metadata service that gives credentials to machines in clouds can be reached. Without it, a
/// store's client would retry the request for minutes.
pub(super) fn is_in_cloud() -> bool {
    let machine = std::net::SocketAddr::from(([169, 254, 169, 254], 80));
    std::net::TcpStream::connect_timeout(&machine, Duration::from_secs(1)).is_ok()
}
