"""The content-addressed cache on this machine's disk: blobs, what they are copies of, who uses them, and how much there may be."""
