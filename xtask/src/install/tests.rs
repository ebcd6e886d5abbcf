//! Installations from hand-made wheels: whole ones, interrupted ones, damaged ones.

use super::*;
use crate::pins::NOTHING;
use crate::wheel::fixtures::{FILES, pin, record, write_wheel};
use tempfile::TempDir;

/// A folder to install into and, in another one, the wheel that a fetch copies.
struct Scene {
    temp: TempDir,
    wheel: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let wheel = write_wheel(temp.path(), FILES, &record(FILES));
        Self { temp, wheel }
    }

    fn root(&self) -> PathBuf {
        self.temp.path().join("libtorch")
    }

    /// Installs for the CPU, and tells how often a wheel was fetched.
    fn install(&self) -> Result<usize, Error> {
        let mut sha256 = String::new();
        self.install_pinned(pin(&self.wheel, &mut sha256))
    }

    fn install_pinned(&self, wheel: Wheel<'_>) -> Result<usize, Error> {
        let mut fetches = 0;
        let lock = Lock::acquire(&self.root()).unwrap();
        download(&lock, &[wheel], Parts::Cpu, |_, folder| {
            fetches += 1;
            self.bring(folder)
        })?;
        Ok(fetches)
    }

    /// What a fetch does.
    fn bring(&self, folder: &Path) -> Result<PathBuf, Error> {
        let arrived = folder.join("tiny.whl");
        fs::copy(&self.wheel, &arrived).unwrap();
        Ok(arrived)
    }

    fn problem(&self) -> Option<String> {
        match Manifest::read(&self.root()) {
            Some(manifest) => manifest.problem(&self.root(), Parts::Cpu),
            None => Some("no manifest".into()),
        }
    }

    /// The names in the folder, in order.
    fn names(&self) -> Vec<String> {
        let mut names = entries(&self.root()).unwrap();
        names.sort();
        names
    }
}

const COMPLETE: [&str; 4] = [".lock", "manifest.json", "tiny-1.0.dist-info", "torch"];

#[test]
fn a_fresh_installation_is_complete_and_leaves_nothing_else() {
    let scene = Scene::new();
    assert_eq!(scene.install().unwrap(), 1);
    assert_eq!(scene.problem(), None);
    assert_eq!(scene.names(), COMPLETE);
    assert_eq!(fs::read_to_string(scene.root().join("torch/build-version")).unwrap(), "2.11.0\n");
}

#[test]
fn wheels_by_themselves_are_unpacked_and_known_by_their_versions() {
    let scene = Scene::new();
    let mut sha256 = String::new();
    let wheel = pin(&scene.wheel, &mut sha256);
    let lock = Lock::acquire(&scene.root()).unwrap();
    let manifest = unpack(&lock, &[wheel], |_, folder| scene.bring(folder)).unwrap();
    assert_eq!(scene.problem(), None);
    assert!(!scene.root().join("torch/build-version").exists());
    assert!(manifest.holds(&[wheel]) && !manifest.holds(&[wheel, Wheel { version: "1.1", ..wheel }]));
}

#[test]
fn a_changed_size_and_a_missing_file_are_noticed_and_repaired() {
    let scene = Scene::new();
    scene.install().unwrap();
    let library = scene.root().join("torch/lib/libtorch_cpu.so");
    fs::write(&library, "short").unwrap();
    assert_eq!(scene.problem().unwrap(), "torch/lib/libtorch_cpu.so has 5 bytes and not 11");
    fs::remove_file(&library).unwrap();
    assert_eq!(scene.problem().unwrap(), "torch/lib/libtorch_cpu.so is missing");
    scene.install().unwrap();
    assert_eq!(scene.problem(), None);
}

#[test]
fn files_of_an_older_installation_do_not_survive_but_the_users_do() {
    let scene = Scene::new();
    fs::create_dir_all(scene.root().join("torch/lib")).unwrap();
    fs::create_dir_all(scene.root().join("nvidia")).unwrap();
    fs::write(scene.root().join("torch/lib/libold.so"), "old").unwrap();
    fs::write(scene.root().join("notes.txt"), "mine").unwrap();
    scene.install().unwrap();
    assert!(!scene.root().join("torch/lib/libold.so").exists());
    assert!(!scene.root().join("nvidia").exists());
    assert!(scene.root().join("notes.txt").exists());
}

#[test]
fn what_an_interrupted_run_left_is_cleared_and_its_whole_wheel_is_used() {
    let scene = Scene::new();
    let mut sha256 = String::new();
    let wheel = pin(&scene.wheel, &mut sha256);
    let (partial, downloads) = (scene.root().join(".partial-1"), scene.root().join(DOWNLOADS));
    fs::create_dir_all(partial.join("tree/torch/lib")).unwrap();
    fs::create_dir_all(scene.root().join("torch")).unwrap();
    fs::create_dir_all(&downloads).unwrap();
    fs::copy(&scene.wheel, downloads.join(wheel.file_name())).unwrap();
    assert_eq!(scene.problem().unwrap(), "no manifest");
    assert_eq!(scene.install().unwrap(), 0);
    assert_eq!(scene.problem(), None);
    assert_eq!(scene.names(), COMPLETE);
}

