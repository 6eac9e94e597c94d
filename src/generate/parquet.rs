//! Lines as Parquet: the same columns with real types, and what a reader needs to skip: statistics,
//! and a bloom filter on ids.

use std::fs::File;
use std::sync::Arc;

use anyhow::{Result, bail};
use datafusion::arrow::array::{
    ArrayBuilder, BooleanBuilder, Float64Builder, Int64Builder, RecordBatch, StringBuilder, TimestampMillisecondBuilder,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};
use datafusion::parquet::schema::types::ColumnPath;

use super::line::{Fields, Line};

/// Small enough that the row groups of a short file can be read in parallel.
const ROW_GROUP: usize = 262_144;

/// Rows collected before they are encoded.
const BATCH: usize = 8_192;

/// Writes a Parquet file.
pub struct ParquetWriter {
    writer: ArrowWriter<File>,
    schema: SchemaRef,
    columns: Vec<Column>,
    rows: usize,
}

/// The values of one column that are not encoded yet.
enum Column {
    Text(StringBuilder),
    Whole(Int64Builder),
    Decimal(Float64Builder),
    Flag(BooleanBuilder),
    Time(TimestampMillisecondBuilder),
}

impl ParquetWriter {
    pub fn new<L: Line>(file: File) -> Result<Self> {
        let mut layout = Layout::default();
        L::default().write(&mut layout)?;
        let schema = Arc::new(Schema::new(layout.fields));
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
            .set_max_row_group_row_count(Some(ROW_GROUP))
            .set_statistics_enabled(EnabledStatistics::Page)
            .set_column_bloom_filter_enabled(ColumnPath::from("request_id"), true)
            .build();
        let writer = ArrowWriter::try_new(file, schema.clone(), Some(properties))?;
        Ok(ParquetWriter { writer, schema, columns: layout.columns, rows: 0 })
    }

    pub fn write<L: Line>(&mut self, line: &L) -> Result<()> {
        line.write(&mut Row { columns: self.columns.iter_mut() })?;
        self.rows += 1;
        if self.rows == BATCH {
            self.encode()?;
        }
        Ok(())
    }

    pub fn close(mut self) -> Result<()> {
        self.encode()?;
        self.writer.close()?;
        Ok(())
    }

    fn encode(&mut self) -> Result<()> {
        let arrays = self.columns.iter_mut().map(|column| column.builder().finish()).collect();
        self.writer.write(&RecordBatch::try_new(self.schema.clone(), arrays)?)?;
        self.rows = 0;
        Ok(())
    }
}

impl Column {
    fn builder(&mut self) -> &mut dyn ArrayBuilder {
        match self {
            Column::Text(builder) => builder,
            Column::Whole(builder) => builder,
            Column::Decimal(builder) => builder,
            Column::Flag(builder) => builder,
            Column::Time(builder) => builder,
        }
    }
}

/// Takes the names and types of a line's columns.
#[derive(Default)]
struct Layout {
    fields: Vec<Field>,
    columns: Vec<Column>,
}

impl Layout {
    fn add(&mut self, name: &str, kind: DataType, column: Column) -> Result<()> {
        self.fields.push(Field::new(name, kind, true));
        self.columns.push(column);
        Ok(())
    }
}

impl Fields for Layout {
    fn text<'a>(&mut self, name: &'static str, _: impl Into<Option<&'a str>>) -> Result<()> {
        self.add(name, DataType::Utf8, Column::Text(StringBuilder::new()))
    }

    fn whole(&mut self, name: &'static str, _: impl Into<Option<u64>>) -> Result<()> {
        self.add(name, DataType::Int64, Column::Whole(Int64Builder::new()))
    }

    fn thousandths(&mut self, name: &'static str, _: impl Into<Option<u64>>) -> Result<()> {
        self.add(name, DataType::Float64, Column::Decimal(Float64Builder::new()))
    }

    fn flag(&mut self, name: &'static str, _: impl Into<Option<bool>>) -> Result<()> {
        self.add(name, DataType::Boolean, Column::Flag(BooleanBuilder::new()))
    }

    fn time(&mut self, name: &'static str, _: i64) -> Result<()> {
        let kind = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
        let builder = TimestampMillisecondBuilder::new().with_timezone("UTC");
        self.add(name, kind, Column::Time(builder))
    }
}

/// Takes the values of one line, column by column.
struct Row<'a> {
    columns: std::slice::IterMut<'a, Column>,
}

impl Fields for Row<'_> {
    fn text<'a>(&mut self, name: &'static str, value: impl Into<Option<&'a str>>) -> Result<()> {
        match self.columns.next() {
            Some(Column::Text(column)) => column.append_option(value.into()),
            _ => return out_of_layout(name),
        }
        Ok(())
    }

    fn whole(&mut self, name: &'static str, value: impl Into<Option<u64>>) -> Result<()> {
        match self.columns.next() {
            Some(Column::Whole(column)) => column.append_option(value.into().map(i64::try_from).transpose()?),
            _ => return out_of_layout(name),
        }
        Ok(())
    }

    fn thousandths(&mut self, name: &'static str, value: impl Into<Option<u64>>) -> Result<()> {
        match self.columns.next() {
            // one rounding, so the double is the one that reading the decimal text gives
            Some(Column::Decimal(column)) => column.append_option(value.into().map(|value| value as f64 / 1_000.0)),
            _ => return out_of_layout(name),
        }
        Ok(())
    }

    fn flag(&mut self, name: &'static str, value: impl Into<Option<bool>>) -> Result<()> {
        match self.columns.next() {
            Some(Column::Flag(column)) => column.append_option(value.into()),
            _ => return out_of_layout(name),
        }
        Ok(())
    }

    fn time(&mut self, name: &'static str, at_us: i64) -> Result<()> {
        match self.columns.next() {
            Some(Column::Time(column)) => column.append_value(at_us.div_euclid(1_000)),
            _ => return out_of_layout(name),
        }
        Ok(())
    }
}

fn out_of_layout(name: &str) -> Result<()> {
    bail!("column {name} does not stand where the file's layout has it")
}
