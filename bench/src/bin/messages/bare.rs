//! A socket to a process that echoes its input: the least that an ask can cost.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command};

use crate::MESSAGE_BYTES;
use crate::node::{end, folder};

/// The other end of [`Bare`]: `messages echo SOCKET`.
pub(crate) fn echo() {
    let path = std::env::args().nth(2).expect("echo SOCKET");
    let mut stream = UnixStream::connect(path).expect("who started this listens");
    let mut bytes = vec![0; 64 * 1024];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return,
            Ok(read) => stream.write_all(&bytes[..read]).expect("it reads"),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => panic!("{error}"),
        }
    }
}

pub(crate) struct BareClient {
    child: Child,
    folder: PathBuf,
    stream: UnixStream,
    bytes: Vec<u8>,
}

impl BareClient {
    pub(crate) fn start() -> Self {
        let folder = folder("echo");
        let path = folder.join("socket");
        let listener = UnixListener::bind(&path).expect("the folder is writable");
        let program = std::env::current_exe().expect("it runs");
        let child = Command::new(program).arg("echo").arg(&path).spawn();
        let child = child.expect("we can be started again");
        let (stream, _) = listener.accept().expect("it connects");
        Self {
            child,
            folder,
            stream,
            bytes: Vec::new(),
        }
    }

    /// Sends this number of requests at once, and reads back as many bytes.
    pub(crate) fn give_back(&mut self, questions: u64) {
        let length = usize::try_from(questions).expect("a few") * MESSAGE_BYTES;
        self.bytes.clear();
        self.bytes.resize(length, 7);
        self.stream.write_all(&self.bytes).expect("it reads");
        self.bytes.fill(0);
        self.stream.read_exact(&mut self.bytes).expect("it writes");
        assert!(self.bytes.iter().all(|byte| *byte == 7));
    }
}

impl Drop for BareClient {
    fn drop(&mut self) {
        end(&mut self.child, &self.folder);
    }
}
