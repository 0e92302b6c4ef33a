import { closeSync, mkdirSync, openSync } from 'node:fs'

/** Creates a folder and its parents, readable by this user only; leaves an existing one as it is. */
export function makePrivateFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
}

/**
 * Creates an empty file, readable by this user only, before a library creates it with the process's umask; leaves an existing one as it is.
 * SQLite gives the files beside a database the mode of the database.
 */
export function makePrivateFile(file: string): void {
  closeSync(openSync(file, 'a', 0o600))
}
