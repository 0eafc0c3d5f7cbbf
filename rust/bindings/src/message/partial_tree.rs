//! `Tree`: the value of a JSON text under construction as Python objects, and its changes.
//!
//! In: events of the core's `PartialJson`.  Out: snapshots, paths and changes.
//!
//! Laws: a value is put into its container when it is finished.  The values in an open container therefore never change,
//! and all snapshots share it.  A snapshot copies only the open containers, not the values below them.  An unfinished string
//! consists of two halves: the text of the last snapshot, and the text that arrived later.

use deltafold::fold::partial_json::{Event, Log};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

/// Object or array that has not ended.
enum Open {
    Object { dict: Py<PyDict>, key: Py<PyString> },
    Array(Py<PyList>),
}

impl Open {
    /// Return the key or index of the next or unfinished value.
    fn next_key<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        match self {
            Self::Object { key, .. } => key.bind(py).clone().into_any(),
            Self::Array(list) => PyInt::new(py, list.bind(py).len()).into_any(),
        }
    }

    fn put(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        match self {
            Self::Object { dict, key } => dict.bind(py).set_item(key, value),
            Self::Array(list) => list.bind(py).append(value),
        }
    }

    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        Ok(match self {
            Self::Object { dict, key } => {
                Self::Object { dict: dict.bind(py).copy()?.unbind(), key: key.clone_ref(py) }
            }
            Self::Array(list) => {
                let list = list.bind(py);
                Self::Array(list.get_slice(0, list.len()).unbind())
            }
        })
    }

    fn into_value(self, py: Python<'_>) -> Bound<'_, PyAny> {
        match self {
            Self::Object { dict, .. } => dict.into_bound(py).into_any(),
            Self::Array(list) => list.into_bound(py).into_any(),
        }
    }
}

/// Unfinished string.
#[derive(Default)]
struct GrowingString {
    /// Text at the last snapshot.
    shown: Option<Py<PyString>>,
    /// Text that arrived after the last snapshot.
    since: String,
}

impl GrowingString {
    /// Return the string so far.  Text of the last snapshot is copied and not decoded again.
    fn text<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = match &self.shown {
            Some(shown) if self.since.is_empty() => return Ok(shown.bind(py).clone().into_any()),
            Some(shown) => shown.bind(py).add(PyString::new(py, &self.since))?,
            None => PyString::new(py, &self.since).into_any(),
        };
        self.since.clear();
        self.shown = Some(text.cast::<PyString>()?.clone().unbind());
        Ok(text)
    }
}

type Path = Py<PyTuple>;

/// Change of the value at a path.
enum Change {
    /// A scalar, or the beginning of a string at the first request for changes.
    Set(Path, Py<PyAny>),
    /// Start of an object, which is empty.
    Object(Path),
    /// Start of an array, which is empty.
    Array(Path),
    /// Start of a string, with its text so far.
    Text(Path, String),
    /// More text of a string.
    Append(Path, String),
}

/// Value under construction.
#[derive(Default)]
pub(crate) struct Tree {
    open: Vec<Open>,
    /// The outermost value, once it is finished.
    root: Option<Py<PyAny>>,
    growing: Option<GrowingString>,
    /// Changes since the last request; `None` before the first request, when changes are not recorded.
    changes: Option<Vec<Change>>,
    /// Unfinished number that the last change reported.
    reported_number: Option<Py<PyAny>>,
}

