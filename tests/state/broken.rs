//! A store whose operations fail or stop, or are preceded by another action.

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use dupflow::connectors::state::{MemoryStore, Ownership, Store, Upload};

/// The fault at one operation.
pub(crate) enum Fault {
    /// It fails, and so does every later operation, as if the process had ended.
    Stop,
    /// It is executed and reports a failure; every later operation fails.
    StopAfter,
    /// It fails, once.
    Fail,
    /// It is executed and reports a failure, once.
    FailAfter,
    /// Another action is executed before it.
    Before(Box<dyn FnOnce() + Send>),
}

/// Files in memory with a fault at one operation. Operations that change or list files are counted.
#[derive(Clone)]
pub(crate) struct Broken {
    inner: MemoryStore,
    /// Operations so far.
    count: Arc<AtomicU64>,
    fault_at: u64,
    fault: Arc<Mutex<Option<Fault>>>,
    is_stopped: Arc<Mutex<bool>>,
}

impl fmt::Debug for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broken").field("fault_at", &self.fault_at).finish_non_exhaustive()
    }
}

impl Broken {
    /// Counted operations are numbered from 0.
    pub(crate) fn new(inner: MemoryStore, fault_at: u64, fault: Fault) -> Self {
        let fault = Arc::new(Mutex::new(Some(fault)));
        Self { inner, count: Arc::default(), fault_at, fault, is_stopped: Arc::default() }
    }

    /// Operations so far.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    fn error() -> io::Error {
        io::Error::other("as the test wants it")
    }

    fn run<T>(&self, operation: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let number = self.count.fetch_add(1, Ordering::SeqCst);
        // No thread of a stopped process continues.
        let mut is_stopped = self.is_stopped.lock().unwrap();
        if *is_stopped {
            return Err(Self::error());
        }
        let fault = if number == self.fault_at { self.fault.lock().unwrap().take() } else { None };
        match fault {
            None => operation(),
            Some(Fault::Before(other)) => {
                other();
                operation()
            }
            Some(fault) => {
                *is_stopped = matches!(fault, Fault::Stop | Fault::StopAfter);
                if matches!(fault, Fault::StopAfter | Fault::FailAfter) {
                    operation()?;
                }
                Err(Self::error())
            }
        }
    }
}

impl Store for Broken {
    fn place(&self) -> &str {
        self.inner.place()
    }

    fn create<'s>(&'s self, name: &str) -> io::Result<Box<dyn Upload + 's>> {
        let inner = self.run(|| self.inner.create(name))?;
        Ok(Box::new(BrokenUpload { store: self, inner }))
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        self.run(|| self.inner.put_if_absent(name, bytes))
    }

    fn get_range(&self, name: &str, range: Range<u64>) -> io::Result<Vec<u8>> {
        self.inner.get_range(name, range)
    }

    fn size(&self, name: &str) -> io::Result<u64> {
        self.inner.size(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.run(|| self.inner.list())
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        self.run(|| self.inner.delete(name))
    }

    fn own(&self) -> io::Result<Ownership> {
        self.inner.own()
    }
}

struct BrokenUpload<'s> {
    store: &'s Broken,
    inner: Box<dyn Upload + 's>,
}

impl Upload for BrokenUpload<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.inner.write(bytes)
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        let Self { store, inner } = *self;
        store.run(|| inner.finish())
    }
}
