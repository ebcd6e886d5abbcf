//! The cases that a server has, and the packages that were made of them.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use hyper::body::Bytes;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::guard::secret;
use crate::error::{Result, ViewError};
use crate::scores::Headline;

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
    pub scores: Option<Headline>,
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

/// A library behind ids that tell nothing. One thread makes the packages, one after the other, so that there is never more
/// than one on its way.
pub(super) struct Shelf {
    store: Arc<Store>,
    ids: Vec<String>,
    orders: Sender<Order>,
}

/// A package that a request waits for.
struct Order {
    number: usize,
    reply: oneshot::Sender<Result<Bytes, String>>,
}

impl Shelf {
    pub(super) fn new(library: Library) -> Result<Self> {
        let ids = library.cases.iter().map(|_| secret()).collect::<Result<_>>()?;
        let store = Arc::new(Store { library, made: Mutex::default() });
        let (orders, ordered) = channel();
        let maker = store.clone();
        // It ends with the shelf, or with the program in the middle of a package that nobody wants any more.
        thread::Builder::new()
            .name("packages".to_owned())
            .spawn(move || maker.serve(ordered))
            .map_err(|error| ViewError::Start(format!("no thread can be started: {error}")))?;
        Ok(Self { store, ids, orders })
    }

    /// The list as the page gets it.
    pub(super) fn list(&self) -> String {
        let entry = |(id, case): (&String, &Listed)| {
            let Listed { name, size, scores, .. } = case;
            json!({ "id": id, "name": name, "size": size, "scores": scores })
        };
        let Library { title, cases, .. } = &self.store.library;
        let cases: Vec<Value> = self.ids.iter().zip(cases).map(entry).collect();
        json!({ "version": 1, "title": title, "cases": cases }).to_string()
    }

    /// The number of the case with an id.
    pub(super) fn find(&self, id: &str) -> Option<usize> {
        self.ids.iter().position(|known| known == id)
    }

    /// The package of a case, or why there is none; made now, unless it was before. Nothing where the program has a defect.
    pub(super) async fn package(&self, number: usize) -> Option<Result<Bytes, String>> {
        if let Some(bytes) = self.store.find(number) {
            return Some(Ok(bytes));
        }
        let (reply, made) = oneshot::channel();
        self.orders.send(Order { number, reply }).ok()?;
        made.await.ok()
    }
}

/// The cases and the packages that were made of them.
struct Store {
    library: Library,
    /// Numbers of cases and their packages, the latest last.
    made: Mutex<VecDeque<(usize, Bytes)>>,
}

impl Store {
    /// Makes what is ordered, until nobody can order any more.
    fn serve(&self, ordered: Receiver<Order>) {
        for Order { number, reply } in ordered {
            // Who has gone meanwhile gets nothing made.
            if reply.is_closed() {
                continue;
            }
            let made = catch_unwind(AssertUnwindSafe(|| self.package(number)));
            if let Ok(made) = made {
                let _ = reply.send(made);
            }
        }
    }

    /// A package that was made before.
    fn find(&self, number: usize) -> Option<Bytes> {
        let mut made = self.made();
        let place = made.iter().position(|(known, _)| *known == number)?;
        let found = made.remove(place)?;
        let bytes = found.1.clone();
        made.push_back(found);
        Some(bytes)
    }

    /// The package of a case. May take seconds.
    fn package(&self, number: usize) -> Result<Bytes, String> {
        if let Some(bytes) = self.find(number) {
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
