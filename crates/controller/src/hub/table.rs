//! Keeps what belongs to connections in a table: found by index, without a search.
use crate::ConnectionId;

/// Bits of a connection's number that are its place in the table. The rest counts the connections that had the place.
const PLACE_BITS: u32 = 32;

/// Values by connection.
#[derive(Debug)]
pub(crate) struct ConnectionTable<T> {
    slots: Vec<Slot<T>>,
    free: Vec<usize>,
    len: usize,
}

#[derive(Debug)]
struct Slot<T> {
    id: ConnectionId,
    value: Option<T>,
}

impl<T> Default for ConnectionTable<T> {
    fn default() -> Self {
        ConnectionTable { slots: Vec::new(), free: Vec::new(), len: 0 }
    }
}

impl<T> ConnectionTable<T> {
    /// Adds a value. Returns its number, which no earlier connection had.
    pub(crate) fn insert(&mut self, value: T) -> ConnectionId {
        self.len += 1;
        if let Some(slot) = self.free.pop().and_then(|place| self.slots.get_mut(place)) {
            slot.id = ConnectionId(slot.id.0 + (1 << PLACE_BITS));
            slot.value = Some(value);
            return slot.id;
        }
        let id = ConnectionId(1 << PLACE_BITS | self.slots.len() as u64);
        self.slots.push(Slot { id, value: Some(value) });
        id
    }

    /// Adds a value under the number that another table gave.
    pub(crate) fn insert_as(&mut self, id: ConnectionId, value: T) {
        let place = place(id);
        while self.slots.len() <= place {
            self.slots.push(Slot { id: ConnectionId(0), value: None });
        }
        self.len += usize::from(self.slots[place].value.is_none());
        self.slots[place] = Slot { id, value: Some(value) };
    }

    pub(crate) fn get(&self, id: ConnectionId) -> Option<&T> {
        self.slots.get(place(id)).filter(|slot| slot.id == id)?.value.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut T> {
        self.slots.get_mut(place(id)).filter(|slot| slot.id == id)?.value.as_mut()
    }

    pub(crate) fn remove(&mut self, id: ConnectionId) -> Option<T> {
        let value = self.slots.get_mut(place(id)).filter(|slot| slot.id == id)?.value.take()?;
        self.free.push(place(id));
        self.len -= 1;
        Some(value)
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ConnectionId, &T)> {
        self.slots.iter().filter_map(|slot| Some((slot.id, slot.value.as_ref()?)))
    }

    /// Returns the numbers of all connections.
    pub(crate) fn ids(&self) -> Vec<ConnectionId> {
        self.iter().map(|(id, _)| id).collect()
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the place has 32 bits")]
fn place(id: ConnectionId) -> usize {
    id.0 as u32 as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_under_other_numbers() {
        let mut table = ConnectionTable::default();
        let (first, second) = (table.insert('a'), table.insert('b'));
        assert_eq!((table.remove(first), table.remove(first), table.len()), (Some('a'), None, 1));
        let third = table.insert('c');
        assert_eq!((table.get(first), table.get(third), table.get(second)), (None, Some(&'c'), Some(&'b')));
        assert_eq!(table.ids(), [third, second]);
        let mut other = ConnectionTable::default();
        other.insert_as(third, 1);
        assert_eq!((other.get(first), other.get(third), other.get(second)), (None, Some(&1), None));
        assert!(other.get_mut(first).is_none() && other.get_mut(third).is_some());
    }
}
