//! Many datagrams in one call to the system, where it has such calls (recvmmsg, sendmmsg).

use std::io;
use std::net::SocketAddr;

use tokio::net::UdpSocket;

use super::Batch;

/// The most datagrams of one call. Each has room for the longest datagram, and a batch may be too
/// long by what one call brings.
const CALL: usize = 16;

/// Room for the datagrams of one call.
#[derive(Debug)]
pub(crate) struct Inbox {
    /// Octets of each datagram, of which only those are touched that come.
    octets: Vec<u8>,
    each: usize,
}

impl Inbox {
    /// Room for datagrams of `limit` octets, and for the octet that shows that one is too long.
    pub(crate) fn new(limit: usize) -> Self {
        let each = limit + 1;
        Self {
            octets: vec![0; each * CALL],
            each,
        }
    }

    /// Room for one datagram.
    #[cfg(any(test, not(target_os = "linux")))]
    pub(super) fn one(&mut self) -> &mut [u8] {
        &mut self.octets[..self.each]
    }

    /// Takes what is there into `batch`, as far as one call does.
    ///
    /// # Errors
    /// Those of the system; `WouldBlock` when nothing more is there, though something may have
    /// been taken.
    #[cfg(target_os = "linux")]
    pub(super) fn take(&mut self, socket: &UdpSocket, batch: &mut Batch) -> io::Result<()> {
        use std::io::IoSliceMut;
        use std::os::fd::AsRawFd;

        use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg};

        let mut rooms: Vec<_> = self.octets.chunks_mut(self.each).collect();
        let mut rooms: Vec<_> = rooms
            .iter_mut()
            .map(|room| [IoSliceMut::new(room)])
            .collect();
        let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(CALL, None);
        let flags = MsgFlags::MSG_DONTWAIT;
        let received = recvmmsg(socket.as_raw_fd(), &mut headers, &mut rooms, flags, None)?;
        let mut count = 0;
        for message in received {
            count += 1;
            let octets = message.iovs().next().unwrap_or_default();
            if let Some(peer) = message.address.as_ref().and_then(address) {
                batch.push(peer, octets);
            }
        }
        match count {
            CALL => Ok(()),
            _ => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Takes one datagram; the system has no call for more.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn take(&mut self, socket: &UdpSocket, batch: &mut Batch) -> io::Result<()> {
        let (length, peer) = socket.try_recv_from(self.one())?;
        batch.push(peer, &self.octets[..length]);
        Ok(())
    }
}

/// Where a datagram is from.
#[cfg(target_os = "linux")]
fn address(from: &nix::sys::socket::SockaddrStorage) -> Option<SocketAddr> {
    let v4 = from
        .as_sockaddr_in()
        .map(|from| SocketAddr::V4((*from).into()));
    v4.or_else(|| {
        from.as_sockaddr_in6()
            .map(|from| SocketAddr::V6((*from).into()))
    })
}

/// Gives datagrams to the system, as many as it takes in one call; says how many it took.
///
/// # Errors
/// What the system says of the first.
#[cfg(target_os = "linux")]
pub(super) fn give(socket: &UdpSocket, datagrams: &[(SocketAddr, &[u8])]) -> io::Result<usize> {
    use std::io::IoSlice;
    use std::os::fd::AsRawFd;

    use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, sendmmsg};

    if let [(peer, octets)] = datagrams {
        return socket.try_send_to(octets, *peer).map(|_| 1);
    }
    let datagrams = &datagrams[..datagrams.len().min(super::BATCH)];
    let octets: Vec<_> = datagrams
        .iter()
        .map(|(_, octets)| [IoSlice::new(octets)])
        .collect();
    let peers: Vec<_> = datagrams
        .iter()
        .map(|(peer, _)| Some(SockaddrStorage::from(*peer)))
        .collect();
    socket.try_io(tokio::io::Interest::WRITABLE, || {
        let mut headers = MultiHeaders::preallocate(datagrams.len(), None);
        let flags = MsgFlags::MSG_DONTWAIT;
        let sent = sendmmsg(socket.as_raw_fd(), &mut headers, &octets, &peers, [], flags)?;
        Ok(sent.count())
    })
}

/// Gives the first datagram to the system, which has no call for more.
#[cfg(not(target_os = "linux"))]
pub(super) fn give(socket: &UdpSocket, datagrams: &[(SocketAddr, &[u8])]) -> io::Result<usize> {
    let Some((peer, octets)) = datagrams.first() else {
        return Ok(0);
    };
    socket.try_send_to(octets, *peer).map(|_| 1)
}
