"""Where traces are kept: folders of Parquet, zips of them, packaged samples."""
