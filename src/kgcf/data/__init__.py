"""From files to graphs: vocabulary, triples, splits, readers, benchmark registry, embedded world graph."""
