CREATE TABLE IF NOT EXISTS "event_journal" (
    "ordering" INTEGER PRIMARY KEY AUTOINCREMENT,
    "deleted" BOOLEAN DEFAULT FALSE NOT NULL,
    "persistence_id" TEXT NOT NULL,
    "sequence_number" INTEGER NOT NULL,
    "writer" TEXT NOT NULL,
    "write_timestamp" INTEGER NOT NULL,
    "adapter_manifest" TEXT NOT NULL,
    "event_payload" BLOB NOT NULL,
    "event_ser_id" INTEGER NOT NULL,
    "event_ser_manifest" TEXT NOT NULL,
    "meta_payload" BLOB,
    "meta_ser_id" INTEGER,
    "meta_ser_manifest" TEXT,
    UNIQUE ("persistence_id", "sequence_number")
);
CREATE TABLE IF NOT EXISTS "event_tag" (
    "event_id" INTEGER NOT NULL REFERENCES "event_journal" ("ordering") ON DELETE CASCADE,
    "tag" TEXT NOT NULL,
    PRIMARY KEY ("event_id", "tag")
);
