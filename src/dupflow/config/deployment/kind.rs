//! Kinds of sources and of places: which of a register is meant.

use crate::config::settings::{FileSettings, ProblemKind, without_effect};

/// An entry of a register.
pub(super) struct Kind<R> {
    /// The name in settings.
    pub(super) name: &'static str,
    /// The keys that some kinds have and others have not.
    pub(super) keys: &'static [&'static [&'static str]],
    /// Why this build has no such kind; `None` if it has.
    pub(super) missing: fn() -> Option<String>,
    /// How it is read.
    pub(super) read: R,
}

impl<R> Kind<R> {
    /// The kind that `key` chooses, the first one by default. Reports one that this build lacks, and keys
    /// that only others have.
    pub(super) fn chosen(
        settings: &mut FileSettings,
        key: &'static str,
        all: &'static [Self],
    ) -> &'static Self {
        let names: Vec<_> = all.iter().enumerate().map(|(at, kind)| (kind.name, at)).collect();
        let at = settings.choose(key, &names, &[]).unwrap_or(0);
        let kind = &all[at];
        if let Some(what) = (kind.missing)() {
            settings.problem(key, ProblemKind::Contradiction(what));
        }
        if at > 0 || settings.sound(&[key]) {
            let own = kind.keys.concat();
            let mut others: Vec<_> = all.iter().flat_map(|other| other.keys.concat()).collect();
            others.retain(|other| !own.contains(other));
            others.sort_unstable();
            others.dedup();
            without_effect(settings, key, kind.name, &others);
        }
        kind
    }
}
