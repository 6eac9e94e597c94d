//! The cache that `cache --what-if` replays block hashes through: `ttl=10m,blocks=100000,block=16`.

use super::Mistake;
use super::time::milliseconds;

/// What a replayed cache is like; None is without limit, or as the log shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replay {
    /// Milliseconds that a block stays without being used.
    pub ttl_ms: Option<i64>,
    /// Blocks that it holds.
    pub blocks: Option<i64>,
    /// Tokens of a block.
    pub block: Option<i64>,
    /// As typed.
    pub text: String,
}

/// The cache that holds everything for ever.
pub const INFINITE: &str = "infinite";

impl Replay {
    /// Reads `infinite`, or settings separated by commas.
    pub fn parse(text: &str) -> Result<Self, Mistake> {
        let mistake = || Mistake::NotAReplay { text: text.to_owned() };
        let mut replay = Replay { text: text.to_owned(), ..Replay::default() };
        if text.trim() == INFINITE {
            return Ok(replay);
        }
        for setting in text.split(',') {
            let (name, value) = setting.trim().split_once('=').ok_or_else(mistake)?;
            let count = || value.parse().ok().filter(|count: &i64| *count > 0).ok_or_else(mistake);
            let place = match name.trim() {
                "ttl" => &mut replay.ttl_ms,
                "blocks" => &mut replay.blocks,
                "block" => &mut replay.block,
                _ => return Err(mistake()),
            };
            let value = match name.trim() {
                "ttl" => milliseconds(value).ok_or_else(mistake)?,
                _ => count()?,
            };
            if place.replace(value).is_some() {
                return Err(mistake());
            }
        }
        Ok(replay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_is_infinite_or_has_limits() {
        assert_eq!(Replay::parse("infinite").unwrap().ttl_ms, None);
        let replay = Replay::parse("ttl=10m, blocks=5,block=16").unwrap();
        assert_eq!((replay.ttl_ms, replay.blocks, replay.block), (Some(600_000), Some(5), Some(16)));
        for wrong in ["", "ttl", "ttl=x", "block=0", "size=1", "block=1,block=2"] {
            assert!(matches!(Replay::parse(wrong), Err(Mistake::NotAReplay { .. })), "{wrong}");
        }
    }
}
