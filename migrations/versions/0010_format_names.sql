-- no reader has a dot in its name, and of the files of msprof only these two may have none
UPDATE source SET format = 'cann'
WHERE REPLACE(format, '.', '') <> format OR format IN ('start_info', 'end_info');