#[test]
fn a_truncated_wheel_in_the_downloads_is_fetched_again() {
    let scene = Scene::new();
    let mut sha256 = String::new();
    let wheel = pin(&scene.wheel, &mut sha256);
    let downloads = scene.root().join(DOWNLOADS);
    fs::create_dir_all(&downloads).unwrap();
    for content in [vec![0; 10], vec![0; wheel.bytes as usize]] {
        fs::create_dir_all(&downloads).unwrap();
        fs::write(downloads.join(wheel.file_name()), content).unwrap();
        assert_eq!(scene.install().unwrap(), 1);
        assert_eq!(scene.problem(), None);
    }
}

#[test]
fn a_wheel_with_another_hash_is_neither_installed_nor_kept() {
    let scene = Scene::new();
    scene.install().unwrap();
    let mut sha256 = String::new();
    let wheel = Wheel { sha256: "0123", ..pin(&scene.wheel, &mut sha256) };
    let error = scene.install_pinned(wheel).unwrap_err();
    assert!(matches!(error, Error::WrongWheel { .. }), "{error}");
    assert!(!scene.root().join(DOWNLOADS).exists());
    assert_eq!(scene.problem(), None, "the earlier installation is untouched");
    assert!(!scene.names().iter().any(|name| name.starts_with(STAGING_PREFIX)));
}

#[test]
fn a_failed_fetch_leaves_the_earlier_installation_alone() {
    let scene = Scene::new();
    scene.install().unwrap();
    let mut sha256 = String::new();
    let wheel = pin(&scene.wheel, &mut sha256);
    let lock = Lock::acquire(&scene.root()).unwrap();
    let result = download(&lock, &[wheel], Parts::Cpu, |_, _| Err(Error::UnsupportedPlatform));
    assert!(result.is_err());
    assert_eq!(scene.problem(), None);
}

#[test]
fn a_damaged_wheel_is_not_kept_for_the_next_attempt() {
    let scene = Scene::new();
    write_wheel(scene.temp.path(), FILES, &record(&FILES[1..]));
    let error = scene.install().unwrap_err();
    assert!(matches!(error, Error::DamagedWheel { .. }), "{error}");
    assert!(!scene.root().join(DOWNLOADS).exists());
    assert!(!scene.root().join("torch").exists());
}

#[test]
fn tidying_removes_what_was_left_after_the_manifest() {
    let scene = Scene::new();
    scene.install().unwrap();
    fs::create_dir_all(scene.root().join(".partial-1/old/torch")).unwrap();
    fs::create_dir_all(scene.root().join(DOWNLOADS)).unwrap();
    tidy(&scene.root()).unwrap();
    assert_eq!(scene.names(), COMPLETE);
    assert_eq!(scene.problem(), None);
}

#[test]
fn a_folder_with_foreign_content_is_not_usable() {
    let temp = tempfile::tempdir().unwrap();
    assert!(is_usable(&temp.path().join("new")).unwrap());
    assert!(is_usable(temp.path()).unwrap());
    fs::write(temp.path().join("thesis.tex"), "precious").unwrap();
    assert!(!is_usable(temp.path()).unwrap());
    fs::write(temp.path().join(LOCK), "").unwrap();
    assert!(is_usable(temp.path()).unwrap());
}

#[cfg(unix)]
#[test]
fn a_link_replaces_an_installation_and_is_replaced_without_harm_to_its_target() {
    let scene = Scene::new();
    scene.install().unwrap();
    let target = scene.temp.path().join("site-packages/torch");
    fs::create_dir_all(target.join("lib")).unwrap();
    fs::create_dir_all(target.join("include/torch")).unwrap();
    fs::write(target.join("lib/libtorch_cpu.so"), "theirs").unwrap();
    fs::write(target.join("version.py"), "__version__ = '2.11.0'").unwrap();
    let mut sha256 = String::new();
    let wheels = [Wheel { cpu: NOTHING, ..pin(&scene.wheel, &mut sha256) }];
    let nothing_to_fetch = |_: &Wheel<'_>, _: &Path| Err(Error::UnsupportedPlatform);
    link(&Lock::acquire(&scene.root()).unwrap(), &target, &wheels, Parts::Cpu, nothing_to_fetch).unwrap();
    assert_eq!(scene.problem(), None);
    assert_eq!(scene.names(), [".lock", "manifest.json", "torch"]);
    link(&Lock::acquire(&scene.root()).unwrap(), &target, &wheels, Parts::Cuda, |_, folder| {
        scene.bring(folder)
    })
    .unwrap();
    assert_eq!(scene.problem(), None);
    assert_eq!(scene.names(), [".lock", "manifest.json", "nvidia", "tiny-1.0.dist-info", "torch"]);
    fs::remove_file(scene.root().join("nvidia/lib/libcuda_part.so")).unwrap();
    assert_eq!(scene.problem().unwrap(), "nvidia/lib/libcuda_part.so is missing");
    scene.install().unwrap();
    assert_eq!(scene.problem(), None);
    assert_eq!(fs::read_to_string(target.join("lib/libtorch_cpu.so")).unwrap(), "theirs");
    assert!(!target.join("build-version").exists());
}
