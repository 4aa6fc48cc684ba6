//! Recordings of the system calls with which a program changes files, as `strace` prints them.
//!
//! A call has two places in the order of lines: the one where it begins and the one where it ends.
//! They differ only if calls of other threads are between them. From its begin on, a write may be
//! on the disk; only a sync that begins after its end makes sure that it is.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

/// A file or a folder, by its place in [`Recording::inodes`]. The root of the recording is 0.
pub(super) type InodeId = usize;

/// The changes that a program made to the files below a folder.
#[derive(Debug, Default)]
pub(super) struct Recording {
    pub(super) inodes: Vec<Inode>,
    /// The changes, in the order of their ends.
    pub(super) changes: Vec<FileChange>,
    pub(super) syncs: Vec<FileSync>,
    /// The writes to standard output, by their begin.
    pub(super) outputs: Vec<(usize, String)>,
}

/// The state of a file or a folder when the recording began, which is durable.
#[derive(Debug, Clone, Default)]
pub(super) struct Inode {
    /// The entries, if it is a folder.
    pub(super) entries: Option<BTreeMap<String, InodeId>>,
    /// A copy of the file, if there was one.
    pub(super) copy: Option<PathBuf>,
}

#[derive(Debug)]
pub(super) struct FileChange {
    pub(super) begin: usize,
    pub(super) end: usize,
    pub(super) effect: Effect,
}

#[derive(Debug)]
pub(super) struct FileSync {
    pub(super) begin: usize,
    pub(super) end: usize,
    pub(super) inode: InodeId,
}

/// The name of an entry, and the folder that has it.
pub(super) type EntryName = (InodeId, String);

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Write {
        file: InodeId,
        offset: u64,
        bytes: Vec<u8>,
    },
    Resize {
        file: InodeId,
        length: u64,
    },
    Link {
        entry: EntryName,
        inode: InodeId,
    },
    Unlink {
        entry: EntryName,
    },
    Rename {
        from: EntryName,
        to: EntryName,
        inode: InodeId,
    },
}

/// The calls to record. Those that the parser does not know are an error if they concern a recorded
/// file.
pub(super) const CALLS: &str = "openat,open,creat,close,close_range,dup,dup2,dup3,fcntl,write,\
    pwrite64,writev,pwritev,pwritev2,fsync,fdatasync,sync,syncfs,sync_file_range,rename,renameat,\
    renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,link,linkat,symlink,symlinkat,truncate,\
    ftruncate,fallocate,lseek,mmap,copy_file_range,sendfile,splice,io_uring_setup";

