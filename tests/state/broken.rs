//! A store whose operations fail, stop, or are preceded by something.

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use dupflow::connectors::state::{Memory, Ownership, Store, Upload};

/// What happens at one operation.
pub(crate) enum Fault {
    /// It fails, and so does everything after it: the process is gone.
    Stop,
    /// It is done, and tells a failure; nothing is done after it.
    StopAfter,
    /// It fails, once.
    Fail,
    /// It is done, and tells a failure, once.
    FailAfter,
    /// Another does something before it.
    Before(Box<dyn FnOnce() + Send>),
}

/// Files in memory, with one fault at one operation; operations that change or list files count.
#[derive(Clone)]
pub(crate) struct Broken {
    inner: Memory,
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
    /// The operations of this store that count are numbered from 0.
    pub(crate) fn new(inner: Memory, fault_at: u64, fault: Fault) -> Self {
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
        // Of a process that is stopped no thread goes on.
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
