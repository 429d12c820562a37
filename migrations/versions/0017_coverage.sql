ALTER TABLE judged_version ADD COLUMN coverage TEXT COLLATE "C";
