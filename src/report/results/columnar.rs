//! Tables as Parquet: a column per column, typed, each field of which may be empty.
//!
//! The same rows give the same bytes.

use std::fmt::Write as _;
use std::io;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::record::RowAccessor;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::Type;

use super::sweep_table::{Field, Row};

/// Rows of a group, which are held in memory.
const GROUP: usize = 1 << 16;

/// A table that is written as Parquet.
pub(super) struct Columnar<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    /// Those of the group that is not written yet.
    rows: Vec<Row>,
}

impl<W: Write + Send> Columnar<W> {
    /// A table with the columns of `row` and no rows.
    pub(super) fn new(row: &Row, to: W) -> io::Result<Self> {
        let schema = Arc::new(parse_message_type(&schema(row)).map_err(io::Error::other)?);
        let zstd = Compression::ZSTD(ZstdLevel::default());
        let properties = WriterProperties::builder().set_compression(zstd).build();
        let writer = SerializedFileWriter::new(to, schema, Arc::new(properties));
        Ok(Self { writer: writer.map_err(io::Error::other)?, rows: Vec::new() })
    }

    /// Adds a row with those columns.
    pub(super) fn push(&mut self, row: Row) -> io::Result<()> {
        self.rows.push(row);
        if self.rows.len() == GROUP { self.write() } else { Ok(()) }
    }

    /// What it was written to.
    pub(super) fn finish(mut self) -> io::Result<W> {
        if !self.rows.is_empty() {
            self.write()?;
        }
        self.writer.into_inner().map_err(io::Error::other)
    }

    /// Writes the rows that are held, as a group.
    fn write(&mut self) -> io::Result<()> {
        let rows = std::mem::take(&mut self.rows);
        write_group(&mut self.writer, &rows).map_err(io::Error::other)
    }
}

/// Writes `rows`, of which there is one at least, as a group.
fn write_group<W: Write + Send>(
    writer: &mut SerializedFileWriter<W>,
    rows: &[Row],
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for at in 0..rows[0].fields().count() {
        let column: Vec<&Field> = rows.iter().filter_map(|row| row.fields().nth(at)).collect();
        write_column(&mut group, &column)?;
    }
    group.close().map(drop)
}

/// The columns of `row` in Parquet's words.
fn schema(row: &Row) -> String {
    let mut text = String::from("message rows {");
    for (name, field) in row.names().zip(row.fields()) {
        let (kind, means) = match field {
            Field::Text(_) => ("BINARY", " (STRING)"),
            Field::Count(_) => ("INT64", " (INTEGER(64,false))"),
            Field::Number(_) => ("DOUBLE", ""),
            Field::Flag(_) => ("BOOLEAN", ""),
        };
        // Writing into a string cannot fail.
        let _ = write!(text, " OPTIONAL {kind} {name}{means};");
    }
    text + " }"
}

/// Writes the next column of a group, whose fields are all of one type.
fn write_column<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: &[&Field],
) -> Result<(), ParquetError> {
    match column[0] {
        Field::Text(_) => write_as::<W, ByteArrayType>(group, column, |field| match field {
            Field::Text(text) => text.as_deref().map(ByteArray::from),
            _ => None,
        }),
        Field::Count(_) => write_as::<W, Int64Type>(group, column, |field| match field {
            Field::Count(count) => count.map(u64::cast_signed),
            _ => None,
        }),
        Field::Number(_) => write_as::<W, DoubleType>(group, column, |field| match field {
            Field::Number(number) => *number,
            _ => None,
        }),
        Field::Flag(_) => write_as::<W, BoolType>(group, column, |field| match field {
            Field::Flag(flag) => *flag,
            _ => None,
        }),
    }
}

fn write_as<W: Write + Send, T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: &[&Field],
    value: impl Fn(&Field) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let fields: Vec<Option<T::T>> = column.iter().map(|field| value(field)).collect();
    let levels: Vec<i16> = fields.iter().map(|field| i16::from(field.is_some())).collect();
    let values: Vec<T::T> = fields.into_iter().flatten().collect();
    let Some(mut writer) = group.next_column()? else { return Ok(()) };
    writer.typed::<T>().write_batch(&values, Some(&levels), None)?;
    writer.close()
}

/// The texts of the column `name` of the table in `bytes`.
///
/// # Errors
/// What is wrong with the table.
pub(super) fn texts(bytes: &[u8], name: &str) -> Result<Vec<String>, String> {
    // The reader of the crate panics on some damaged files, of which it holds nothing after.
    let read = AssertUnwindSafe(|| read_texts(bytes, name));
    catch_unwind(read).unwrap_or_else(|_| Err(String::from("the file is damaged")))
}

