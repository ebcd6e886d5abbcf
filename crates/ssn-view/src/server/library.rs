//! The cases that a server has, and the packages that were made of them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use hyper::body::Bytes;
use serde_json::{Value, json};
use ssn_io::Result;
use tokio::sync::{Mutex as Turn, oneshot};

use super::guard::secret;
use crate::scores::{CaseHeadline, columns};

/// Bytes of packages that are kept for the next time.
const KEPT_BYTES: u64 = 1 << 30;

/// A case in the list.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// The size `[d, h, w]` of its image.
    pub size: [usize; 3],
    /// The scores by which it is listed, if it was evaluated.
    pub scores: Option<CaseHeadline>,
    /// About as many bytes as its package will take, at most.
    pub bytes: u64,
}

/// How the package of the case with a number is made; what goes wrong is said in a sentence.
type Make = dyn Fn(usize) -> Result<Vec<u8>, String> + Send + Sync;

/// Cases, and how their packages are made.
pub struct Library {
    /// What the cases are together, such as the name of their folder.
    pub title: String,
    /// The cases, in the order in which they are shown.
    pub cases: Vec<Listed>,
    /// How the package of the case with a number is made.
    pub make: Box<Make>,
}

/// A library behind ids that tell nothing. Packages are made one after the other, so that there is never more than one on
/// its way.
pub(super) struct Shelf {
    library: Library,
    ids: Vec<String>,
    /// Numbers of cases and their packages, the latest last.
    made: Mutex<VecDeque<(usize, Bytes)>>,
    /// Held while a package is made.
    turn: Arc<Turn<()>>,
}

impl Shelf {
    pub(super) fn new(library: Library) -> Result<Self> {
        let ids = library.cases.iter().map(|_| secret()).collect::<Result<_>>()?;
        Ok(Self { library, ids, made: Mutex::default(), turn: Arc::default() })
    }

    /// The list as the page gets it.
    pub(super) fn list(&self) -> String {
        let entry = |(id, case): (&String, &Listed)| {
            let Listed { name, size, scores, .. } = case;
            json!({ "id": id, "name": name, "size": size, "scores": scores })
        };
        let Library { title, cases, .. } = &self.library;
        let cases: Vec<Value> = self.ids.iter().zip(cases).map(entry).collect();
        json!({ "version": 1, "title": title, "columns": columns(), "cases": cases }).to_string()
    }

    /// The number of the case with an id.
    pub(super) fn find(&self, id: &str) -> Option<usize> {
        self.ids.iter().position(|known| known == id)
    }

    /// The package of a case, or why there is none; made now, unless it was before. Nothing where the program has a defect, or
    /// the system gives no thread. Who goes before it is their turn gets nothing made.
    pub(super) async fn package(self: &Arc<Self>, number: usize) -> Option<Result<Bytes, String>> {
        if let Some(bytes) = self.kept(number) {
            return Some(Ok(bytes));
        }
        let (shelf, turn) = (self.clone(), self.turn.clone().lock_owned().await);
        let (reply, made) = oneshot::channel();
        // It ends with the package, or with the program in the middle of one that nobody wants any more.
        let make = move || {
            let _turn = turn;
            let _ = reply.send(shelf.make(number));
        };
        thread::Builder::new().name("packages".to_owned()).spawn(make).ok()?;
        made.await.ok()
    }

    /// A package that was made before.
    fn kept(&self, number: usize) -> Option<Bytes> {
        let mut made = self.made();
        let place = made.iter().position(|(known, _)| *known == number)?;
        let found = made.remove(place)?;
        let bytes = found.1.clone();
        made.push_back(found);
        Some(bytes)
    }

    /// The package of a case, made now unless somebody had it made meanwhile. May take seconds.
    fn make(&self, number: usize) -> Result<Bytes, String> {
        if let Some(bytes) = self.kept(number) {
            return Ok(bytes);
        }
        self.make_room(self.library.cases[number].bytes);
        let bytes = Bytes::from((self.library.make)(number)?);
        self.made().push_back((number, bytes.clone()));
        Ok(bytes)
    }

    /// Forgets packages before a new one is made, so that old and new ones are not in memory at once.
    fn make_room(&self, expected: u64) {
        let mut made = self.made();
        let kept =
            |made: &VecDeque<(usize, Bytes)>| made.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>();
        while !made.is_empty() && kept(&made) + expected > KEPT_BYTES {
            made.pop_front();
        }
    }

    /// Every change under the lock is complete in itself.
    fn made(&self) -> MutexGuard<'_, VecDeque<(usize, Bytes)>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn who_goes_before_it_is_their_turn_gets_nothing_made() {
        let made = Arc::new(AtomicUsize::new(0));
        let counter = made.clone();
        let case = Listed { name: String::new(), size: [1; 3], scores: None, bytes: 1 };
        let make = move |_| {
            counter.fetch_add(1, Ordering::SeqCst);
            Ok(vec![7])
        };
        let library = Library { title: String::new(), cases: vec![case; 2], make: Box::new(make) };
        let shelf = Arc::new(Shelf::new(library).unwrap());
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
            let turn = shelf.turn.lock().await;
            let waited = tokio::time::timeout(Duration::from_millis(10), shelf.package(0)).await;
            assert!(waited.is_err(), "another package is on its way");
            drop(turn);
            assert_eq!(shelf.package(1).await, Some(Ok(Bytes::from_static(&[7]))));
        });
        assert_eq!(made.load(Ordering::SeqCst), 1);
    }
}
