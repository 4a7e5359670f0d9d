//! What lines are written to: a stream, which forgets, or a [file with a mark](super::MarkedFile).

use std::io::{self, BufRead, BufWriter, Write};

use crate::mark::{Mark, Standing};

/// Where lines go. What is written between two commits is durable with the second one, or not at all, if
/// marks are kept.
pub trait Destination: Write {
    /// See [`Sink::take_over`](super::Sink::take_over).
    ///
    /// # Errors
    /// Those of the destination.
    fn take_over(&mut self) -> io::Result<Standing> {
        Ok(Standing::Forgets)
    }

    /// The durable lines.
    ///
    /// # Errors
    /// Those of the destination; that it cannot be read.
    fn lines(&mut self) -> io::Result<Box<dyn BufRead>> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "the output cannot be read back"))
    }

    /// See [`Sink::commit`](super::Sink::commit).
    ///
    /// # Errors
    /// Those of the destination.
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
