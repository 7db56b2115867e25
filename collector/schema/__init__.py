"""The public schema in the forms that storage needs: Arrow types, SQL views, the schema page."""