fn read_texts(bytes: &[u8], name: &str) -> Result<Vec<String>, String> {
    let said = |error: ParquetError| error.to_string();
    let reader = SerializedFileReader::new(Bytes::copy_from_slice(bytes)).map_err(said)?;
    let schema = reader.metadata().file_metadata().schema();
    let columns = schema.get_fields().iter().filter(|column| column.name() == name);
    let columns: Vec<_> = columns.cloned().collect();
    if columns.len() != 1 {
        return Err(format!("expected one column {name}, found {}", columns.len()));
    }
    let projection = Type::group_type_builder(schema.name()).with_fields(columns).build();
    let rows = reader.get_row_iter(Some(projection.map_err(said)?)).map_err(said)?;
    rows.map(|row| row.and_then(|row| row.get_string(0).cloned()).map_err(said)).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use parquet::basic::{LogicalType, Type};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field as Read;

    use super::{Columnar, Field, GROUP, Row};

    fn row(columns: [Field; 4]) -> Row {
        let mut row = Row::default();
        row.extend(["mix", "seed", "stp", "finished"].into_iter().zip(columns));
        row
    }

    fn written(rows: &[Row]) -> Vec<u8> {
        let empty = row(["".into(), 0_u64.into(), 0.0.into(), true.into()].map(Field::emptied));
        let mut table = Columnar::new(&empty, Vec::new()).unwrap();
        rows.iter().for_each(|row| table.push(row.clone()).unwrap());
        table.finish().unwrap()
    }

    fn read(bytes: &[u8]) -> SerializedFileReader<File> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        SerializedFileReader::new(file).unwrap()
    }

    #[test]
    fn a_table_comes_back_with_its_types_and_what_is_empty() {
        let rows = [
            row(["p + q".into(), u64::MAX.into(), 0.5.into(), true.into()]),
            row(["".into(), 7_u64.into(), f64::INFINITY.into(), false.into()]),
            row([Field::Text(None), Field::Count(None), (-2.5).into(), Field::Flag(None)]),
        ];
        let bytes = written(&rows);
        assert_eq!(bytes, written(&rows), "the same rows, the same bytes");
        let read: Vec<Vec<Read>> = read(&bytes)
            .get_row_iter(None)
            .unwrap()
            .map(|row| row.unwrap().into_columns().into_iter().map(|(_, field)| field).collect())
            .collect();
        let text = |text: &str| Read::Str(text.to_owned());
        let expected = [
            vec![text("p + q"), Read::ULong(u64::MAX), Read::Double(0.5), Read::Bool(true)],
            vec![text(""), Read::ULong(7), Read::Null, Read::Bool(false)],
            vec![Read::Null, Read::Null, Read::Double(-2.5), Read::Null],
        ];
        assert_eq!(read, expected);
    }

    #[test]
    fn a_damaged_table_is_an_error() {
        let rows = ["p", "q"].map(|mix| row([mix.into(), 7_u64.into(), 0.5.into(), true.into()]));
        let whole = written(&rows);
        assert_eq!(super::texts(&whole, "mix"), Ok(vec!["p".to_owned(), "q".to_owned()]));
        assert!(super::texts(&whole, "key").unwrap_err().ends_with("column key, found 0"));
        assert!(super::texts(&whole, "seed").is_err(), "no text");
        for at in 0..whole.len() {
            // Refused, or read.
            let _ = super::texts(&whole[..at], "mix");
            for bit in 0..8 {
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << bit;
                let _ = super::texts(&bytes, "mix");
            }
        }
    }

    #[test]
    fn a_table_without_rows_has_its_columns_and_a_long_one_all_rows() {
        let meta = |rows: &[Row]| read(&written(rows)).metadata().file_metadata().clone();
        let none = meta(&[]);
        let column = none.schema_descr().column(0);
        assert_eq!((none.num_rows(), column.name()), (0, "mix"));
        assert_eq!(column.physical_type(), Type::BYTE_ARRAY);
        assert_eq!(column.logical_type_ref(), Some(&LogicalType::String));
        let one = row(["m".into(), 1_u64.into(), 1.0.into(), true.into()]);
        let many = vec![one; GROUP + 1];
        assert_eq!(usize::try_from(meta(&many).num_rows()), Ok(GROUP + 1));
    }
}