impl Tree {
    /// Visit the containers for the garbage collector, because the caller may hold them too.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        for open in &self.open {
            match open {
                Open::Object { dict, .. } => visit.call(dict)?,
                Open::Array(list) => visit.call(list)?,
            }
        }
        visit.call(&self.root)
    }

    /// Return true before the first event.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.root.is_none() && self.growing.is_none()
    }

    /// Apply the events of a log.
    pub(crate) fn apply(&mut self, py: Python<'_>, log: &Log) -> PyResult<()> {
        for event in log.events() {
            match event {
                Event::Object => {
                    self.note(py, Change::Object)?;
                    let key = PyString::new(py, "").unbind();
                    self.open.push(Open::Object { dict: PyDict::new(py).unbind(), key });
                }
                Event::Array => {
                    self.note(py, Change::Array)?;
                    self.open.push(Open::Array(PyList::empty(py).unbind()));
                }
                Event::End => {
                    if let Some(ended) = self.open.pop() {
                        self.put(py, ended.into_value(py))?;
                    }
                }
                Event::Key(text) => {
                    if let Some(Open::Object { key, .. }) = self.open.last_mut() {
                        *key = PyString::new(py, text).unbind();
                    }
                }
                Event::String => {
                    self.note(py, |path| Change::Text(path, String::new()))?;
                    self.growing = Some(GrowingString::default());
                }
                Event::Text(text) => self.grow(py, text)?,
                Event::StringEnd => {
                    if let Some(mut whole) = self.growing.take() {
                        let text = whole.text(py)?;
                        self.put(py, text)?;
                    }
                }
                Event::Integer(_) | Event::Float(_) | Event::Bool(_) | Event::Null => {
                    let value = scalar(py, event)?;
                    self.reported_number = None;
                    self.note(py, |path| Change::Set(path, value.clone().unbind()))?;
                    self.put(py, value)?;
                }
            }
        }
        Ok(())
    }

    fn put(&mut self, py: Python<'_>, value: Bound<'_, PyAny>) -> PyResult<()> {
        if let Some(open) = self.open.last() {
            return open.put(py, &value);
        }
        self.root = Some(value.unbind());
        Ok(())
    }

    fn grow(&mut self, py: Python<'_>, text: &str) -> PyResult<()> {
        if let Some(growing) = &mut self.growing {
            growing.since.push_str(text);
        }
        if let Some(changes) = &mut self.changes {
            if let Some(Change::Text(_, known) | Change::Append(_, known)) = changes.last_mut() {
                known.push_str(text);
            } else {
                let path = self.path(py, true)?;
                self.note_at(Change::Append(path, text.to_owned()));
            }
        }
        Ok(())
    }

    /// Return the path of the unfinished value.  `inside` is true if a value in the innermost container has begun.
    pub(crate) fn path(&self, py: Python<'_>, inside: bool) -> PyResult<Path> {
        let containers = if inside { self.open.len() } else { self.open.len().saturating_sub(1) };
        let places = self.open.iter().take(containers).map(|open| open.next_key(py));
        Ok(PyTuple::new(py, places.collect::<Vec<_>>())?.unbind())
    }

    /// Record a change of the next value.
    fn note(&mut self, py: Python<'_>, change: impl FnOnce(Path) -> Change) -> PyResult<()> {
        if self.changes.is_some() {
            let path = self.path(py, true)?;
            self.note_at(change(path));
        }
        Ok(())
    }

    fn note_at(&mut self, change: Change) {
        if let Some(changes) = &mut self.changes {
            changes.push(change);
        }
    }

    /// Return the value so far.  `number` is an unfinished number to show.
    pub(crate) fn value<'py>(
        &mut self,
        py: Python<'py>,
        number: Option<Event<'_>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(root) = &self.root {
            return fresh(root.bind(py));
        }
        let mut inner = match (&mut self.growing, number) {
            (Some(growing), _) => Some(growing.text(py)?),
            (None, Some(number)) => Some(scalar(py, number)?),
            (None, None) => None,
        };
        for open in self.open.iter().rev() {
            let copy = open.copy(py)?;
            if let Some(inner) = &inner {
                copy.put(py, inner)?;
            }
            inner = Some(copy.into_value(py));
        }
        Ok(inner.unwrap_or_else(|| py.None().into_bound(py)))
    }

    /// Return the changes since the last call; at the first call those of the whole value.
    pub(crate) fn take_changes<'py>(
        &mut self,
        py: Python<'py>,
        number: Option<Event<'_>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let mut changes = match self.changes.take() {
            Some(changes) => changes,
            None => self.everything(py)?,
        };
        if let Some(number) = number {
            let number = scalar(py, number)?;
            let known = match &self.reported_number {
                Some(reported_number) => {
                    number.eq(reported_number)?
                        && number.get_type().is(reported_number.bind(py).get_type())
                }
                None => false,
            };
            if !known {
                self.reported_number = Some(number.clone().unbind());
                changes.push(Change::Set(self.path(py, true)?, number.unbind()));
            }
        }
        let list = PyList::empty(py);
        for change in changes {
            list.append(match change {
                Change::Set(path, value) => (path, "set", value),
                Change::Object(path) => (path, "set", PyDict::new(py).into_any().unbind()),
                Change::Array(path) => (path, "set", PyList::empty(py).into_any().unbind()),
                Change::Text(path, text) => {
                    (path, "set", PyString::new(py, &text).into_any().unbind())
                }
                Change::Append(path, text) => {
                    (path, "append", PyString::new(py, &text).into_any().unbind())
                }
            })?;
        }
        self.changes = Some(Vec::new());
        Ok(list)
    }

    /// Return the changes that build the value so far.
    fn everything(&mut self, py: Python<'_>) -> PyResult<Vec<Change>> {
        let mut changes = Vec::new();
        if let Some(root) = &self.root {
            walk(PyTuple::empty(py), root.bind(py), &mut changes)?;
        }
        let mut path = PyTuple::empty(py);
        for open in &self.open {
            let container = match open {
                Open::Object { dict, .. } => dict.bind(py).as_any(),
                Open::Array(list) => list.bind(py).as_any(),
            };
            walk(path.clone(), container, &mut changes)?;
            path = below(&path, open.next_key(py))?;
        }
        if let Some(growing) = &mut self.growing {
            let text = growing.text(py)?;
            changes.push(Change::Set(path.unbind(), text.unbind()));
        }
        Ok(changes)
    }
}

