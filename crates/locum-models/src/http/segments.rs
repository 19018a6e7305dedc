//! A request body made of pieces that are already encoded. Its size is known, so requests carry Content-Length, and
//! its pieces are handed to the socket as they are.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// A body in pieces.
#[derive(Debug)]
pub(crate) struct Segments {
    pieces: std::vec::IntoIter<Bytes>,
    left: u64,
}

impl Segments {
    /// A body of these pieces, one after the other.
    pub(crate) fn new(pieces: Vec<Bytes>) -> Self {
        let left = pieces.iter().map(|piece| piece.len() as u64).sum();
        Self { pieces: pieces.into_iter(), left }
    }

    /// A body of what was encoded before and what comes after it.
    pub(crate) fn following(encoded: &[Bytes], tail: Bytes) -> Self {
        let mut pieces = Vec::with_capacity(encoded.len() + 1);
        pieces.extend_from_slice(encoded);
        pieces.push(tail);
        Self::new(pieces)
    }

    /// The bytes that are still to be sent.
    pub(crate) fn len(&self) -> u64 {
        self.left
    }
}

impl Body for Segments {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(piece) = self.pieces.next() else { return Poll::Ready(None) };
        self.left = self.left.saturating_sub(piece.len() as u64);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
