//! What messages and the documentation tests need to know of the keys of a file.

/// A key that a file may have.
pub(in crate::config) trait ConfigKey: Sync {
    /// The dotted name, as in `sketch.size`. `text.fields.*` stands for all keys of that table,
    /// `kafka.settings.**` also for those in nested tables, `view.#.name` for that of each `[[view]]`.
    fn name(&self) -> &'static str;

    /// The accepted values with their range; completes "expected …".
    fn expected(&self) -> String;

    /// The ends of the range, or the choices: each must be named in the documentation of the key.
    fn bounds(&self) -> Vec<String> {
        Vec::new()
    }

    /// The table in which this key may have any name; `None` for a key with one name.
    fn table(&self) -> Option<&'static str> {
        self.name().strip_suffix(".*").or_else(|| self.name().strip_suffix(".**"))
    }

    /// Whether the name may contain dots, so that `a.b` is the same as a table `a` with a key `b`.
    fn is_deep(&self) -> bool {
        self.name().ends_with(".**")
    }

    /// The dotted name without `.*` or `.**`.
    fn named(&self) -> &'static str {
        self.table().unwrap_or(self.name())
    }

    /// Whether `name` is a setting of this key.
    fn has(&self, name: &str) -> bool {
        self.table().map_or_else(|| is_numbered(name, self.name()), |table| within(name, table).is_some())
    }
}

/// A key whose value the code reads by hand, with a fixed text for what is expected.
#[derive(Clone, Copy, Debug)]
pub(in crate::config) struct DeploymentKey {
    /// See [`ConfigKey::name`].
    pub(in crate::config) name: &'static str,
    /// See [`ConfigKey::expected`].
    pub(in crate::config) expected: &'static str,
}

impl ConfigKey for DeploymentKey {
    fn name(&self) -> &'static str {
        self.name
    }

    fn expected(&self) -> String {
        self.expected.to_owned()
    }
}

impl ConfigKey for &dyn ConfigKey {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn expected(&self) -> String {
        (**self).expected()
    }

    fn bounds(&self) -> Vec<String> {
        (**self).bounds()
    }
}

/// Whether `name` is `key`, with a number for each `#` of it.
pub(super) fn is_numbered(name: &str, key: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let mut parts = name.split('.');
    let fits = key
        .split('.')
        .all(|of_key| parts.next().is_some_and(|part| part == of_key || (of_key == "#" && is_number(part))));
    fits && parts.next().is_none()
}

/// The part of `name` after `table` and a dot; `None` if `name` is not in that table.
pub(in crate::config) fn within<'n>(name: &'n str, table: &str) -> Option<&'n str> {
    name.strip_prefix(table)?.strip_prefix('.')
}
