//! Filling an empty index.

use index::{Cursor, Error, Index as _, KeyValue, Result, Update, Value, read_piece};

use super::LongValues;
use super::keys::{Held, Kind};
use super::pieces::is_about_room;

/// Entries that are put together behind the first long value.
const PUTS_AT_ONCE: usize = 64;

/// Entries as the tree has them, up to the first with a long value.
struct Short<'s> {
    sorted: &'s mut dyn Cursor,
    /// Bytes of an entry of the tree.
    most: usize,
    key: Vec<u8>,
    value: Vec<u8>,
    /// The length of the long value at which `sorted` stands.
    long: Option<u32>,
}

impl Cursor for Short<'_> {
    fn next(&mut self) -> Result<Option<KeyValue<'_>>> {
        if self.long.is_some() {
            return Ok(None);
        }
        let Some((key, value)) = self.sorted.next()? else {
            return Ok(None);
        };
        self.key.truncate(1);
        self.key.extend_from_slice(key);
        match value {
            Value::Inline(value) if self.key.len() + value.len() < self.most => {
                self.value.clear();
                Held::Inline(value).encode(&mut self.value);
                Ok(Some((&self.key, Value::Inline(&self.value))))
            }
            value => {
                self.long = Some(value.len());
                Ok(None)
            }
        }
    }

    fn read_value(&mut self, offset: u32, into: &mut [u8]) -> Result<u32> {
        Ok(read_piece(&self.value, offset, into))
    }
}

impl LongValues<'_> {
    /// Loads `sorted`: what comes before the first long value at once, and puts the rest.
    pub(super) fn load_sorted(&mut self, sorted: &mut dyn Cursor, fill_percent: u8) -> Result<u64> {
        let (key, value) = (vec![Kind::Entry as u8], Vec::new());
        let mut short = Short { sorted, most: self.entry_most, key, value, long: None };
        let mut loaded = self.index.load(&mut short, fill_percent).map_err(super::above)?;
        let Short { mut key, long, .. } = short;
        let Some(bytes) = long else {
            return Ok(loaded);
        };
        key.remove(0);
        self.put_streamed(&key, bytes, sorted)?;
        loaded += 1;
        self.put_rest(key, sorted, loaded)
    }

    /// Puts what comes behind `last`, in batches; `loaded` entries came before.
    fn put_rest(
        &mut self,
        mut last: Vec<u8>,
        sorted: &mut dyn Cursor,
        mut loaded: u64,
    ) -> Result<u64> {
        let mut batch: Vec<(Vec<u8>, Vec<u8>)> = Vec::with_capacity(PUTS_AT_ONCE);
        loop {
            let next = match sorted.next()? {
                Some((key, _)) if key <= last.as_slice() => {
                    return Err(Error::NotSorted { position: loaded });
                }
                Some((key, value)) => {
                    last.clear();
                    last.extend_from_slice(key);
                    Some((value.whole().map(<[u8]>::to_vec), value.len()))
                }
                None => None,
            };
            let is_short = next.as_ref().is_some_and(|(value, bytes)| {
                value.is_some() && !self.is_long(last.len(), *bytes as usize)
            });
            if !is_short || batch.len() == PUTS_AT_ONCE {
                let puts: Vec<_> =
                    batch.iter().map(|(key, value)| Update::Put { key, value }).collect();
                self.put_together(&puts)?;
                batch.clear();
            }
            match next {
                Some((Some(value), _)) if is_short => batch.push((last.clone(), value)),
                Some((_, bytes)) => self.put_streamed(&last, bytes, sorted)?,
                None => return Ok(loaded),
            }
            loaded += 1;
        }
    }

    /// Puts a batch; where there is no room for it as a whole, a half after the other.
    fn put_together(&mut self, puts: &[Update<'_>]) -> Result<()> {
        match self.update(puts) {
            Err(error) if puts.len() > 1 && is_about_room(&error) => {
                let (first, second) = puts.split_at(puts.len() / 2);
                self.put_together(first)?;
                self.put_together(second)
            }
            done => done,
        }
    }

    /// Puts the value of `bytes` bytes at which `sorted` stands, a piece at a time.
    fn put_streamed(&mut self, key: &[u8], bytes: u32, sorted: &mut dyn Cursor) -> Result<()> {
        self.check_update(&Update::Put { key, value: &[] })?;
        let put = self.stream(key, bytes, sorted);
        if put.is_err() {
            // What failed first is told.
            let _ = self.sweep();
        }
        put
    }

    fn stream(&mut self, key: &[u8], bytes: u32, sorted: &mut dyn Cursor) -> Result<()> {
        let reference = self.reserve(bytes)?;
        let mut piece = vec![0; reference.piece_bytes.into()];
        for place in 0..reference.pieces() {
            let offset = place as u32 * u32::from(reference.piece_bytes);
            let value = &mut piece[..self.length_of(&reference, place) as usize];
            if sorted.read_value(offset, value)? != bytes {
                let (bytes, limit) = (value.len() as u64, u64::from(bytes));
                return Err(store::Error::LongValuePieces { bytes, limit }.into());
            }
            let key = self.keys.numbered(Kind::Piece, reference.first + place);
            self.index.update(&[Update::Put { key: &key, value }])?;
        }
        self.batch.clear();
        let mut stored = Vec::with_capacity(2);
        self.add_entry(&mut stored, key, Some(Held::InPieces(reference)));
        self.add_mark(&mut stored, &reference, false);
        self.commit(&stored)
    }
}
