//! Up to where collections stay small, as the settings say. Knows no collection.

use super::Config;
use tenon_store::types::stream::ProducerLimits;
use tenon_store::types::{HashLimits, SetLimits, StreamLimits, ZsetLimits};

/// A number of elements or bytes.
fn size(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

impl Config {
    /// The limits of a hash's small form.
    #[inline]
    pub fn hash_limits(&self) -> HashLimits {
        HashLimits { fields: size(self.hash_max_listpack_entries()), bytes: size(self.hash_max_listpack_value()) }
    }

    /// The limits of a set's small forms.
    #[inline]
    pub fn set_limits(&self) -> SetLimits {
        SetLimits {
            ints: size(self.set_max_intset_entries()),
            members: size(self.set_max_listpack_entries()),
            bytes: size(self.set_max_listpack_value()),
        }
    }

    /// The limits of a sorted set's packed form.
    #[inline]
    pub fn zset_limits(&self) -> ZsetLimits {
        ZsetLimits { members: size(self.zset_max_listpack_entries()), bytes: size(self.zset_max_listpack_value()) }
    }

    /// The limits of a stream's blocks.
    #[inline]
    pub fn stream_limits(&self) -> StreamLimits {
        StreamLimits::new(size(self.stream_node_max_bytes()), size(self.stream_node_max_entries()))
    }

    /// How much a new stream remembers of its producers.
    pub fn producer_limits(&self) -> ProducerLimits {
        let limits = ProducerLimits::new(self.stream_idmp_duration(), self.stream_idmp_maxsize());
        limits.expect("the settings have the same bounds")
    }
}
