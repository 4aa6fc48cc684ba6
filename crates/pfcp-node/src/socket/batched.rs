//! Several datagrams per system call, on systems with such calls (`recvmmsg`, `sendmmsg`).

use std::io;
use std::net::SocketAddr;

use tokio::net::UdpSocket;

use super::Batch;

/// The maximum number of datagrams per call. Each one has a buffer of the maximum size, and a batch
/// may exceed its limits by the datagrams of one call.
const DATAGRAMS_PER_CALL: usize = 16;

/// The receive buffers of one call.
#[derive(Debug)]
pub(crate) struct ReceiveBuffers {
    /// The buffers; pages of a buffer are touched only when a datagram fills them.
    bytes: Vec<u8>,
    each: usize,
}

impl ReceiveBuffers {
    /// Creates buffers for datagrams of `limit` bytes, plus one byte to detect datagrams that are
    /// too long.
    pub(crate) fn new(limit: usize) -> Self {
        let each = limit + 1;
        Self {
            bytes: vec![0; each * DATAGRAMS_PER_CALL],
            each,
        }
    }

    /// Returns the buffer of one datagram.
    #[cfg(any(test, not(target_os = "linux")))]
    pub(super) fn first_buffer(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.each]
    }

    /// Appends the available datagrams to `batch`, as many as one call receives.
    ///
    /// # Errors
    /// Returns the error of the system; `WouldBlock` if no more datagrams are available, in which
    /// case some may have been received.
    #[cfg(target_os = "linux")]
    pub(super) fn take(&mut self, socket: &UdpSocket, batch: &mut Batch) -> io::Result<()> {
        use std::io::IoSliceMut;
        use std::os::fd::AsRawFd;

        use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg};

        let mut rooms: Vec<_> = self.bytes.chunks_mut(self.each).collect();
        let mut rooms: Vec<_> = rooms
            .iter_mut()
            .map(|room| [IoSliceMut::new(room)])
            .collect();
        let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(DATAGRAMS_PER_CALL, None);
        let flags = MsgFlags::MSG_DONTWAIT;
        let received = recvmmsg(socket.as_raw_fd(), &mut headers, &mut rooms, flags, None)?;
        let mut count = 0;
        for message in received {
            count += 1;
            let bytes = message.iovs().next().unwrap_or_default();
            if let Some(peer) = message.address.as_ref().and_then(address) {
                batch.push(peer, bytes);
            }
        }
        match count {
            DATAGRAMS_PER_CALL => Ok(()),
            _ => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Receives one datagram, since the system has no call for more.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn take(&mut self, socket: &UdpSocket, batch: &mut Batch) -> io::Result<()> {
        let (length, peer) = socket.try_recv_from(self.first_buffer())?;
        batch.push(peer, &self.bytes[..length]);
        Ok(())
    }
}

/// Returns the source address of a datagram.
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

/// Passes datagrams to the system, as many as it accepts in one call. Returns the number that it
/// accepted.
///
/// # Errors
/// Returns the error of the system about the first datagram.
#[cfg(target_os = "linux")]
pub(super) fn send_batch(
    socket: &UdpSocket,
    datagrams: &[(SocketAddr, &[u8])],
) -> io::Result<usize> {
    use std::io::IoSlice;
    use std::os::fd::AsRawFd;

    use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, sendmmsg};

    if let [(peer, bytes)] = datagrams {
        return socket.try_send_to(bytes, *peer).map(|_| 1);
    }
    let datagrams = &datagrams[..datagrams.len().min(super::MAX_BATCH)];
    let bytes: Vec<_> = datagrams
        .iter()
        .map(|(_, bytes)| [IoSlice::new(bytes)])
        .collect();
    let peers: Vec<_> = datagrams
        .iter()
        .map(|(peer, _)| Some(SockaddrStorage::from(*peer)))
        .collect();
    socket.try_io(tokio::io::Interest::WRITABLE, || {
        let mut headers = MultiHeaders::preallocate(datagrams.len(), None);
        let flags = MsgFlags::MSG_DONTWAIT;
        let sent = sendmmsg(socket.as_raw_fd(), &mut headers, &bytes, &peers, [], flags)?;
        Ok(sent.count())
    })
}

/// Passes the first datagram to the system, which has no call for more.
#[cfg(not(target_os = "linux"))]
pub(super) fn send_batch(
    socket: &UdpSocket,
    datagrams: &[(SocketAddr, &[u8])],
) -> io::Result<usize> {
    let Some((peer, bytes)) = datagrams.first() else {
        return Ok(0);
    };
    socket.try_send_to(bytes, *peer).map(|_| 1)
}
