ALTER TABLE judged_version ADD COLUMN basis TEXT COLLATE "C";
