"""Images: folders, tables, packed and prepared sets, files to pixels, splits."""
