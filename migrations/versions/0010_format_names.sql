-- no reader has a dot in its name (without which the name is another text), and of the files of msprof only these two
-- may have none. What a downgrade finds was right already.
UPDATE source SET format = 'cann'
WHERE REPLACE(format, '.', '') <> format OR format IN ('start_info', 'end_info');
