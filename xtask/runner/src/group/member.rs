//! One rank's buffers and its stream.

use warpwire::collective::Operands;
use warpwire::device::{Buffer, Device, Stream};

use super::reference::{POISON, input, same_bits};

/// Elements behind each buffer's message that nobody may touch.
const GUARD: usize = 64;

/// A rank, for messages up to a size. Dropped in this order: the stream waits for its work, then its memory goes.
pub struct Member {
    /// What the rank queues on.
    pub stream: Stream,
    input: Buffer<f32>,
    output: Buffer<f32>,
}

impl Member {
    /// A rank on `device`, for messages of up to `largest` elements.
    pub fn new(device: &Device, largest: usize) -> warpwire::Result<Self> {
        let (input, output) = (device.allocate(largest + GUARD)?, device.allocate(largest + GUARD)?);
        Ok(Self { stream: device.stream()?, input, output })
    }

    /// The rank's own buffers, which live as long as it does.
    pub fn operands(&self, count: usize, in_place: bool) -> Operands {
        let input = self.input.address();
        let output = if in_place { input } else { self.output.address() };
        Operands { input, output, count }
    }

    /// Gives the buffers what they hold before a round: this rank's input, and poison.
    pub fn arrange(&self, rank: usize, count: usize) -> warpwire::Result<()> {
        for buffer in [&self.input, &self.output] {
            buffer.write(&vec![POISON; buffer.len()])?;
        }
        self.input.write(&input(rank, count))
    }

    /// The result of a round out of place, and whether it touched nothing else: the input is as it was, and neither buffer
    /// was written behind the message.
    pub fn output(&self, rank: usize, count: usize) -> warpwire::Result<(Vec<f32>, bool)> {
        let untouched = same_bits(&self.input.read()?[..count], &input(rank, count))
            && is_poisoned(&self.input, count)?
            && is_poisoned(&self.output, count)?;
        let mut output = self.output.read()?;
        output.truncate(count);
        Ok((output, untouched))
    }

    /// Whether a round in place gave the same bits, and touched nothing behind them.
    pub fn gave_in_place(&self, output: &[f32]) -> warpwire::Result<bool> {
        let count = output.len();
        Ok(same_bits(&self.input.read()?[..count], output) && is_poisoned(&self.input, count)?)
    }
}

fn is_poisoned(buffer: &Buffer<f32>, from: usize) -> warpwire::Result<bool> {
    let mut guard = vec![0.0; GUARD];
    buffer.read_at(from, &mut guard)?;
    Ok(guard.iter().all(|&element| element.to_bits() == POISON.to_bits()))
}
