//! The socket in the data folder, whose path may be longer than a socket's address.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use tokio::net::UnixListener;

use super::SOCKET;

/// A longer path is reached by way of its folder; an address has 108 bytes.
const PATH_LEN_MAX: usize = 100;

/// Connects to the host that has this data folder.
pub(super) fn connect(data: &Path) -> io::Result<UnixStream> {
    let (address, _open) = address(data)?;
    UnixStream::connect(address)
}

/// Binds the socket where nobody else may go, so that it never is there with more rights than it is to have.
pub(super) fn bind(data: &Path) -> io::Result<UnixListener> {
    let private = data.join(format!(".control-{}", std::process::id()));
    match fs::remove_dir_all(&private) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => DirBuilder::new().mode(0o700).create(&private)?,
    }
    let listening = bind_in(&private).and_then(|listener| {
        let bound = private.join(SOCKET);
        fs::set_permissions(&bound, Permissions::from_mode(0o600))?;
        fs::rename(&bound, data.join(SOCKET))?;
        Ok(listener)
    });
    fs::remove_dir_all(&private)?;
    listening
}

fn bind_in(folder: &Path) -> io::Result<UnixListener> {
    let (address, _open) = address(folder)?;
    UnixListener::bind(address)
}

/// The socket's path, or another one to the same place that is good as long as the folder stays open.
fn address(folder: &Path) -> io::Result<(PathBuf, Option<File>)> {
    let path = folder.join(SOCKET);
    if path.as_os_str().len() <= PATH_LEN_MAX {
        return Ok((path, None));
    }
    let open = File::open(folder)?;
    Ok((PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd())).join(SOCKET), Some(open)))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_folder_may_have_any_path() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["short".to_owned(), "long".repeat(50)] {
            let data = folder.path().join(name);
            fs::create_dir(&data).unwrap();
            // Twice: what an earlier process left is replaced.
            for _ in 0..2 {
                let listener = bind(&data).unwrap();
                let connected = connect(&data).unwrap();
                listener.accept().await.unwrap();
                drop(connected);
            }
            assert_eq!(fs::read_dir(&data).unwrap().count(), 1);
        }
    }

    #[tokio::test]
    async fn what_cannot_be_replaced_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(SOCKET)).unwrap();
        assert!(bind(folder.path()).is_err() && connect(folder.path()).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left over");
    }
}
