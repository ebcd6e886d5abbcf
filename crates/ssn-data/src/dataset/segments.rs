//! Label files whose values have names, `.seg.nrrd` of 3D Slicer: people who draw the same structures in another order store
//! them by other values, so that classes are found by name.

use std::path::{Path, PathBuf};

use ssn_io::{Error, Limits, Result, Segment, read_segments};

use crate::dataset::LabelCoding;
use crate::dataset::labels::LabelTable;

/// What a segment of the background is called.
const BACKGROUND: &str = "background";
const NAME_ALIKE: &str =
    "name the segments alike in 3D Slicer, or name all classes in the config (data.classes)";

/// A label file with the names of its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedLabels {
    /// The file.
    pub path: PathBuf,
    /// Its segments.
    pub segments: Vec<Segment>,
}

/// Names that differ in upper and lower case or in spaces around them are the same.
fn same_name(a: &str, b: &str) -> bool {
    a.trim().to_lowercase() == b.trim().to_lowercase()
}

impl NamedLabels {
    /// The names in a file; nothing if its values have none. Control characters in names become spaces.
    ///
    /// # Errors
    /// A damaged file, and two segments with one name.
    pub fn read(path: &Path) -> Result<Option<Self>> {
        Self::of(path, read_segments(path, &Limits::default())?)
    }

    fn of(path: &Path, segments: Vec<Segment>) -> Result<Option<Self>> {
        let segments = segments.into_iter().map(|Segment { name, label }| {
            let name: String = name.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            Segment { name: if name.is_empty() { format!("label_{label}") } else { name }, label }
        });
        let named = Self { path: path.to_owned(), segments: segments.collect() };
        for (place, segment) in named.segments.iter().enumerate() {
            if named.segments[..place].iter().any(|other| same_name(&other.name, &segment.name)) {
                let reason = format!("two of its segments have the same name: {}", named.list());
                return Err(Error::data(path, reason).advise("rename or join them in 3D Slicer"));
            }
        }
        Ok((!named.segments.is_empty()).then_some(named))
    }

    /// The segments but that of the background.
    fn marked(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter(|segment| !same_name(&segment.name, BACKGROUND))
    }

    /// The segments in words, `tumor = 1, edema = 2`.
    pub fn list(&self) -> String {
        let segments = self.segments.iter().map(|Segment { name, label }| format!("{name} = {label}"));
        segments.collect::<Vec<_>>().join(", ")
    }

    /// Whether a class has the name of one of the segments.
    pub fn names_any_of(&self, classes: &[String]) -> bool {
        self.marked().any(|segment| classes.iter().skip(1).any(|class| same_name(class, &segment.name)))
    }

    /// The class of each stored value, by name.
    ///
    /// # Errors
    /// A segment with a name that no class has.
    pub fn table(&self, classes: &[String]) -> Result<LabelTable> {
        let mut table = LabelTable::background();
        for segment in &self.segments {
            let is_background = same_name(&segment.name, BACKGROUND);
            let class = match classes.iter().position(|class| same_name(class, &segment.name)) {
                None if is_background => 0,
                Some(class) => class,
                None => {
                    let reason = format!(
                        "its segments are {}, but the classes are {}",
                        self.list(),
                        classes.join(", ")
                    );
                    let advice = "rename the segments in 3D Slicer, or correct data.classes in the config";
                    return Err(Error::data(&self.path, reason).advise(advice));
                }
            };
            table.set(segment.label, class as u8);
        }
        Ok(table)
    }

    fn differs(&self, other: &Self) -> Error {
        let reason = format!(
            "its segments are {}, but those of {} are {}",
            self.list(),
            other.path.display(),
            other.list()
        );
        Error::data(&self.path, reason).advise(NAME_ALIKE)
    }
}

/// The label files of a dataset whose values have names, and one whose values have none.
#[derive(Debug, Clone, Default)]
pub struct NamedFiles {
    named: Vec<NamedLabels>,
    nameless: Option<PathBuf>,
}

impl NamedFiles {
    /// Looks into files; damaged ones are left to the check.
    pub fn of<'a>(paths: impl Iterator<Item = &'a Path>) -> Result<Self> {
        let mut all = Self::default();
        for path in paths {
            let Ok(segments) = read_segments(path, &Limits::default()) else { continue };
            match NamedLabels::of(path, segments)? {
                Some(named) => all.named.push(named),
                None if !path.exists() => {}
                None => drop(all.nameless.get_or_insert_with(|| path.to_owned())),
            }
        }
        Ok(all)
    }

    /// Whether no file has names.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    /// Classes after the names in the file that has most of them, in the order of their values, with the rule for files
    /// without names.
    ///
    /// # Errors
    /// A file with a name that this one has not.
    pub fn classes(&self) -> Result<(LabelCoding, Vec<String>)> {
        let most = self.named.iter().rev().max_by_key(|file| file.marked().count());
        let Some(most) = most else { return Ok((LabelCoding::Plain, vec![])) };
        let mut segments: Vec<&Segment> = most.marked().collect();
        segments.sort_by_key(|segment| segment.label);
        let names = segments.iter().map(|segment| segment.name.trim().to_owned());
        let mut classes: Vec<String> = std::iter::once(BACKGROUND.to_owned()).chain(names).collect();
        let mut values: Vec<u8> = std::iter::once(0).chain(segments.iter().map(|s| s.label)).collect();
        for file in &self.named {
            if file.table(&classes).is_err() {
                return Err(file.differs(most));
            }
        }
        if classes.len() == 1 {
            classes.push("foreground".to_owned());
            values.push(1);
        }
        let plain = values.iter().enumerate().all(|(class, &value)| class == usize::from(value));
        Ok((if plain { LabelCoding::Plain } else { LabelCoding::Values(values) }, classes))
    }

    /// Whether the classes are found by name; without a common name they are the values, which must then have the same
    /// names in all files.
    ///
    /// # Errors
    /// Names that are not those of classes, where others are; names or values that two files do not share; and files
    /// without names whose values would be other classes than the same values of a file with names.
    pub fn has_names_of(&self, classes: &[String], coding: &LabelCoding) -> Result<bool> {
        if !self.named.iter().any(|file| file.names_any_of(classes)) {
            let mut values = SameValues::default();
            self.named.iter().try_for_each(|file| values.add(file))?;
            return Ok(false);
        }
        let by_value = coding.table(classes.len());
        for file in &self.named {
            let by_name = file.table(classes)?;
            let Some(nameless) = &self.nameless else { continue };
            let differs = |segment: &Segment| by_name.class(segment.label) != by_value.class(segment.label);
            if file.segments.iter().any(differs) {
                let stored = coding.stored().unwrap_or_else(|| (0..=u8::MAX).collect());
                let stored: Vec<String> =
                    classes.iter().zip(stored).map(|(class, value)| format!("{class} = {value}")).collect();
                let reason = format!(
                    "its segments are {}, but {} has values without names, which are read as {}",
                    file.list(),
                    nameless.display(),
                    stored.join(", ")
                );
                let advice = "store all label maps with the same values, or all with names";
                return Err(Error::data(&file.path, reason).advise(advice));
            }
        }
        Ok(true)
    }
}

