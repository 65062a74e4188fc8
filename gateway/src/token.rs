//! `askwell token`, and the secret of development mode (SPEC 8).

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::Rng as _;

/// The file of the data folder that holds the development secret.
const FILE: &str = "development-secret";

/// The secret of development mode: read from the data folder, or made there, readable by its
/// owner alone. It outlives restarts, so that the tokens of open pages do too.
///
/// # Errors
/// The folder or file cannot be made or read, or the file holds no secret.
pub fn development_secret(folder: &Path) -> io::Result<Vec<u8>> {
    fs::create_dir_all(folder)?;
    let path = folder.join(FILE);
    if let Some(secret) = read(&path)? {
        return Ok(secret);
    }
    let mut bytes = [0_u8; 32];
    rand::rng().fill_bytes(&mut bytes);
    let secret = URL_SAFE_NO_PAD.encode(bytes);
    // Written whole under another name and then linked: a second process (`askwell token`) never
    // reads half of it, and the first of two to come wins.
    let draft = folder.join(format!("{FILE}.{}", uuid::Uuid::new_v4().simple()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let mut file = options.open(&draft)?;
    file.write_all(secret.as_bytes())?;
    file.sync_all()?;
    let linked = fs::hard_link(&draft, &path);
    fs::remove_file(&draft)?;
    match linked {
        Ok(()) => Ok(secret.into_bytes()),
        Err(fault) if fault.kind() == io::ErrorKind::AlreadyExists => {
            read(&path)?.ok_or_else(|| io::ErrorKind::NotFound.into())
        }
        Err(fault) => Err(fault),
    }
}

fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut secret = Vec::new();
    match fs::File::open(path) {
        Ok(mut file) => file.read_to_end(&mut secret)?,
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(fault) => return Err(fault),
    };
    if secret.len() < 32 {
        let rule = format!("{} holds no secret; remove it", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidData, rule));
    }
    Ok(Some(secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_stays_the_same_and_is_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let secret = development_secret(&data).unwrap();
        assert_eq!(secret.len(), 43);
        assert_eq!(development_secret(&data).unwrap(), secret);
        let names: Vec<_> = fs::read_dir(&data).unwrap().collect();
        assert_eq!(names.len(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(data.join(FILE)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn two_folders_have_two_secrets() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        assert_ne!(
            development_secret(a.path()).unwrap(),
            development_secret(b.path()).unwrap()
        );
    }

    #[test]
    fn an_empty_file_is_no_secret() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE), "").unwrap();
        let fault = development_secret(folder.path()).unwrap_err();
        assert!(fault.to_string().contains("holds no secret"));
    }
}
