//! The binary store: layout, writer, mmap reader, importers of trace text.
