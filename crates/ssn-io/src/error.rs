//! The error that all crates share: its kind, its place, the reason and what to do.

use std::error::Error as StdError;
use std::fmt::{self, Display, Formatter};
use std::io;
use std::path::{Path, PathBuf};

use ssn_core::CoreError;

use crate::atomic::WriteError;
use crate::problem::{FileError, Problem};

/// The result of functions that fail with the shared error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Kind of an error. Its number is the exit code of programs that end with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ErrorKind {
    /// A check of a dataset found problems.
    ProblemsFound = 1,
    /// Settings that make no sense.
    Usage = 2,
    /// A file or dataset that cannot be used.
    BadData = 65,
    /// Something that is needed is not installed, such as libtorch or CUDA.
    Unavailable = 69,
    /// A defect of the program.
    Internal = 70,
    /// Reading or writing failed, the disk is full, or the GPU stopped working.
    Io = 74,
    /// Stopped on request; the same call resumes the work, and a training with `resume`.
    Stopped = 75,
    /// The computation met values that are not finite.
    NonFinite = 76,
    /// The machine or the device has too little memory.
    OutOfMemory = 77,
}

/// Subject of an error, which begins its sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The reason is a sentence of its own.
    None,
    /// A file or folder.
    File(PathBuf),
    /// A case of a dataset, by its id.
    Case(String),
    /// A setting or an argument, by its name; the reason is its predicate.
    Setting(String),
}

impl Display for Place {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::File(path) => write!(f, "{}: ", path.display()),
            Self::Case(id) => write!(f, "case {id}: "),
            Self::Setting(name) => write!(f, "{name} "),
        }
    }
}

/// An error: what went wrong where, why, and what to do.
///
/// It is shown as one sentence: place, reason, and after a semicolon the advice.
///
/// ```
/// use ssn_io::{Error, ErrorKind};
///
/// let error = Error::data("scan.nii", "the file is empty").advise("copy it again");
/// assert_eq!(error.to_string(), "scan.nii: the file is empty; copy it again");
/// assert_eq!(error.kind as u8, 65);
///
/// let error = Error::setting("steps", 0, "at least 1");
/// assert_eq!((error.to_string().as_str(), error.kind), ("steps is 0, but it must be at least 1", ErrorKind::Usage));
/// ```
#[derive(Debug)]
pub struct Error {
    /// The kind, which programs can act on.
    pub kind: ErrorKind,
    /// The subject.
    pub place: Place,
    /// What is wrong with it.
    pub reason: String,
    /// What to do, if the reason does not say it.
    pub advice: Option<String>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Display for Error {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.place, self.reason)?;
        self.advice.iter().try_for_each(|advice| write!(f, "; {advice}"))
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl Error {
    /// Returns an error of a kind whose reason is a whole sentence.
    pub fn new(kind: ErrorKind, reason: impl Display) -> Self {
        Self { kind, place: Place::None, reason: reason.to_string(), advice: None, source: None }
    }

    /// Returns an error of a file or folder that cannot be used.
    pub fn data(path: impl Into<PathBuf>, reason: impl Display) -> Self {
        Self::mismatch(reason).at(Place::File(path.into()))
    }

    /// Returns an error of a case that cannot be used.
    pub fn case(id: impl Into<String>, reason: impl Display) -> Self {
        Self::mismatch(reason).at(Place::Case(id.into()))
    }

    /// Returns an error of parts, such as files, that do not belong together or do not make a whole.
    pub fn mismatch(reason: impl Display) -> Self {
        Self::new(ErrorKind::BadData, reason)
    }

    /// Returns an error of a setting outside its range.
    pub fn setting(name: impl Into<String>, value: impl Display, expected: impl Display) -> Self {
        Self::usage(format!("is {value}, but it must be {expected}")).at(Place::Setting(name.into()))
    }

    /// Returns an error of settings that contradict each other or what they are for.
    pub fn usage(reason: impl Display) -> Self {
        Self::new(ErrorKind::Usage, reason)
    }

    /// Returns an error of the system about a file or folder.
    pub fn io(path: impl Into<PathBuf>, source: io::Error) -> Self {
        Problem::Io(source).in_file(path).into()
    }

    /// Returns an error of the system that kept the program from doing something, such as "remove", with a file or folder.
    pub fn system(action: &str, path: &Path, source: io::Error) -> Self {
        let reason = format!("cannot {action} {}: {source}", path.display());
        Self::new(ErrorKind::Io, reason).caused_by(source)
    }

    /// Returns an error of something that needs more memory than there is.
    pub fn memory(what: impl Display, bytes: u64) -> Self {
        let reason = format!(
            "{what} needs {} MiB of memory, which this machine or its limits do not give now",
            bytes >> 20
        );
        let advice = "end other programs, or use a machine with more memory";
        Self::new(ErrorKind::OutOfMemory, reason).advise(advice)
    }

    /// Returns the error of a defect of the program.
    pub fn internal(reason: impl Display) -> Self {
        Self::new(ErrorKind::Internal, reason)
    }

    /// Returns the error of work that its caller stopped.
    pub fn stopped() -> Self {
        Self::new(ErrorKind::Stopped, "stopped on request")
    }

    /// Adds what to do.
    pub fn advise(self, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..self }
    }

