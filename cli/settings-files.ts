/** Where `affiliate init` writes, unless another file is named. */
export const SETTINGS_FILE = 'affiliate.env'
/** Read from the working folder when present. The environment wins over them, and the first over the second. */
export const SETTINGS_FILES: readonly string[] = ['.env', SETTINGS_FILE]
