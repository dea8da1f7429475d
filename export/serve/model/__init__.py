"""The model being served: its versions, loaded and asked in batches."""
