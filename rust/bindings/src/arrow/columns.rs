//! Columns in the layout of Arrow: texts, numbers, flags, lists and structs.
//!
//! In: values of a row.  Out: buffers, depth first: the validity of a column, then its offsets or values, then its children.
//!
//! Laws: a column without a null has no validity buffer.  Offsets are 32 bits wide, so a column holds 2 GiB of text at most.
//! Source: the columnar format of Arrow, "Physical Memory Layout".

/// Type of a column.
pub(crate) enum Kind {
    Text,
    /// Number of so many bytes.
    Number(usize),
    Flag,
    List(&'static Kind),
    Struct(&'static [Kind]),
}

/// Buffer of a column; `None` if a column has no null.
pub(crate) type Buffer = Option<Vec<u8>>;

/// A column has more than 2 GiB of text, or more than 2^31 list items.
pub(crate) struct TooLarge;

/// Column under construction.
pub(crate) struct Column {
    kind: &'static Kind,
    /// Flag of each row: false for a null.
    valid: Vec<bool>,
    /// End of each row: of its text in `bytes`, or of its items in the child of a list.
    ends: Vec<usize>,
    /// Texts or numbers of all rows.  A flag is a byte until the column is written.
    bytes: Vec<u8>,
    /// Items of a list, or fields of a struct.
    children: Vec<Self>,
}

impl Column {
    /// Build an empty column.
    pub(crate) fn new(kind: &'static Kind) -> Self {
        let children = match kind {
            Kind::List(items) => vec![Self::new(items)],
            Kind::Struct(fields) => fields.iter().map(Self::new).collect(),
            Kind::Text | Kind::Number(_) | Kind::Flag => Vec::new(),
        };
        Self { kind, valid: Vec::new(), ends: Vec::new(), bytes: Vec::new(), children }
    }

    /// Append a null.
    pub(crate) fn push_null(&mut self) {
        match self.kind {
            Kind::Text | Kind::List(_) => self.ends.push(self.count()),
            Kind::Number(size) => self.bytes.resize(self.bytes.len() + size, 0),
            Kind::Flag => self.bytes.push(0),
            Kind::Struct(_) => self.children.iter_mut().for_each(Self::push_null),
        }
        self.valid.push(false);
    }

    /// Begin a struct, whose fields the caller appends in their order.
    pub(crate) fn begin(&mut self) -> Row<'_> {
        self.valid.push(true);
        Row(self.children.iter_mut())
    }

    /// Append a text that consists of pieces.
    pub(crate) fn push_joined<'a>(&mut self, pieces: impl Iterator<Item = &'a str>) {
        pieces.for_each(|piece| self.bytes.extend_from_slice(piece.as_bytes()));
        self.valid.push(true);
        self.ends.push(self.bytes.len());
    }

    /// Append a text.
    pub(crate) fn push_text(&mut self, text: &str) {
        self.push_joined(std::iter::once(text));
    }

    /// Append a number, or a flag of one byte.
    pub(crate) fn push_number<const N: usize>(&mut self, number: [u8; N]) {
        self.valid.push(true);
        self.bytes.extend(number);
    }

    /// Append a list, whose items `push` appends.
    pub(crate) fn push_list(&mut self, push: impl FnOnce(&mut Self)) {
        if let Some(items) = self.children.first_mut() {
            push(items);
        }
        self.valid.push(true);
        self.ends.push(self.count());
    }

    /// Return the number of bytes of a text column, or of items of a list column.
    fn count(&self) -> usize {
        self.children.first().map_or(self.bytes.len(), |items| items.valid.len())
    }

    /// Append the rows of a later part of the same column.
    pub(crate) fn append(&mut self, later: Self) {
        let before = self.count();
        self.ends.extend(later.ends.iter().map(|end| before + end));
        self.valid.extend(later.valid);
        self.bytes.extend(later.bytes);
        self.children.iter_mut().zip(later.children).for_each(|(child, later)| child.append(later));
    }

    /// Append the buffers of the column and of its children.
    pub(crate) fn write(self, buffers: &mut Vec<Buffer>) -> Result<(), TooLarge> {
        let has_null = self.valid.iter().any(|valid| !valid);
        buffers.push(has_null.then(|| bits(self.valid.iter().copied())));
        match self.kind {
            Kind::Text => buffers.extend([Some(offsets(&self.ends)?), Some(self.bytes)]),
            Kind::Number(_) => buffers.push(Some(self.bytes)),
            Kind::Flag => buffers.push(Some(bits(self.bytes.iter().map(|flag| *flag != 0)))),
            Kind::List(_) => buffers.push(Some(offsets(&self.ends)?)),
            Kind::Struct(_) => {}
        }
        self.children.into_iter().try_for_each(|child| child.write(buffers))
    }
}

/// Struct under construction: the columns of its fields that have no value yet.
pub(crate) struct Row<'a>(std::slice::IterMut<'a, Column>);

impl Row<'_> {
    /// Append a value, or a null, to the next field.
    pub(crate) fn push<T>(&mut self, value: Option<T>, push: impl FnOnce(&mut Column, T)) {
        if let Some(column) = self.0.next() {
            match value {
                Some(value) => push(column, value),
                None => column.push_null(),
            }
        }
    }

    pub(crate) fn text(&mut self, text: Option<&str>) {
        self.push(text, Column::push_text);
    }

    pub(crate) fn int(&mut self, number: Option<i64>) {
        self.push(number, |column, number| column.push_number(number.to_ne_bytes()));
    }

    pub(crate) fn float(&mut self, number: Option<f64>) {
        self.push(number, |column, number| column.push_number(number.to_ne_bytes()));
    }

    pub(crate) fn flag(&mut self, flag: Option<bool>) {
        self.push(flag, |column, flag| column.push_number([u8::from(flag)]));
    }
}

/// Pack flags into bits, the first one into the lowest bit.
fn bits(flags: impl Iterator<Item = bool>) -> Vec<u8> {
    let mut packed = Vec::new();
    for (at, flag) in flags.enumerate() {
        if at % 8 == 0 {
            packed.push(0);
        }
        if let Some(byte) = packed.last_mut() {
            *byte |= u8::from(flag) << (at % 8);
        }
    }
    packed
}

/// Write the offsets of rows from their ends.
fn offsets(ends: &[usize]) -> Result<Vec<u8>, TooLarge> {
    let mut bytes = Vec::with_capacity((ends.len() + 1) * size_of::<i32>());
    for end in std::iter::once(&0).chain(ends) {
        bytes.extend(i32::try_from(*end).map_err(|_| TooLarge)?.to_ne_bytes());
    }
    Ok(bytes)
}