/// Reads the output of `strace -f -xx` for a program that changed files below `root`, of which
/// `copies` is a copy made before.
pub(super) fn read(trace: &str, root: &Path, copies: &Path) -> Result<Recording, String> {
    let mut parser = Parser {
        root: root.to_owned(),
        recording: Recording::default(),
        names: Vec::new(),
        lengths: Vec::new(),
        descriptors: HashMap::new(),
        files: Vec::new(),
    };
    parser.add_tree(copies)?;
    let mut unfinished: HashMap<&str, (usize, String)> = HashMap::new();
    for (at, line) in trace.lines().enumerate() {
        let (thread, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim_start();
        let failed = |error: String| {
            let shown: String = line.chars().take(200).collect();
            format!("line {} of the trace: {error}: {shown}", at + 1)
        };
        if let Some(begun) = rest.strip_suffix("<unfinished ...>") {
            unfinished.insert(thread, (at, begun.trim_end().to_owned()));
        } else if let Some(resumed) = rest.strip_prefix("<... ") {
            let (_, rest) = resumed.split_once("resumed>").unwrap_or_default();
            if let Some((begin, begun)) = unfinished.remove(thread) {
                parser
                    .add(begin, at, &format!("{begun}{rest}"))
                    .map_err(failed)?;
            }
        } else if !rest.starts_with(['+', '-']) {
            parser.add(at, at, rest).map_err(failed)?;
        }
    }
    Ok(parser.recording)
}

/// The state of the program while its trace is read.
struct Parser {
    root: PathBuf,
    recording: Recording,
    /// The entries of each folder; `None` for a file.
    names: Vec<Option<BTreeMap<String, InodeId>>>,
    lengths: Vec<u64>,
    /// The open files by their descriptors.
    descriptors: HashMap<i64, usize>,
    files: Vec<OpenFile>,
}

/// An open file, which duplicated descriptors share.
#[derive(Debug, Clone, Copy)]
struct OpenFile {
    inode: InodeId,
    position: u64,
    appends: bool,
}

impl Parser {
    /// Adds a file or a folder as it is in a copy.
    fn add_tree(&mut self, path: &Path) -> Result<InodeId, String> {
        let failed = |error| format!("{}: {error}", path.display());
        if !path.is_dir() {
            let length = fs::metadata(path).map_err(failed)?.len();
            let copy = Some(path.to_owned());
            let inode = self.add_inode(Inode {
                entries: None,
                copy,
            });
            self.lengths[inode] = length;
            return Ok(inode);
        }
        let inode = self.add_inode(Inode {
            entries: Some(BTreeMap::new()),
            copy: None,
        });
        let mut entries = BTreeMap::new();
        for entry in fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            entries.insert(name, self.add_tree(&entry.path())?);
        }
        self.recording.inodes[inode].entries = Some(entries.clone());
        self.names[inode] = Some(entries);
        Ok(inode)
    }

    fn add_inode(&mut self, inode: Inode) -> InodeId {
        self.names.push(inode.entries.clone());
        self.lengths.push(0);
        self.recording.inodes.push(inode);
        self.names.len() - 1
    }

    /// Adds a call, such as `fsync(5) = 0`.
    fn add(&mut self, begin: usize, end: usize, call: &str) -> Result<(), String> {
        let (call, result) = call.rsplit_once(" = ").ok_or("no result")?;
        let (name, args) = call.split_once('(').ok_or("no arguments")?;
        let args = args.trim_end().strip_suffix(')').ok_or("no end")?;
        let result = result.split(' ').next().unwrap_or_default();
        let result = match result.strip_prefix("0x") {
            Some(hexadecimal) => i64::from_str_radix(hexadecimal, 16).unwrap_or_default(),
            None => result.parse().unwrap_or(-1),
        };
        if result < 0 {
            return Ok(());
        }
        let args = split_arguments(args);
        let effects = self.effects(begin, end, name, &args, result)?;
        for effect in effects {
            self.apply(&effect);
            let change = FileChange { begin, end, effect };
            self.recording.changes.push(change);
        }
        Ok(())
    }

    fn effects(
        &mut self,
        begin: usize,
        end: usize,
        name: &str,
        args: &[&str],
        result: i64,
    ) -> Result<Vec<Effect>, String> {
        let at = |index: usize| args.get(index).copied().unwrap_or_default();
        let count = result.unsigned_abs();
        Ok(match name {
            "open" => return self.open("AT_FDCWD", at(0), at(1), result),
            "openat" => return self.open(at(0), at(1), at(2), result),
            "creat" => return self.open("AT_FDCWD", at(0), "O_CREAT|O_TRUNC", result),
            "close" => {
                self.descriptors.remove(&number(at(0))?);
                Vec::new()
            }
            "dup" | "dup2" | "dup3" => self.duplicate(at(0), result)?,
            "fcntl" if at(1).starts_with("F_DUPFD") => self.duplicate(at(0), result)?,
            "fsync" | "fdatasync" => {
                if let Some(inode) = self.file(at(0))?.map(|file| file.inode) {
                    let sync = FileSync { begin, end, inode };
                    self.recording.syncs.push(sync);
                }
                Vec::new()
            }
            "write" if at(0) == "1" => {
                let bytes = bytes(at(1))?;
                let text = String::from_utf8_lossy(&bytes).into_owned();
                self.recording.outputs.push((begin, text));
                Vec::new()
            }
            "write" => self.write(at(0), bytes(at(1))?, None, count)?,
            "pwrite64" => self.write(at(0), bytes(at(1))?, Some(at(3)), count)?,
            "writev" => self.write(at(0), vector(at(1))?, None, count)?,
            "pwritev" | "pwritev2" => self.write(at(0), vector(at(1))?, Some(at(3)), count)?,
            "lseek" => {
                if let Some(file) = self.file(at(0))? {
                    file.position = count;
                }
                Vec::new()
            }
            "ftruncate" => self.resize(at(0), unsigned(at(1))?)?,
            "fallocate" if at(1) == "0" => {
                let length = unsigned(at(2))? + unsigned(at(3))?;
                self.extend(at(0), length)?
            }
            "mkdir" => self.make_folder("AT_FDCWD", at(0))?,
            "mkdirat" => self.make_folder(at(0), at(1))?,
            "rename" => self.rename(["AT_FDCWD", at(0)], ["AT_FDCWD", at(1)])?,
            "renameat" | "renameat2" => self.rename([at(0), at(1)], [at(2), at(3)])?,
            "link" => self.link(["AT_FDCWD", at(0)], ["AT_FDCWD", at(1)])?,
            "linkat" => self.link([at(0), at(1)], [at(2), at(3)])?,
            "unlink" | "rmdir" => self.unlink("AT_FDCWD", at(0))?,
            "unlinkat" => self.unlink(at(0), at(1))?,
            "mmap" if at(2).contains("PROT_WRITE") && at(3).contains("MAP_SHARED") => {
                self.refuse_if_recorded(at(4))?
            }
            // Flags and locks, writes that are started and not waited for, memory to read.
            "fcntl" | "sync_file_range" | "mmap" => Vec::new(),
            "copy_file_range" | "splice" => self.refuse_if_recorded(at(2))?,
            "truncate" | "symlink" | "symlinkat" => {
                let text = args.concat();
                let root = encode(&self.root.display().to_string());
                match text.contains(&root) {
                    true => return Err("the call is not supported".to_owned()),
                    false => Vec::new(),
                }
            }
            "io_uring_setup" | "sync" | "syncfs" | "close_range" => {
                return Err("the call is not supported".to_owned());
            }
            _ => self.refuse_if_recorded(at(0))?,
        })
    }

    /// Returns the open file of a descriptor, if it is recorded.
    fn file(&mut self, descriptor: &str) -> Result<Option<&mut OpenFile>, String> {
        let Some(&file) = self.descriptors.get(&number(descriptor)?) else {
            return Ok(None);
        };
        Ok(self.files.get_mut(file))
    }

    fn refuse_if_recorded(&mut self, descriptor: &str) -> Result<Vec<Effect>, String> {
        match self.file(descriptor)? {
            None => Ok(Vec::new()),
            Some(_) => Err("the call is not supported".to_owned()),
        }
    }

    fn duplicate(&mut self, from: &str, to: i64) -> Result<Vec<Effect>, String> {
        match self.descriptors.get(&number(from)?).copied() {
            Some(file) => self.descriptors.insert(to, file),
            None => self.descriptors.remove(&to),
        };
        Ok(Vec::new())
    }

    /// Returns the folder and the name of a path, if it is below the root.
    fn entry(&mut self, folder: &str, path: &str) -> Result<Option<EntryName>, String> {
        let path = String::from_utf8(bytes(path)?).map_err(|error| error.to_string())?;
        let path = PathBuf::from(path);
        let (mut folder, below) = match path.strip_prefix(&self.root) {
            Ok(below) => (0, below),
            Err(_) if path.is_absolute() || folder == "AT_FDCWD" => return Ok(None),
            Err(_) => match self.file(folder)? {
                Some(file) => (file.inode, &*path),
                None => return Ok(None),
            },
        };
        let mut parts: Vec<String> = below
            .iter()
            .map(|part| part.to_string_lossy().into_owned())
            .collect();
        let Some(last) = parts.pop() else {
            return Ok(Some((folder, String::new())));
        };
        for part in parts {
            folder = self.inode(&(folder, part)).ok_or("an unknown folder")?;
        }
        Ok(Some((folder, last)))
    }

    fn inode(&self, (folder, name): &EntryName) -> Option<InodeId> {
        match name.is_empty() {
            true => Some(*folder),
            false => self.names[*folder].as_ref()?.get(name).copied(),
        }
    }

    fn open(
        &mut self,
        folder: &str,
        path: &str,
        flags: &str,
        descriptor: i64,
    ) -> Result<Vec<Effect>, String> {
        self.descriptors.remove(&descriptor);
        let Some(entry) = self.entry(folder, path)? else {
            return Ok(Vec::new());
        };
        if flags.contains("O_TMPFILE") {
            return Err("files without a name are not supported".to_owned());
        }
        let mut effects = Vec::new();
        let inode = match self.inode(&entry) {
            Some(inode) => {
                if flags.contains("O_TRUNC") && self.lengths[inode] > 0 {
                    let file = inode;
                    effects.push(Effect::Resize { file, length: 0 });
                }
                inode
            }
            None => {
                let inode = self.add_inode(Inode::default());
                effects.push(Effect::Link { entry, inode });
                inode
            }
        };
        self.descriptors.insert(descriptor, self.files.len());
        self.files.push(OpenFile {
            inode,
            position: 0,
            appends: flags.contains("O_APPEND"),
        });
        Ok(effects)
    }

    fn write(
        &mut self,
        descriptor: &str,
        mut bytes: Vec<u8>,
        offset: Option<&str>,
        written: u64,
    ) -> Result<Vec<Effect>, String> {
        let offset = offset.map(unsigned).transpose()?;
        let Some(file) = self.file(descriptor)?.copied() else {
            return Ok(Vec::new());
        };
        let written = usize::try_from(written).unwrap_or(usize::MAX);
        if bytes.len() < written {
            return Err("the trace does not have all bytes".to_owned());
        }
        bytes.truncate(written);
        let start = match offset {
            Some(offset) => offset,
            None if file.appends => self.lengths[file.inode],
            None => file.position,
        };
        if offset.is_none()
            && let Some(open) = self.file(descriptor)?
        {
            open.position = start + bytes.len() as u64;
        }
        Ok(vec![Effect::Write {
            file: file.inode,
            offset: start,
            bytes,
        }])
    }

    fn resize(&mut self, descriptor: &str, length: u64) -> Result<Vec<Effect>, String> {
        let inode = self.file(descriptor)?.map(|file| file.inode);
        Ok(Vec::from_iter(
            inode.map(|file| Effect::Resize { file, length }),
        ))
    }

    fn extend(&mut self, descriptor: &str, length: u64) -> Result<Vec<Effect>, String> {
        match self.file(descriptor)?.map(|file| file.inode) {
            Some(inode) if self.lengths[inode] < length => self.resize(descriptor, length),
            _ => Ok(Vec::new()),
        }
    }

    fn make_folder(&mut self, folder: &str, path: &str) -> Result<Vec<Effect>, String> {
        let Some(entry) = self.entry(folder, path)? else {
            return Ok(Vec::new());
        };
        let inode = self.add_inode(Inode {
            entries: Some(BTreeMap::new()),
            copy: None,
        });
        Ok(vec![Effect::Link { entry, inode }])
    }

    fn rename(&mut self, from: [&str; 2], to: [&str; 2]) -> Result<Vec<Effect>, String> {
        let (from, to) = (self.entry(from[0], from[1])?, self.entry(to[0], to[1])?);
        let (from, to) = match (from, to) {
            (None, None) => return Ok(Vec::new()),
            (Some(from), Some(to)) => (from, to),
            _ => return Err("a file leaves or enters the root".to_owned()),
        };
        let inode = self.inode(&from).ok_or("an unknown file")?;
        Ok(vec![Effect::Rename { from, to, inode }])
    }

    fn link(&mut self, from: [&str; 2], to: [&str; 2]) -> Result<Vec<Effect>, String> {
        let (from, to) = (self.entry(from[0], from[1])?, self.entry(to[0], to[1])?);
        let (Some(from), Some(entry)) = (from, to) else {
            return Ok(Vec::new());
        };
        let inode = self.inode(&from).ok_or("an unknown file")?;
        Ok(vec![Effect::Link { entry, inode }])
    }

    fn unlink(&mut self, folder: &str, path: &str) -> Result<Vec<Effect>, String> {
        let entry = self.entry(folder, path)?;
        Ok(Vec::from_iter(entry.map(|entry| Effect::Unlink { entry })))
    }

    fn apply(&mut self, effect: &Effect) {
        let mut set = |(folder, name): &EntryName, inode: Option<InodeId>| {
            let entries = self.names[*folder].get_or_insert_default();
            match inode {
                Some(inode) => entries.insert(name.clone(), inode),
                None => entries.remove(name),
            };
        };
        match effect {
            Effect::Write {
                file,
                offset,
                bytes,
            } => {
                let length = &mut self.lengths[*file];
                *length = (*length).max(offset + bytes.len() as u64);
            }
            Effect::Resize { file, length } => self.lengths[*file] = *length,
            Effect::Link { entry, inode } => set(entry, Some(*inode)),
            Effect::Unlink { entry } => set(entry, None),
            Effect::Rename { from, to, inode } => {
                set(from, None);
                set(to, Some(*inode));
            }
        }
    }
}