/// Files in which a value has the same name everywhere.
#[derive(Debug, Clone, Default)]
pub struct SameValues {
    files: Vec<NamedLabels>,
}

impl SameValues {
    /// Adds a file.
    ///
    /// # Errors
    /// It has another name for a value, or another value for a name, than a file before.
    pub fn add(&mut self, file: &NamedLabels) -> Result<()> {
        let disagrees = |other: &&NamedLabels| {
            let pairs = other.segments.iter().flat_map(|a| file.segments.iter().map(move |b| (a, b)));
            pairs.into_iter().any(|(a, b)| (a.label == b.label) != same_name(&a.name, &b.name))
        };
        if let Some(other) = self.files.iter().find(disagrees) {
            return Err(file.differs(other));
        }
        let is_known = |segment: &Segment| {
            self.files.iter().flat_map(|other| &other.segments).any(|other| other.label == segment.label)
        };
        if !file.segments.iter().all(is_known) {
            self.files.push(file.clone());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::texts;

    fn file(name: &str, segments: &[(&str, u8)]) -> NamedLabels {
        let segments = segments.iter().map(|&(name, label)| Segment { name: name.to_owned(), label });
        NamedLabels { path: name.into(), segments: segments.collect() }
    }

    fn files(named: &[NamedLabels]) -> NamedFiles {
        NamedFiles { named: named.to_vec(), nameless: None }
    }

    #[test]
    fn classes_are_the_names_of_the_fullest_file() {
        let found = |named: &[NamedLabels]| files(named).classes().unwrap();
        let (one, two) = (file("a", &[("Tumor ", 2)]), file("b", &[("tumor", 2), ("edema", 1)]));
        assert_eq!(
            found(&[one.clone(), two.clone()]),
            (LabelCoding::Plain, texts(&["background", "edema", "tumor"]))
        );
        assert_eq!(
            found(std::slice::from_ref(&one)),
            (LabelCoding::Values(vec![0, 2]), texts(&["background", "Tumor"]))
        );
        let outside = file("c", &[("Background", 1), ("edema", 7)]);
        assert_eq!(found(&[outside]), (LabelCoding::Values(vec![0, 7]), texts(&["background", "edema"])));
        let other = files(&[two, file("c", &[("necrosis", 1)])]).classes().unwrap_err().to_string();
        assert!(
            other.starts_with("c: its segments are necrosis = 1, but those of b are tumor = 2, edema = 1; "),
            "{other}"
        );
    }

    #[test]
    fn values_become_classes_by_name() {
        let classes = texts(&["background", "edema", "tumor"]);
        let table = file("a", &[("Tumor", 1), ("background", 4), ("edema", 9)]).table(&classes).unwrap();
        assert_eq!(
            [0, 1, 4, 9, 2].map(|value| table.class(value)),
            [Some(0), Some(2), Some(0), Some(1), None]
        );
    }

    #[test]
    fn other_names_than_those_of_classes_must_agree() {
        let classes = texts(&["background", "lesion", "organ"]);
        let alike =
            files(&[file("a", &[("x", 1), ("y", 2)]), file("b", &[("Y", 2)]), file("c", &[("z", 3)])]);
        assert!(!alike.has_names_of(&classes, &LabelCoding::Plain).unwrap());
        for other in [file("b", &[("y", 1)]), file("b", &[("x", 2)]), file("b", &[("z", 2)])] {
            let set = files(&[file("a", &[("x", 1), ("y", 2)]), other]);
            let error = set.has_names_of(&classes, &LabelCoding::Plain).unwrap_err().to_string();
            assert!(error.contains("but those of a are x = 1, y = 2"), "{error}");
        }
        let some = files(&[file("a", &[("organ", 1)]), file("b", &[("organs", 1)])]);
        let error = some.has_names_of(&classes, &LabelCoding::Plain).unwrap_err().to_string();
        assert!(
            error.contains("b: its segments are organs = 1, but the classes are background, lesion, organ"),
            "{error}"
        );
        let mixed = NamedFiles { named: vec![file("a", &[("lesion", 2)])], nameless: Some("b.nii".into()) };
        assert!(mixed.has_names_of(&classes, &LabelCoding::Values(vec![0, 2, 5])).unwrap());
    }
}
