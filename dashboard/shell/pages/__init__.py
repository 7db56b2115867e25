"""The pages. One file in this folder = one page."""
