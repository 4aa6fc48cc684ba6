//! Replacement of a file by a temporary one that takes over its metadata.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt as _};
use rustix::fs::{
    Access, AtFlags, Gid, OFlags, Uid, XattrFlags, accessat, fchown, fgetxattr, flistxattr,
    fsetxattr,
};
use rustix::io::Errno;

use super::temp_file::temp_name;
use super::write::SyncToDisk;

/// The reason why a file was not replaced.
pub(super) enum NotReplaced {
    /// Its owner, its attributes or its directory do not allow a replacement. Writing it in place
    /// may work.
    InPlaceOnly,
    Failed(io::Error),
}

impl From<io::Error> for NotReplaced {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Checks that this process may write a file.
pub(super) fn check_writable(dir: &Dir, name: &Path) -> io::Result<()> {
    match accessat(dir, name, Access::WRITE_OK, AtFlags::EACCESS) {
        // The kernel decides when the file is written.
        Err(Errno::NOSYS | Errno::INVAL) => Ok(()),
        checked => checked.map_err(io::Error::from),
    }
}

/// A temporary file that will replace another.
pub(super) struct TempFile<'a> {
    pub(super) dir: &'a Dir,
    pub(super) name: PathBuf,
    pub(super) file: File,
}

impl<'a> TempFile<'a> {
    /// Creates an empty temporary file. If it will replace a file, only its owner may read it until
    /// it takes over the mode of that file.
    pub(super) fn create(dir: &'a Dir, is_there: bool) -> io::Result<Self> {
        let name = PathBuf::from(temp_name());
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        options.mode(if is_there { 0o600 } else { 0o666 });
        let file = dir.open_with(&name, &options)?.into_std();
        Ok(Self { dir, name, file })
    }

    /// Opens an existing temporary file, but no link.
    pub(super) fn open(dir: &'a Dir, name: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
        let options = options.read(true).write(true);
        let file = dir.open_with(name, options.custom_flags(flags.bits().cast_signed()))?;
        Ok(Self {
            dir,
            name: name.to_owned(),
            file: file.into_std(),
        })
    }

    /// Renames the file to `name`. The file that is replaced, if there is one, passes on its mode,
    /// its owner and group and its extended attributes.
    pub(super) fn persist(
        &self,
        (dir, name): (&Dir, &Path),
        old: Option<&Original>,
        sync: SyncToDisk,
    ) -> Result<(), NotReplaced> {
        if let Some(old) = old {
            old.pass_on(&self.file)?;
        }
        if sync == SyncToDisk::Yes {
            self.file.sync_all()?;
        }
        let renamed = self.dir.rename(&self.name, dir, name);
        renamed.map_err(|error| in_place_only(error, old.is_some()))?;
        if sync == SyncToDisk::Yes {
            // Sync the directory too, so that the new name is on the disk.
            dir.open(".")?.sync_all()?;
        }
        Ok(())
    }
}

/// Writes a temporary file in the same directory and renames it to `name`.
pub(super) fn replace_file(
    dir: &Dir,
    name: &Path,
    bytes: &[u8],
    is_there: bool,
    sync: SyncToDisk,
) -> Result<(), NotReplaced> {
    let old = Original::open(dir, name, is_there)?;
    let mut temp =
        TempFile::create(dir, is_there).map_err(|error| in_place_only(error, is_there))?;
    let filled = temp.file.write_all(bytes).map_err(NotReplaced::from);
    let written = filled.and_then(|()| temp.persist((dir, name), old.as_ref(), sync));
    if written.is_err() {
        let _ = dir.remove_file(&temp.name);
    }
    written
}

/// An error of a replacement. In a directory that cannot be written, and for a file that is a mount
/// point, an existing file may still be written in place.
pub(super) fn in_place_only(error: io::Error, is_there: bool) -> NotReplaced {
    let kinds = [
        io::ErrorKind::PermissionDenied,
        io::ErrorKind::ReadOnlyFilesystem,
        io::ErrorKind::ResourceBusy,
        io::ErrorKind::CrossesDevices,
    ];
    match is_there && kinds.contains(&error.kind()) {
        true => NotReplaced::InPlaceOnly,
        false => NotReplaced::Failed(error),
    }
}

/// The metadata of the file that is replaced.
pub(super) struct Original {
    metadata: fs::Metadata,
    attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Original {
    /// Reads the metadata of the file that is replaced, if there is one.
    pub(super) fn open(
        dir: &Dir,
        name: &Path,
        is_there: bool,
    ) -> Result<Option<Self>, NotReplaced> {
        if !is_there {
            return Ok(None);
        }
        let mut options = OpenOptions::new();
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
        options.read(true).custom_flags(flags.bits().cast_signed());
        // Without its attributes, it is better kept.
        let file = dir.open_with(name, &options);
        let file = file.map_err(|error| in_place_only(error, true))?.into_std();
        Ok(Some(Self {
            metadata: file.metadata()?,
            attributes: attributes(&file)?,
        }))
    }

    fn is_alone(&self) -> bool {
        self.metadata.nlink() == 1
    }

    /// Passes owner, mode and attributes on.
    fn pass_on(&self, to: &File) -> Result<(), NotReplaced> {
        let is_refused = |error: Errno| match error {
            Errno::PERM | Errno::ACCESS | Errno::NOTSUP => NotReplaced::InPlaceOnly,
            error => NotReplaced::Failed(error.into()),
        };
        let now = to.metadata()?;
        let owner = (self.metadata.uid(), self.metadata.gid());
        if owner != (now.uid(), now.gid()) {
            let (uid, gid) = (Uid::from_raw(owner.0), Gid::from_raw(owner.1));
            fchown(to, Some(uid), Some(gid)).map_err(is_refused)?;
        }
        for (name, value) in &self.attributes {
            fsetxattr(to, name.as_slice(), value, XattrFlags::empty()).map_err(is_refused)?;
        }
        // A change of owner clears these bits, so they come last. A file with other links may
        // belong to somebody else: its privileges are not for the new content.
        let bits = if self.is_alone() { 0o7777 } else { 0o777 };
        let mode = self.metadata.mode() & bits;
        to.set_permissions(fs::Permissions::from_mode(mode))?;
        Ok(())
    }
}

/// Maximum bytes of the names of all attributes, and of the value of one (`XATTR_SIZE_MAX`).
const MAX_ATTRIBUTE: usize = 65_536;

/// Reads the extended attributes of a file.
fn attributes(file: &File) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    // Most files have none.
    let mut names = vec![0; 256];
    let mut length = flistxattr(file, names.as_mut_slice());
    if length == Err(Errno::RANGE) {
        names.resize(MAX_ATTRIBUTE, 0);
        length = flistxattr(file, names.as_mut_slice());
    }
    names.truncate(match length {
        Err(Errno::NOTSUP) => 0,
        length => length?,
    });
    let mut all = Vec::new();
    for name in names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
    {
        let mut value = vec![0; MAX_ATTRIBUTE];
        let length = fgetxattr(file, name, value.as_mut_slice())?;
        value.truncate(length);
        all.push((name.to_vec(), value));
    }
    Ok(all)
}