    /// Replaces the kind.
    pub fn of_kind(self, kind: ErrorKind) -> Self {
        Self { kind, ..self }
    }

    /// Replaces the place.
    pub fn at(self, place: Place) -> Self {
        Self { place, ..self }
    }

    /// Adds the error that caused this one.
    pub fn caused_by(self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { source: Some(source.into()), ..self }
    }

    /// Puts the id of a case before the sentence; the case cannot be used, whatever the kind was.
    pub fn in_case(self, id: impl Into<String>) -> Self {
        let reason = format!("{}{}", self.place, self.reason);
        Self { kind: ErrorKind::BadData, place: Place::Case(id.into()), reason, ..self }
    }

    /// Puts a place of another sort before the sentence.
    pub fn within(self, place: impl Display) -> Self {
        let reason = format!("{place}: {}{}", self.place, self.reason);
        Self { place: Place::None, reason, ..self }
    }
}

impl From<FileError> for Error {
    fn from(FileError { path, problem }: FileError) -> Self {
        let kind = match problem {
            Problem::Io(_) => ErrorKind::Io,
            Problem::Memory { .. } => ErrorKind::OutOfMemory,
            _ => ErrorKind::BadData,
        };
        let error = Self::data(path, &problem).of_kind(kind);
        match problem {
            Problem::Io(source) => error.caused_by(source),
            problem => error.caused_by(problem),
        }
    }
}

impl From<WriteError> for Error {
    fn from(error: WriteError) -> Self {
        Self::system("write", &error.path, error.source)
    }
}

impl From<CoreError> for Error {
    fn from(error: CoreError) -> Self {
        Self::mismatch(&error).caused_by(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied() -> io::Error {
        io::Error::new(io::ErrorKind::PermissionDenied, "denied")
    }

    #[test]
    fn sentences_join_place_reason_and_advice() {
        for (error, sentence) in [
            (Error::data("a.nii", "it is empty").advise("copy it"), "a.nii: it is empty; copy it"),
            (Error::case("a", "no raters"), "case a: no raters"),
            (Error::setting("bins", 0, "at least 1"), "bins is 0, but it must be at least 1"),
            (
                Error::setting("bins", 0, "at least 1").in_case("a"),
                "case a: bins is 0, but it must be at least 1",
            ),
            (Error::io("a.nii", denied()).within("row b"), "row b: a.nii: denied"),
            (Error::system("remove", Path::new("a"), denied()), "cannot remove a: denied"),
            (WriteError { path: "a".into(), source: denied() }.into(), "cannot write a: denied"),
            (CoreError::Empty { field: "samples" }.into(), "samples is empty, but at least one is needed"),
            (Error::stopped(), "stopped on request"),
        ] {
            assert_eq!(error.to_string(), sentence);
        }
    }

    #[test]
    fn kinds_of_file_errors_follow_their_problems() {
        let kind = |problem: Problem| Error::from(problem.in_file("a")).kind;
        assert_eq!(kind(Problem::Io(denied())), ErrorKind::Io);
        assert_eq!(kind(Problem::Memory { needed: 2, left: 1 }), ErrorKind::OutOfMemory);
        assert_eq!(kind(Problem::Unsupported { what: "it".to_owned(), advice: "" }), ErrorKind::BadData);
    }

    #[test]
    fn causes_stay_typed() {
        let cause = |error: &Error| error.source().map(|cause| cause.is::<io::Error>());
        assert_eq!(cause(&Error::io("a", denied())), Some(true));
        assert_eq!(cause(&Error::from(CoreError::Empty { field: "samples" })), Some(false));
        assert_eq!(cause(&Error::stopped()), None);
    }
}
