"""A trace on disk: folders of Parquet and spool segments, zips of them, packaged samples."""