/// Splits arguments at the commas that are not within brackets. Strings are in hexadecimal, so they
/// have none.
fn split_arguments(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' | b'{' | b'(' => depth += 1,
            b']' | b'}' | b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

fn number(text: &str) -> Result<i64, String> {
    let parsed = text.parse();
    parsed.map_err(|_| format!("{text:?} is not a number"))
}

fn unsigned(text: &str) -> Result<u64, String> {
    let parsed = text.parse();
    parsed.map_err(|_| format!("{text:?} is not a number"))
}

/// Returns the bytes of a string such as `"\x2f\x61"`.
fn bytes(text: &str) -> Result<Vec<u8>, String> {
    let inner = text.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    let inner = inner.ok_or("a string that is not complete")?;
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let chunks = inner.as_bytes().chunks(4).map(|chunk| match chunk {
        [b'\\', b'x', high, low] => {
            let value = digit(*high)? << 4 | digit(*low)?;
            u8::try_from(value).ok()
        }
        _ => None,
    });
    let bytes: Option<Vec<u8>> = chunks.collect();
    bytes.ok_or_else(|| "a string that is not in hexadecimal".to_owned())
}

/// Returns a string as `strace -xx` prints it, without quotes.
fn encode(text: &str) -> String {
    text.bytes().map(|byte| format!("\\x{byte:02x}")).collect()
}

/// Returns the bytes of `[{iov_base="\x2f", iov_len=1}, ...]`.
fn vector(text: &str) -> Result<Vec<u8>, String> {
    let mut all = Vec::new();
    for part in text.split("iov_base=").skip(1) {
        let string = part.split(',').next().unwrap_or_default();
        all.extend(bytes(string)?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_threads_are_put_together() {
        let file = encode("/folder/a");
        let other = encode("/elsewhere/a");
        let (ab, c) = (encode("ab"), encode("c"));
        let trace = format!(
            "7 openat(AT_FDCWD, \"{file}\", O_WRONLY|O_CREAT|O_EXCL, 0666) = 3\n\
             7 openat(AT_FDCWD, \"{other}\", O_RDONLY) = 4\n\
             7 write(3, \"{ab}\", 2 <unfinished ...>\n\
             8 write(1, \"{c}\", 1)               = 1\n\
             8 rename(\"{file}\", \"{file}\") = -1 ENOENT (No such file or directory)\n\
             7 <... write resumed>)              = 2\n\
             7 writev(3, [{{iov_base=\"{c}\", iov_len=1}}, \
             {{iov_base=\"{ab}\", iov_len=2}}], 2) = 3\n\
             7 fsync(3)                          = 0\n\
             7 write(4, \"{ab}\", 2)             = 2\n\
             7 +++ exited with 0 +++\n"
        );
        let folder = std::env::temp_dir().join(format!("xtask-trace-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder of our own");
        let read = read(&trace, Path::new("/folder"), &folder).expect("a trace");
        fs::remove_dir(&folder).expect("it is empty");
        assert_eq!(read.outputs, [(3, "c".to_owned())]);
        let writes: Vec<_> = read.changes[1..]
            .iter()
            .map(|change| (change.begin, change.end, &change.effect))
            .collect();
        let write = |offset, bytes: &[u8]| Effect::Write {
            file: 1,
            offset,
            bytes: bytes.to_vec(),
        };
        assert_eq!(
            writes,
            [(2, 5, &write(0, b"ab")), (6, 6, &write(2, b"cab"))]
        );
        assert_eq!(read.syncs.len(), 1);
    }

    #[test]
    fn incomplete_strings_are_refused() {
        assert!(bytes("\"\\x61\"...").is_err());
        assert!(bytes("\"a\"").is_err());
        assert_eq!(bytes("\"\""), Ok(Vec::new()));
    }
}
