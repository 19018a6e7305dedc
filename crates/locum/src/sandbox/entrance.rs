//! The entrance of a command's network: a port in it that whoever started the command listens at.
//!
//! A launcher opens the port inside, where the command can reach it, and hands the open socket out. It travels over the
//! launcher's standard input, which is a socket itself.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};
use tokio::io::Interest;
use tokio::net::UnixStream;

use super::order::ENTRANCE_PORT;
use super::raw::{Standard, standard};

/// Opens the port in this network, and hands it out.
pub(super) fn hand_out() -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", ENTRANCE_PORT))?;
    let open = [listener.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = SendAncillaryBuffer::new(&mut space);
    if !message.push(SendAncillaryMessage::ScmRights(&open)) {
        return Err(io::Error::other("an open socket does not fit into a message"));
    }
    rustix::net::sendmsg(standard(Standard::Order), &[IoSlice::new(b"e")], &mut message, SendFlags::empty())?;
    Ok(())
}

/// Waits for the port that a launcher hands out; none if it ends without having opened one.
pub(super) async fn receive(launcher: &UnixStream) -> io::Result<Option<tokio::net::TcpListener>> {
    loop {
        launcher.readable().await?;
        match launcher.try_io(Interest::READABLE, || read(launcher)) {
            Ok(None) => return Ok(None),
            Ok(Some(open)) => {
                let listener = TcpListener::from(open);
                listener.set_nonblocking(true)?;
                return tokio::net::TcpListener::from_std(listener).map(Some);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

fn read(launcher: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut byte = [0; 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = RecvAncillaryBuffer::new(&mut space);
    rustix::net::recvmsg(launcher, &mut [IoSliceMut::new(&mut byte)], &mut message, RecvFlags::CMSG_CLOEXEC)?;
    let opened = message.drain().find_map(|part| match part {
        RecvAncillaryMessage::ScmRights(mut opened) => opened.next(),
        _ => None,
    });
    Ok(opened)
}
