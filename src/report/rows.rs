//! The rows of an answer: in memory while they are few, in a temporary file once they are many.
//!
//! An answer such as `latency --by request_id` has as many rows as the logs; it must not be the one thing in
//! the program that does not fit in memory. Outputs may walk the rows as often as they like.

use std::fmt;
use std::fs::File;
use std::io::{BufReader, BufWriter, Seek, SeekFrom};

use anyhow::Context;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::writer::StreamWriter;

/// Rows beyond this many bytes go to a temporary file.
const IN_MEMORY_BYTES: usize = 32 << 20;

/// The rows of an answer, in their final order.
pub struct Rows {
    schema: SchemaRef,
    held: Vec<RecordBatch>,
    held_bytes: usize,
    count: u64,
    spool: Option<StreamWriter<BufWriter<File>>>,
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows", self.count)
    }
}

impl Rows {
    pub fn new(schema: SchemaRef) -> Self {
        Self { schema, held: Vec::new(), held_bytes: 0, count: 0, spool: None }
    }

    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub fn len(&self) -> u64 {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Appends rows; all batches have the schema given at the start.
    pub fn push(&mut self, batch: RecordBatch) -> anyhow::Result<()> {
        self.count += batch.num_rows() as u64;
        if self.spool.is_none() && self.held_bytes + batch.get_array_memory_size() > IN_MEMORY_BYTES {
            let file = tempfile::tempfile().context("could not create a temporary file for a long answer")?;
            self.spool = Some(StreamWriter::try_new(BufWriter::new(file), &self.schema)?);
        }
        match &mut self.spool {
            Some(spool) => spool.write(&batch).context("could not write a long answer to its temporary file")?,
            None => {
                self.held_bytes += batch.get_array_memory_size();
                self.held.push(batch);
            }
        }
        Ok(())
    }

    /// Walks all rows from the first, batch by batch.
    pub fn batches(&mut self) -> anyhow::Result<impl Iterator<Item = anyhow::Result<RecordBatch>> + '_> {
        let spooled = match &mut self.spool {
            None => None,
            Some(spool) => {
                spool.flush()?;
                let mut file = spool.get_ref().get_ref().try_clone()?;
                file.seek(SeekFrom::Start(0))?;
                Some(StreamReader::try_new(BufReader::new(file), None)?)
            }
        };
        Ok(self.held.iter().cloned().map(Ok).chain(spooled.into_iter().flatten().map(|batch| Ok(batch?))))
    }
}