fn below<'py>(
    path: &Bound<'py, PyTuple>,
    place: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyTuple>> {
    let places = path.iter().chain([place]);
    PyTuple::new(path.py(), places.collect::<Vec<_>>())
}

/// Record the changes that build `value` at `path`.  The depth limit of the core bounds the recursion.
fn walk(
    path: Bound<'_, PyTuple>,
    value: &Bound<'_, PyAny>,
    changes: &mut Vec<Change>,
) -> PyResult<()> {
    if let Ok(dict) = value.cast::<PyDict>() {
        changes.push(Change::Object(path.clone().unbind()));
        for (key, value) in dict {
            walk(below(&path, key)?, &value, changes)?;
        }
    } else if let Ok(list) = value.cast::<PyList>() {
        changes.push(Change::Array(path.clone().unbind()));
        for (at, value) in list.iter().enumerate() {
            walk(below(&path, PyInt::new(path.py(), at).into_any())?, &value, changes)?;
        }
    } else {
        changes.push(Change::Set(path.unbind(), value.clone().unbind()));
    }
    Ok(())
}

/// Return a deep copy, whose objects and arrays are not shared.
fn fresh<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if let Ok(dict) = value.cast::<PyDict>() {
        let copy = PyDict::new(value.py());
        for (key, value) in dict {
            copy.set_item(key, fresh(&value)?)?;
        }
        return Ok(copy.into_any());
    }
    if let Ok(list) = value.cast::<PyList>() {
        let items = list.iter().map(|item| fresh(&item)).collect::<PyResult<Vec<_>>>()?;
        return Ok(PyList::new(value.py(), items)?.into_any());
    }
    Ok(value.clone())
}

pub(crate) fn scalar<'py>(py: Python<'py>, event: Event<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match event {
        Event::Integer(text) => integer(py, text)?,
        Event::Float(number) => PyFloat::new(py, number).into_any(),
        Event::Bool(truth) => pyo3::types::PyBool::new(py, truth).to_owned().into_any(),
        _ => py.None().into_bound(py),
    })
}

/// Number of digits that always fit into an `i64`.
const STEP: usize = 18;

/// Return the exact integer of a text, regardless of the digit limit of this process.
fn integer<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    if let Ok(small) = text.parse::<i64>() {
        return Ok(PyInt::new(py, small).into_any());
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let base = PyInt::new(py, 10_i64.pow(18)).into_any();
    let (mut rest, mut value) = (digits, PyInt::new(py, 0_i64).into_any());
    while !rest.is_empty() {
        // The first step takes the digits that do not fill a whole step.
        let (step, tail) = rest.split_at_checked((rest.len() - 1) % STEP + 1).unwrap_or((rest, ""));
        value = value.mul(&base)?.add(step.parse::<i64>().unwrap_or(0))?;
        rest = tail;
    }
    if text.starts_with('-') { value.neg() } else { Ok(value) }
}
