//! Destinations of bytes: a stream, which keeps no mark, or a [file with a mark](super::MarkedFile).

use std::io::{self, BufRead, BufWriter, Write};

use crate::mark::{Mark, Standing};

/// A destination of bytes. If it keeps marks, the bytes written between two commits become durable with the
/// second one, or not at all.
pub trait Destination: Write {
    /// See [`Sink::take_over`](super::Sink::take_over).
    ///
    /// # Errors
    /// Any error of the destination.
    fn take_over(&mut self) -> io::Result<Standing> {
        Ok(Standing::Forgets)
    }

    /// The durable lines.
    ///
    /// # Errors
    /// Any error of the destination; [`io::ErrorKind::Unsupported`] if it cannot be read.
    fn lines(&mut self) -> io::Result<Box<dyn BufRead>> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "the output cannot be read back"))
    }

    /// See [`Sink::commit`](super::Sink::commit).
    ///
    /// # Errors
    /// Any error of the destination.
    fn commit(&mut self, _: &Mark) -> io::Result<()> {
        self.flush()
    }
}

impl<W: Write> Destination for BufWriter<W> {}
impl Destination for &mut Vec<u8> {}
impl Destination for &mut [u8] {}

impl<D: Destination + ?Sized> Destination for Box<D> {
    fn take_over(&mut self) -> io::Result<Standing> {
        (**self).take_over()
    }

    fn lines(&mut self) -> io::Result<Box<dyn BufRead>> {
        (**self).lines()
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        (**self).commit(mark)
    }
}
