"""The versioned database that keeps everything that is remembered, on Qdrant."""
