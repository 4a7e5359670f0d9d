//! Keys of a file, as messages and documentation tell of them.

/// A key that a file may have.
pub(super) trait Described: Sync {
    /// The dotted name, as in `sketch.size`; `text.fields.*` stands for all keys of that table, whatever
    /// their names, `kafka.settings.**` for those in tables below it too.
    fn name(&self) -> &'static str;

    /// What may stand there, with its range: completes "expected …".
    fn expected(&self) -> String;

    /// The ends of the range, or the choices, that its documentation names.
    fn bounds(&self) -> Vec<String> {
        Vec::new()
    }

    /// The table in which this key has any name.
    fn table(&self) -> Option<&'static str> {
        self.name().strip_suffix(".*").or_else(|| self.name().strip_suffix(".**"))
    }

    /// Whether its name may have points in it, so that `a.b` and a table `a` with `b` are the same.
    fn is_deep(&self) -> bool {
        self.name().ends_with(".**")
    }

    /// The dotted name, where any name may follow that of the table alone.
    fn named(&self) -> &'static str {
        self.table().unwrap_or(self.name())
    }

    /// Whether a setting of this name is this key's.
    fn has(&self, name: &str) -> bool {
        self.table().map_or(name == self.name(), |table| within(name, table).is_some())
    }
}

/// A key whose value is read by hand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    /// See [`Described::name`].
    pub(super) name: &'static str,
    /// See [`Described::expected`].
    pub(super) expected: &'static str,
}

impl Described for Key {
    fn name(&self) -> &'static str {
        self.name
    }

    fn expected(&self) -> String {
        self.expected.to_owned()
    }
}

impl Described for &dyn Described {
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

/// The name of a key in its table.
pub(super) fn within<'n>(name: &'n str, table: &str) -> Option<&'n str> {
    name.strip_prefix(table)?.strip_prefix('.')
}
