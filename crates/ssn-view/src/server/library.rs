//! The cases that a server has, and the packages that were made of them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use hyper::body::Bytes;
use serde_json::{Value, json};

use super::guard::secret;
use crate::error::Result;
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

/// A library behind ids that tell nothing.
pub(super) struct Shelf {
    library: Library,
    ids: Vec<String>,
    /// Numbers of cases and their packages, the latest last. The lock is held while a package is made, so that there is
    /// never more than one on its way.
    made: Mutex<VecDeque<(usize, Bytes)>>,
}

impl Shelf {
    pub(super) fn new(library: Library) -> Result<Self> {
        let ids = library.cases.iter().map(|_| secret()).collect::<Result<_>>()?;
        Ok(Self { library, ids, made: Mutex::default() })
    }

    /// The list as the page gets it.
    pub(super) fn list(&self) -> String {
        let entry = |(id, case): (&String, &Listed)| {
            let Listed { name, size, scores, .. } = case;
            json!({ "id": id, "name": name, "size": size, "scores": scores })
        };
        let cases: Vec<Value> = self.ids.iter().zip(&self.library.cases).map(entry).collect();
        json!({ "version": 1, "title": self.library.title, "cases": cases }).to_string()
    }

    /// The number of the case with an id.
    pub(super) fn find(&self, id: &str) -> Option<usize> {
        self.ids.iter().position(|known| known == id)
    }

    /// The package of a case; made now, unless it was before. May take seconds.
    pub(super) fn package(self: &Arc<Self>, number: usize) -> Result<Bytes, String> {
        let mut made = match self.made.lock() {
            Ok(made) => made,
            // A package that could not be made leaves nothing behind.
            Err(poisoned) => poisoned.into_inner(),
        };
        if let Some(place) = made.iter().position(|(known, _)| *known == number)
            && let Some(found) = made.remove(place)
        {
            let bytes = found.1.clone();
            made.push_back(found);
            return Ok(bytes);
        }
        // Room is made before, so that old and new packages are not in memory at once.
        let expected = self.library.cases[number].bytes;
        let kept =
            |made: &VecDeque<(usize, Bytes)>| made.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>();
        while !made.is_empty() && kept(&made) + expected > KEPT_BYTES {
            made.pop_front();
        }
        let bytes = Bytes::from((self.library.make)(number)?);
        made.push_back((number, bytes.clone()));
        Ok(bytes)
    }
}
